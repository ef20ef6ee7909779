"""Bench of the conversion from integers: values, latency, pauses and resets."""

from typing import Any

from sim_models.golden.arith.int_to_float import IntToFloat
from tb.arith.numbers import integer_codes
from tb.arith.pipelines import Operands, check_latency, check_traffic, each
from tb.common import params
from tb.common.bench import bench_test

VARIANTS: dict[str, dict[str, object]] = {
    "default": {},
    "int2": {"width": 2},
    "int8": {"width": 8, "stages": 1},
    "int25": {"width": 25},
    "int26": {"width": 26, "stages": 2},
}


def operands() -> Operands:
    """Integers of the device's width."""
    return each(value=integer_codes(params().width))



@bench_test(timeout_us=100)
async def traffic(dut: Any) -> None:
    """Any operands under any pauses."""
    await check_traffic(dut, IntToFloat(params()), operands())


@bench_test(timeout_us=20)
async def latency(dut: Any) -> None:
    """Cycles from operands to result, one result a cycle."""
    await check_latency(dut, IntToFloat(params()), operands())
