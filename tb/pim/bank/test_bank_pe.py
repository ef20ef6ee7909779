"""Bench of a bank's processing element: every cycle against the golden model."""

import dataclasses
from typing import Any

import numpy as np

from rtl.pim.bank.layouts import exact_sum, pe_step
from sim_models.golden.pim.bank.bank_pe import BankPE, dot
from sim_models.params.pim.bank.bank_pe import BankPEParams
from tb.common import params
from tb.common.bench import bench_test
from tb.common.clock import cycles, reset, rng, start
from tb.common.packing import Codec
from tb.common.scoreboard import compare
from tb.pim.bank.pe_traffic import KINDS, PATTERNS, Traffic, pack_steps, random_traffic, seen, unpack_sums

VARIANTS: dict[str, dict[str, object]] = {
    "default": {},
    "one_lane": {"lanes": 1, "accumulators": 2},
    "fp16": {"format": "fp16", "lanes": 2, "accumulators": 4, "terms_width": 1},
    "int8": {"format": "int8", "lanes": 8, "accumulators": 256, "terms_width": 2},
}


async def _play(dut: Any, p: BankPEParams, traffic: Traffic) -> tuple[list[int], list[int]]:
    """Drive it, a cycle an entry; what ``sum`` and ``busy`` were before each edge."""
    sums, busy = [], []
    steps = Codec(pe_step(p)).to_ints(pack_steps(p, traffic))
    for step, read_en, read_index in zip(steps, traffic.read_en.tolist(), traffic.read_index.tolist(), strict=True):
        dut.step.value, dut.read_en.value, dut.read_index.value = step, int(read_en), read_index
        await cycles(1)
        sums.append(int(dut.sum.value))
        busy.append(int(dut.busy.value))
    return sums, busy


async def _check(dut: Any, model: BankPE, traffic: Traffic, what: str) -> None:
    """Play it and compare ``busy``, and ``sum`` where it has a value."""
    sums, busy = await _play(dut, model.p, traffic)
    want = seen(model, traffic)
    compare(busy, [int(b) for _, b in want], f"{what}: busy")
    got = unpack_sums(model.p, Codec(exact_sum(model.p)).from_ints(sums))
    pairs = [(sum_, total) for sum_, (total, _) in zip(got, want, strict=True) if total is not None]
    came, wanted = (np.array([dataclasses.astuple(pair[side]) for pair in pairs], object) for side in range(2))
    compare(came, wanted, f"{what}: {{value, positive, negative, nan}}")


@bench_test(timeout_us=400)
async def every_order(dut: Any) -> None:
    """Accumulators in every order, back to back and with gaps; nothing is reset between."""
    await start(dut)
    gen, model = rng(), BankPE(params())
    for pattern in PATTERNS:
        for rate in (1.0, 0.6):
            traffic = random_traffic(model.p, gen, 80, pattern=pattern, rate=rate)
            await _check(dut, model, traffic, f"{pattern}, rate {rate}")


@bench_test(timeout_us=400)
async def every_kind(dut: Any) -> None:
    """Words of one kind at a time."""
    await start(dut)
    gen, model = rng(), BankPE(params())
    for kind in KINDS:
        await _check(dut, model, random_traffic(model.p, gen, 60, pattern="runs", kinds=(kind,)), kind)


@bench_test(timeout_us=400)
async def reset_anywhere(dut: Any) -> None:
    """A reset takes away what is on its way, whenever it comes, and what follows is right."""
    await start(dut)
    gen, model = rng(), BankPE(params())
    for after in range(1, model.p.latency + 8):
        for pattern in ("same", "random"):
            traffic = random_traffic(model.p, gen, 40, pattern=pattern)
            await _play(dut, model.p, traffic.cut(after))
            dut.step.value = dut.read_en.value = 0
            await reset(dut, int(gen.integers(1, 3)))
            model.reset()
            await _check(dut, model, random_traffic(model.p, gen, 40, pattern=pattern, rate=0.8), f"after {after}")


@bench_test(timeout_us=400)
async def latency(dut: Any) -> None:
    """A read as early as stated finds a step, a cycle earlier it does not; a sum holds until the next read."""
    await start(dut)
    p, gen = params(), rng()
    ready = p.latency                                   # cycles from the step
    for early in (0, 1):
        total = 2 * ready + p.read_latency + 6
        traffic = random_traffic(p, gen, total, pattern="same", kinds=("moderate",))
        steps = np.zeros(total, bool)
        steps[[0, ready]] = True
        reads = np.zeros(total, bool)
        reads[2 * ready - early] = True
        index = int(traffic.index[0])
        traffic = Traffic(traffic.words, steps, steps, traffic.index, reads, np.full(total, index))
        await _play(dut, p, traffic.cut(0)) if early else None
        sums, busy = await _play(dut, p, traffic)
        at = 0 if early else ready
        words = traffic.words
        want = dot(p, words.row[at:at + 1], words.other[at:at + 1], bool(words.int8[at]))
        arrival = 2 * ready - early + p.read_latency
        got = unpack_sums(p, Codec(exact_sum(p)).from_ints(sums[arrival:]))
        compare(np.array([s.value for s in got], object), np.array([want.value] * len(got), object), "held sums")
        compare(busy, [int(k % ready != 0 and k < 2 * ready) for k in range(total)], "busy")
