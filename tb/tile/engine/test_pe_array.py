"""Bench of the array: steps in, results and their cycles out, against the golden model."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sim_models.golden.tile.engine.pe_array import Step, run
from sim_models.params.tile.engine.pe import largest_k
from tb.common import params
from tb.common.bench import bench_test
from tb.common.clock import cycles, reset, rng, start
from tb.tile.engine.array_steps import (
    OUTPUTS,
    ArrayPorts,
    check,
    extreme,
    idle,
    random_operands,
    random_steps,
    tile,
    vector,
)

VARIANTS: dict[str, dict[str, object]] = {
    "default": {},
    "systolic_only": {"modes": "systolic"},
    "vector_only": {"modes": "vector"},
    "4x2": {"rows": 4, "cols": 2, "columns_per_hop": 1},
    "2x16": {"rows": 2, "cols": 16, "columns_per_hop": 2},
    "16x1": {"rows": 16, "cols": 1},
    "4x2_ecp5": {"rows": 4, "cols": 2, "columns_per_hop": 1, "family": "ecp5"},
    "4x3_xc7": {"rows": 4, "cols": 3, "family": "xc7"},
    "3x5_xcup": {"rows": 3, "cols": 5, "columns_per_hop": 3, "operand_width": 4, "acc_width": 9, "family": "xcup"},
    "3x5": {"rows": 3, "cols": 5, "columns_per_hop": 3, "operand_width": 4, "acc_width": 9},
}


async def _play(dut: Any, ports: ArrayPorts, steps: Sequence[Step | None], gen: np.random.Generator,
                stop: int | None = None) -> dict[str, np.ndarray]:
    """Drive steps and record the outputs, all of them or up to a cycle."""
    rows = {name: ports.codecs[name].to_ints(r[:stop]) for name, r in ports.rows(steps, gen).items()}
    seen: dict[str, list[bytes]] = {name: [] for name in OUTPUTS}
    size = {name: -(-len(getattr(dut, name)) // 8) for name in OUTPUTS}
    for values in zip(*rows.values(), strict=True):
        for name, value in zip(rows, values, strict=True):
            getattr(dut, name).value = value
        await cycles(1)
        for name in OUTPUTS:
            seen[name].append(int(getattr(dut, name).value).to_bytes(size[name], "little"))
    return {name: np.frombuffer(b"".join(s), np.uint8).reshape(len(s), -1) for name, s in seen.items()}


async def _run(dut: Any, steps: Sequence[Step | None], gen: np.random.Generator) -> None:
    ports = ArrayPorts(params())
    check(ports, run(ports.p, steps), await _play(dut, ports, steps, gen))


@bench_test(timeout_us=1000)
async def random_traffic(dut: Any) -> None:
    """Tiles and dot products in any legal order, twice without a reset."""
    await start(dut)
    gen, p = rng(), params()
    for _ in range(2):
        await _run(dut, random_steps(p, gen, 1200), gen)


@bench_test(timeout_us=1000)
async def back_to_back(dut: Any) -> None:
    """Every mode follows every other as closely as it may, at the shortest lengths."""
    await start(dut)
    gen, p = rng(), params()
    values = random_operands(p, gen)
    for length in (p.rows, p.rows + 1, 2 * p.rows + 1):
        steps: list[Step | None] = []
        if p.systolic:
            steps += [s for _ in range(5) for s in tile(p, length, values)]
        if p.vector:
            steps += [s for n in (1, 1, 1, 2, 1, 3) for s in vector(p, n, values)]
        if p.systolic and p.vector:
            for n in (1, 2, p.rows + 1):
                steps += [*idle(1), *tile(p, length, values), *vector(p, n, values)]
            steps += [*idle(1), *tile(p, length, values), *tile(p, length, values)]
        await _run(dut, steps, gen)


@bench_test(timeout_us=1000)
async def pauses_of_every_length(dut: Any) -> None:
    """Sums must neither survive a pause nor be missed in it, however long it is."""
    await start(dut)
    gen, p = rng(), params()
    values = random_operands(p, gen)
    steps: list[Step | None] = []
    for pause in range(1, p.rows + 8):
        if p.systolic:
            steps += [*idle(pause), *tile(p, p.rows, values), *idle(pause), *tile(p, p.rows + 1, values)]
        if p.vector:
            steps += [*idle(pause), *vector(p, 2, values), *idle(pause), *vector(p, 1, values)]
    await _run(dut, steps, gen)


@bench_test(timeout_us=2000)
async def longest_sums(dut: Any) -> None:
    """The largest K with the worst operands fits, in either mode, and running sums wrap without a trace.

    Fault excluded: accumulators that wrap at the longest K with extreme operands. Tiles up to 1200 steps.
    """
    await start(dut)
    gen, p = rng(), params()
    longest = min(largest_k(p.operand_width, p.acc_width), 1200)
    worst, best = extreme(p), random_operands(p, gen)
    steps: list[Step | None] = []
    if p.systolic:
        for _ in range(3):
            steps += tile(p, max(longest, p.rows), worst)
        steps += [s for _ in range(6) for s in tile(p, p.rows, best)]
    if p.vector:
        words = max(1, longest // p.rows)
        steps += [*vector(p, words, worst), *vector(p, words, worst), *vector(p, 1, best)]
    await _run(dut, steps, gen)


@bench_test(timeout_us=2000)
async def reset_in_the_middle(dut: Any) -> None:
    """After a reset at a random cycle nothing of before shows, neither results nor sums.

    Inputs go on at random during reset, and the first step may come in the cycle after it.
    """
    await start(dut)
    gen, p = rng(), params()
    ports = ArrayPorts(p)
    for _ in range(16):
        await _play(dut, ports, random_steps(p, gen, 100), gen, stop=int(gen.integers(1, 100)))
        await reset(dut, int(gen.integers(1, 4)))
        await _run(dut, random_steps(p, gen, 60), gen)
