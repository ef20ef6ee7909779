"""Bench of the exact product: values, latency, pauses and resets."""

from typing import Any

from sim_models.golden.arith.exact_product import ExactProduct
from tb.arith.numbers import half_codes
from tb.arith.pipelines import check_latency, check_traffic, each
from tb.common import params
from tb.common.bench import bench_test

VARIANTS: dict[str, dict[str, object]] = {
    "default": {},
    "bf16": {"format": "bf16"},
    "shallow": {"stages": 1},
    "bf16_shallow": {"format": "bf16", "stages": 2},
}


operands = each(a=half_codes, b=half_codes)


@bench_test(timeout_us=100)
async def traffic(dut: Any) -> None:
    """Any operands under any pauses."""
    await check_traffic(dut, ExactProduct(params()), operands)


@bench_test(timeout_us=20)
async def latency(dut: Any) -> None:
    """Cycles from operands to result, one result a cycle."""
    await check_latency(dut, ExactProduct(params()), operands)
