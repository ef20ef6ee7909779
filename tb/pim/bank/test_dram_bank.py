"""Bench of the bank: every output in every cycle against the golden model, and each rule at its limit."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sim_models.golden.pim.bank.dram_bank import ERRORS, BankInputs, DramBank
from sim_models.params.pim.bank.dram_bank import TIMINGS
from tb.common import params
from tb.common.bench import bench_test
from tb.common.clock import cycles, reset, rng, start
from tb.common.scoreboard import compare
from tb.pim.bank.bank_traffic import OUTPUTS, BankCodecs, expected, limits, packed, random_inputs, timed

VARIANTS: dict[str, dict[str, object]] = {
    "default": {},
    "fast": {**TIMINGS["fast"], "lanes": 2, "rows": 4, "columns": 4},
    "fast_plain": {**TIMINGS["fast"], "lanes": 1, "rows": 4, "columns": 2, "open_rows": 1},
}


class Play:
    """The bank and its model, driven alike."""

    def __init__(self, dut: Any) -> None:
        self.dut, self.model = dut, DramBank(params())
        self.codecs = BankCodecs(self.model.p)
        self.got: list[list[int]] = []
        self.want: list[list[int]] = []

    async def cycle(self, i: BankInputs) -> None:
        """One cycle; its outputs are noted for :meth:`finish`."""
        for port, rows in self.codecs.ports([i]).items():
            getattr(self.dut, port).value = packed(rows[0])
        await cycles(1)
        want = expected(self.model, i)
        got = [int(getattr(self.dut, name).value) for name in OUTPUTS]
        self.got.append(got)
        self.want.append([g if w is None else w for g, w in zip(got, want, strict=True)])

    async def run(self, inputs: Sequence[BankInputs]) -> None:
        """Cycles with these inputs."""
        for i in inputs:
            await self.cycle(i)

    async def restart(self) -> None:
        """Reset; the words stay."""
        await self._still()
        await reset(self.dut, 1)
        self.model.reset()

    async def _still(self) -> None:
        for port in self.codecs.ports([BankInputs()]):
            getattr(self.dut, port).value = 0

    def finish(self) -> None:
        """Compare all cycles."""
        compare(np.array(self.got, object), np.array(self.want, object), ", ".join(OUTPUTS))


@bench_test(timeout_us=200)
async def random_commands(dut: Any) -> None:
    """Right and wrong commands, with resets in between."""
    await start(dut)
    gen, play = rng(), Play(dut)
    for honesty in (1.0, 0.97, 0.5):
        for i in random_inputs([play.model], gen, 800, honesty):
            await play.cycle(i)
        if honesty == 1.0:
            assert play.model.error in ("none", "refi")
            assert play.model.hits > 5
            assert play.model.misses > 1
        await play.restart()
    play.finish()


@bench_test(timeout_us=500)
async def every_rule_at_its_limit(dut: Any) -> None:
    """A cycle earlier than allowed it is reported and not carried out, then it is right."""
    await start(dut)
    play = Play(dut)
    found, want = [], []
    for name, (before, command, allowed) in limits(play.model.p).items():
        for at in (allowed - 1, allowed):
            await play.restart()
            await play.run(timed({**before, at: command}, at + play.model.p.cl + 2))
            found.append([int(dut.error.value), int(dut.errors.value)])
            want.append([ERRORS.index(name.split()[0]), 1] if at < allowed else [0, 0])
    compare(found, want, "error and count")
    play.finish()


@bench_test(timeout_us=50)
async def rows_that_are_not_open(dut: Any) -> None:
    """Known fault: a command for a closed row; and opening what is open, or refreshing it."""
    await start(dut)
    play, p = Play(dut), params()
    word = np.ones(p.lanes, np.uint16)
    opening = {0: BankInputs(row_op="activate", row=0)}
    late = p.ras + p.rp + p.rcd
    closing = {**opening, p.ras: BankInputs(row_op="precharge", row=0)}
    cases: list[tuple[str, dict[int, BankInputs], BankInputs]] = [
        *[("closed", before, BankInputs(column_op=op, column_row=row, word=word)) for op in ("read", "write")
          for before, row in (({}, 0), (opening, 2), (opening, 1), (closing, 0))],
        *[("closed", before, BankInputs(row_op="precharge", row=row))
          for before, row in (({}, 0), (opening, 2), (opening, 1), (closing, 0))],
        *[("open", opening, BankInputs(row_op="activate", row=row)) for row in (0, 2)],
        ("open", opening, BankInputs(row_op="refresh")),
        ("none", opening, BankInputs(column_op="write", column_row=0, word=word)),
        ("none", closing, BankInputs(row_op="refresh")),
        # another subarray's row, or another row of the only one
        ("none" if p.open_rows == 2 else "open", opening, BankInputs(row_op="activate", row=1)),
    ]
    found = []
    for _, before, command in cases:
        await play.restart()
        await play.run(timed({**before, late: command}, late + 2))
        found.append(int(dut.error.value))
    compare(found, [ERRORS.index(name) for name, _, _ in cases], "error")
    play.finish()


@bench_test(timeout_us=500)
async def refresh_must_come(dut: Any) -> None:
    """Two intervals without a refresh are reported, once; with one in between they are not."""
    await start(dut)
    play, p = Play(dut), params()
    await play.restart()
    await play.run(timed({}, 2 * p.refi + 3))
    compare([int(dut.error.value), int(dut.errors.value)], [ERRORS.index("refi"), 1], "error and count")
    await play.restart()
    await play.run(timed({p.refi: BankInputs(row_op="refresh")}, 3 * p.refi))
    compare([int(dut.error.value), int(dut.errors.value)], [0, 0], "error and count with a refresh")
    play.finish()
