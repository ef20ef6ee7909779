"""Bench of the float32 adder: values, latency, pauses and resets."""

from typing import Any

import numpy as np

from sim_models.golden.arith.float_adder import FloatAdder
from tb.arith.numbers import float32_codes, near_codes
from tb.arith.pipelines import check_latency, check_traffic
from tb.common import params
from tb.common.bench import bench_test

VARIANTS: dict[str, dict[str, object]] = {
    "default": {},
    "shallow": {"stages": 1},
    "deep": {"stages": 6},
}


def operands(gen: np.random.Generator, count: int) -> dict[str, np.ndarray]:
    """Two numbers, often of nearly the same size."""
    a = float32_codes(gen, count)
    return {"a": a, "b": near_codes(gen, a)}



@bench_test(timeout_us=100)
async def traffic(dut: Any) -> None:
    """Any operands under any pauses."""
    await check_traffic(dut, FloatAdder(params()), operands)


@bench_test(timeout_us=20)
async def latency(dut: Any) -> None:
    """Cycles from operands to result, one result a cycle."""
    await check_latency(dut, FloatAdder(params()), operands)
