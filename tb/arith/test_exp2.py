"""Bench of the power of two: values, latency, pauses and resets."""

from typing import Any

from sim_models.golden.arith.exp2 import Exp2
from tb.arith.numbers import float32_codes, half_codes
from tb.arith.pipelines import Operands, check_latency, check_traffic, each
from tb.common import params
from tb.common.bench import bench_test

VARIANTS: dict[str, dict[str, object]] = {
    "default": {},
    "fp16": {"format": "fp16"},
    "fp16_deep": {"format": "fp16", "stages": 6},
    "shallow": {"stages": 1},
}


def operands() -> Operands:
    """Numbers of the device's format."""
    return each(x=float32_codes if params().format == "float32" else half_codes)



@bench_test(timeout_us=100)
async def traffic(dut: Any) -> None:
    """Any operands under any pauses."""
    await check_traffic(dut, Exp2(params()), operands())


@bench_test(timeout_us=20)
async def latency(dut: Any) -> None:
    """Cycles from operands to result, one result a cycle."""
    await check_latency(dut, Exp2(params()), operands())
