"""Bench of the conversion from FP16 and BF16: values, latency, pauses and resets."""

from typing import Any

from sim_models.golden.arith.half_to_float import HalfToFloat
from tb.arith.numbers import half_codes
from tb.arith.pipelines import check_latency, check_traffic, each
from tb.common import params
from tb.common.bench import bench_test

VARIANTS: dict[str, dict[str, object]] = {
    "default": {},
    "bf16": {"format": "bf16"},
    "deep": {"stages": 2},
}


operands = each(value=half_codes)


@bench_test(timeout_us=100)
async def traffic(dut: Any) -> None:
    """Any operands under any pauses."""
    await check_traffic(dut, HalfToFloat(params()), operands)


@bench_test(timeout_us=20)
async def latency(dut: Any) -> None:
    """Cycles from operands to result, one result a cycle."""
    await check_latency(dut, HalfToFloat(params()), operands)
