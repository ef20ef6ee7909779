"""Bench of the reciprocal square root: values, latency, pauses and resets."""

from typing import Any

from sim_models.golden.arith.reciprocal_sqrt import ReciprocalSqrt
from tb.arith.numbers import float32_codes
from tb.arith.pipelines import check_latency, check_traffic, each
from tb.common import params
from tb.common.bench import bench_test

VARIANTS: dict[str, dict[str, object]] = {
    "default": {},
    "shallow": {"stages": 1},
    "medium": {"stages": 3},
}


operands = each(x=float32_codes)


@bench_test(timeout_us=100)
async def traffic(dut: Any) -> None:
    """Any operands under any pauses."""
    await check_traffic(dut, ReciprocalSqrt(params()), operands)


@bench_test(timeout_us=20)
async def latency(dut: Any) -> None:
    """Cycles from operands to result, one result a cycle."""
    await check_latency(dut, ReciprocalSqrt(params()), operands)
