"""Checks that every pipeline of ``rtl/arith`` goes through, cycle by cycle, against its golden model."""

from collections.abc import Callable
from typing import Any

import numpy as np

from sim_models.golden.arith.pipeline import PipelineModel
from tb.arith.numbers import Codes
from tb.common import bench_info
from tb.common.clock import cycles, reset, rng, start
from tb.common.scoreboard import compare

__all__ = ["Operands", "check_latency", "check_traffic", "each"]

#: from a generator and a count to the codes of each operand, (count,) or (count, lanes)
Operands = Callable[[np.random.Generator, int], dict[str, np.ndarray]]


def each(**codes: Codes) -> Operands:
    """Operands that are drawn independently of each other."""
    return lambda gen, count: {name: draw(gen, count) for name, draw in codes.items()}


def _results() -> list[str]:
    return [p.name for p in bench_info().ports if p.direction == "out" and p.name != "o_valid"]


def _packed(codes: np.ndarray) -> int:
    """The value of a port: lanes of 32 bits, or one number."""
    return sum(int(c) << (32 * k) for k, c in enumerate(codes)) if np.ndim(codes) else int(codes)


async def _cycle(dut: Any, model: PipelineModel, enable: int, valid: int, operands: dict[str, Any],
                 seen: list[tuple[list[int], list[int]]]) -> None:
    """One cycle with these inputs; what stands at the output before its edge is noted in ``seen``."""
    dut.enable.value, dut.i_valid.value = enable, valid
    for name, codes in operands.items():
        getattr(dut, name).value = _packed(codes)
    await cycles(1)
    want = model.output
    got = [int(dut.o_valid.value)]
    if want is not None and got[0]:
        got += [int(getattr(dut, name).value) for name in _results()]
    seen.append((got, [0] if want is None else [1, *(int(want[name]) for name in _results())]))
    model.step(enable=enable, valid=valid, operands=operands)


def _compare(seen: list[tuple[list[int], list[int]]], what: str) -> None:
    compare([len(got) for got, _ in seen], [len(want) for _, want in seen], f"{what}: o_valid")
    compare([v for got, _ in seen for v in got], [v for _, want in seen for v in want],
            f"{what}: o_valid, {', '.join(_results())}")


async def check_traffic(dut: Any, model: PipelineModel, draw: Operands, count: int = 300) -> None:
    """Results are right whatever ``enable`` and ``i_valid`` do; a reset takes away what is inside.

    Parameters
    ----------
    model:
        Golden model of the device.
    draw:
        Operands.
    count:
        Cycles between two resets.
    """
    await start(dut)
    gen = rng()
    for enabled, valid in ((1.0, 1.0), (0.5, 1.0), (1.0, 0.5), (0.7, 0.7), (0.1, 0.9)):
        operands = draw(gen, count)
        seen: list[tuple[list[int], list[int]]] = []
        for k in range(count):
            await _cycle(dut, model, int(gen.random() < enabled), int(gen.random() < valid),
                         {name: codes[k] for name, codes in operands.items()}, seen)
        _compare(seen, f"enabled {enabled:.0%}, valid {valid:.0%}")
        dut.i_valid.value, dut.enable.value = 0, 1
        await reset(dut, int(gen.integers(1, 3)))
        model.reset()
        await _drain(dut, model)


async def _drain(dut: Any, model: PipelineModel) -> None:
    """Nothing comes out of a pipeline that was reset."""
    seen: list[tuple[list[int], list[int]]] = []
    for _ in range(model.p.stages + 2):
        await _cycle(dut, model, 1, 0, {}, seen)
    _compare(seen, "after a reset")


async def check_latency(dut: Any, model: PipelineModel, draw: Operands) -> None:
    """One operand comes out ``stages`` cycles later; a result a cycle; it holds without ``enable``."""
    await start(dut)
    stages = model.p.stages
    operands = draw(rng(), 9)
    valid: list[int] = []
    steps = [(1, 0), *[(1, k) for k in range(1, 9)], *[(1, 0)] * (stages - 1), *[(0, 0)] * 5, *[(1, 0)] * 9]
    seen: list[tuple[list[int], list[int]]] = []
    for enable, k in steps:
        await _cycle(dut, model, enable, int(k > 0), {name: codes[k] for name, codes in operands.items()}, seen)
        valid.append(seen[-1][0][0])
    # offered in cycles 1 to 8; the last one waits at the output, or just before it, while enable is low
    taken = [v for v, (enable, _) in zip(valid, steps, strict=True) if enable]
    compare(taken, [int(stages < n <= stages + 8) for n in range(len(taken))], "o_valid at each enabled edge")
    _compare(seen, "latency")
