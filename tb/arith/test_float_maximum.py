"""Bench of the maximum tree: values, latency, pauses and resets."""

from typing import Any

import numpy as np

from sim_models.golden.arith.float_maximum import FloatMaximum
from tb.arith.numbers import float32_codes
from tb.arith.pipelines import check_latency, check_traffic
from tb.common import params
from tb.common.bench import bench_test

VARIANTS: dict[str, dict[str, object]] = {
    "default": {},
    "one_lane": {"lanes": 1, "stages": 1},
    "two_lanes": {"lanes": 2},
    "five_lanes": {"lanes": 5, "stages": 4},
    "deep": {"lanes": 16, "stages": 5},
    "wide": {"lanes": 33, "stages": 1},
}


def operands(gen: np.random.Generator, count: int) -> dict[str, np.ndarray]:
    """Lanes full of equal numbers, now and then; few or all of them present."""
    lanes = params().lanes
    values = np.stack([float32_codes(gen, count) for _ in range(lanes)], axis=1)
    alike = np.where(gen.integers(0, 2, (count, lanes)), values, values[:, :1])
    present = [int.from_bytes(gen.bytes(8), "little") | (-1 if full else 0) for full in gen.integers(0, 2, count)]
    return {"values": alike, "present": np.array([v & ((1 << lanes) - 1) for v in present], np.uint64)}



@bench_test(timeout_us=100)
async def traffic(dut: Any) -> None:
    """Any operands under any pauses."""
    await check_traffic(dut, FloatMaximum(params()), operands)


@bench_test(timeout_us=20)
async def latency(dut: Any) -> None:
    """Cycles from operands to result, one result a cycle."""
    await check_latency(dut, FloatMaximum(params()), operands)
