"""Bench of the processing element: every register in every cycle against the golden model."""

from typing import Any

import numpy as np

from sim_models.golden.tile.engine.pe import PE
from tb.common import bench_info, params
from tb.common.bench import bench_test
from tb.common.clock import cycles, reset, rng, start
from tb.common.scoreboard import compare

VARIANTS: dict[str, dict[str, object]] = {
    "default": {},
    "systolic_only": {"modes": "systolic"},
    "vector_only": {"modes": "vector"},
    "narrow": {"operand_width": 2, "acc_width": 4},
    "wide": {"operand_width": 16, "acc_width": 48},
    "tight": {"operand_width": 8, "acc_width": 16},
    **{f"{family}_{name}": {"family": family, **modes} for family in ("ecp5", "xc7", "xcup")
       for name, modes in (("both", {}), ("systolic", {"modes": "systolic"}), ("vector", {"modes": "vector"}),
                           ("wide", {"operand_width": 16, "acc_width": 48}))},
}


def _ports() -> dict[str, int]:
    """Inputs of this element and their bits."""
    return {port.name: port.width for port in bench_info().ports if port.direction == "in"}


def _value(gen: np.random.Generator, width: int) -> int:
    """A signed value, extreme ones often; one bit is a flag."""
    if width == 1:
        return int(gen.integers(2))
    low, high = -(1 << (width - 1)), (1 << (width - 1)) - 1
    return int(gen.choice([low, high, 0, -1, int(gen.integers(low, high + 1)), int(gen.integers(low, high + 1))]))


async def _run(dut: Any, model: PE, rows: list[dict[str, int]]) -> None:
    """Drive a row of inputs a cycle and compare both outputs each time."""
    got, want = [], []
    for row in rows:
        for name, value in row.items():
            getattr(dut, name).value = value
        await cycles(1)
        got.append([dut.weight.value.to_signed(), dut.sum.value.to_signed()])
        want.append([model.weight, model.sum])
        model.step(**row)
    compare(got, want, "[cycle, {weight, sum}]")


@bench_test(timeout_us=400)
async def random_inputs(dut: Any) -> None:
    """Anything on any port in any cycle, with resets between."""
    await start(dut)
    gen, ports = rng(), _ports()
    model = PE(params())
    for _ in range(8):
        await _run(dut, model, [{name: _value(gen, w) for name, w in ports.items()} for _ in range(300)])
        await reset(dut, int(gen.integers(1, 4)))
        model.reset()


@bench_test(timeout_us=400)
async def modes_in_runs(dut: Any) -> None:
    """Long runs in each mode: the systolic sum adds up over the whole run, then the modes change."""
    await start(dut)
    gen, ports = rng(), _ports()
    model = PE(params())
    for _ in range(10):
        mode = {name: int(gen.integers(2)) for name, w in ports.items() if w == 1}
        await _run(dut, model, [{name: _value(gen, w) for name, w in ports.items()} | mode
                                for _ in range(int(gen.integers(5, 200)))])


@bench_test(timeout_us=400)
async def wraps_like_the_model(dut: Any) -> None:
    """The worst product again and again, until the sum has wrapped around (or 600 cycles)."""
    await start(dut)
    p, ports = params(), _ports()
    model = PE(p)
    worst = {name: -(1 << (w - 1)) for name, w in ports.items() if w > 1}
    turns = min(600, (1 << p.acc_width) // (1 << (2 * p.operand_width - 2)) + 8)
    for flags in (0, 1):
        row = worst | {name: flags for name, w in ports.items() if w == 1}
        await _run(dut, model, [row] * turns)
