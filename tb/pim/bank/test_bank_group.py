"""Bench of the bank group: words from its banks meet words of the buffer, every cycle against the golden model."""

import dataclasses
from typing import Any

import numpy as np

from rtl.pim.bank.layouts import exact_sum, group_step
from sim_models.golden.pim.bank.bank_group import BankGroup, GroupInputs
from sim_models.golden.pim.bank.dram_bank import ERRORS, BankInputs
from sim_models.golden.pim.channel.channel_commands import BANKS
from sim_models.params.pim.bank.dram_bank import TIMINGS
from tb.common import params
from tb.common.bench import bench_test
from tb.common.clock import cycles, reset, rng, start
from tb.common.packing import Codec
from tb.common.scoreboard import compare
from tb.pim.bank.bank_traffic import BankCodecs, packed, random_inputs
from tb.pim.channel.channel_sessions import numbers

VARIANTS: dict[str, dict[str, object]] = {
    "default": {},
    "fast_fp16": {**TIMINGS["fast"], "lanes": 1, "rows": 4, "columns": 4, "format": "fp16", "accumulators": 4},
    "fast_int8_plain": {**TIMINGS["fast"], "lanes": 2, "rows": 4, "columns": 4, "format": "int8", "accumulators": 2,
                        "open_rows": 1},
}
#: what the simulator compiles once, and not four times
ONCE = ("bank_pe",)


class Play:
    """The group and its model, driven alike."""

    def __init__(self, dut: Any, gen: np.random.Generator) -> None:
        self.dut, self.gen, self.p = dut, gen, params()
        self.model = BankGroup(self.p)
        self.banks = BankCodecs(self.p.bank)
        self.steps, self.sums = Codec(group_step(self.p)), Codec(exact_sum(self.p))
        self.compared = 0

    async def cycle(self, i: GroupInputs) -> None:
        """One cycle; the sum of a random element and the error are compared."""
        dut, which = self.dut, int(self.gen.integers(BANKS))
        for port, rows in self.banks.ports([i.banks]).items():
            getattr(dut, port).value = packed(rows[0])
        words = numbers(self.p, self.gen, BANKS) if i.words is None else i.words
        dut.write_banks.value = i.write_banks
        dut.words.value = int.from_bytes(words.astype("<u2").tobytes(), "little")
        dut.step.value = packed(self.steps.pack(valid=int(i.valid), first=int(i.first), index=i.index,
                                                int8=int(i.int8))[0])
        dut.read_en.value, dut.read_index.value, dut.which.value = int(i.read_en), i.read_index, which
        await cycles(1)
        want = self.model.sums[which]
        if want is not None:
            compare(int(dut.sum.value), packed(self.sums.pack(dataclasses.asdict(want))[0]), "sum")
            self.compared += 1
        compare(int(dut.error.value), ERRORS.index(self.model.error), "error")
        self.model.step(i)

    def inputs(self, banks: BankInputs, known: dict[int, bool]) -> GroupInputs:
        """Inputs around the commands of the banks: a step for each word that comes out and was written.

        ``known``: accumulators that have a value, and their format.
        """
        p, gen, model = self.p, self.gen, self.model
        there = all(bank.read_data is not None for bank in model.banks)
        index, valid = int(gen.integers(p.accumulators)), there and gen.random() < 0.9
        first = index not in known or gen.random() < 0.2
        int8 = known.get(index, not p.fp16)
        if valid and first:
            int8 = known[index] = bool(gen.integers(2)) if p.both else p.int8
        return GroupInputs(
            banks=banks, write_banks=int(gen.choice([15, 15, int(gen.integers(16))])), valid=valid, first=first,
            index=index, int8=int8, words=numbers(p, gen, BANKS) if valid else None,
            read_en=gen.random() < 0.5, read_index=int(gen.choice(list(known))) if known else 0)


@bench_test(timeout_us=100)
async def random_traffic(dut: Any) -> None:
    """Legal commands, and then a few that are not; steps and reads, with resets in between."""
    await start(dut)
    gen = rng()
    play, hits = Play(dut, gen), 0
    for honesty in (1.0, 1.0, 0.97):
        known: dict[int, bool] = {}
        for banks in random_inputs(play.model.banks, gen, 600, honesty):
            word = numbers(play.p, gen, 1)[0]
            await play.cycle(play.inputs(dataclasses.replace(banks, word=word), known))
        hits += sum(bank.hits for bank in play.model.banks)
        assert play.model.error in ("none", "refi") or honesty < 1
        for port in ("row", "column", "step", "read_en"):
            getattr(dut, port).value = 0
        await reset(dut, 1)
        play.model.reset()
    assert hits > 5
    assert play.compared > 100


@bench_test(timeout_us=20)
async def a_write_is_for_the_banks_it_names(dut: Any) -> None:
    """Each bank has its own word, and its element multiplies that one."""
    await start(dut)
    gen = rng()
    play, p = Play(dut, gen), params()
    words, others = numbers(p, gen, BANKS), numbers(p, gen, BANKS)
    await play.cycle(GroupInputs(banks=BankInputs(row_op="activate", row=1)))
    for _ in range(p.rcd):
        await play.cycle(GroupInputs())
    for b in range(BANKS):
        await play.cycle(GroupInputs(banks=BankInputs(column_op="write", column_row=1, word=words[b]),
                                     write_banks=1 << b))
        for _ in range(p.ccd):
            await play.cycle(GroupInputs())
    for _ in range(p.wtr):
        await play.cycle(GroupInputs())
    await play.cycle(GroupInputs(banks=BankInputs(column_op="read", column_row=1)))
    for _ in range(p.cl - 1):
        await play.cycle(GroupInputs())
    await play.cycle(GroupInputs(valid=True, first=True, words=others, int8=not p.fp16))
    for _ in range(p.pe.latency - 1):
        await play.cycle(GroupInputs())
    await play.cycle(GroupInputs(read_en=True))
    for _ in range(4 * BANKS):
        await play.cycle(GroupInputs())
    assert play.model.error == "none"
    assert len(set(play.model.sums)) == BANKS
