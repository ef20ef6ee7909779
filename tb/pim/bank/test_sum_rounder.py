"""Bench of the rounder of exact sums: values, latency, pauses and resets."""

from typing import Any

import numpy as np

from rtl.pim.bank.layouts import exact_sum
from sim_models.golden.pim.bank.sum_rounder import SumRounder
from tb.arith.pipelines import check_latency, check_traffic
from tb.common import params
from tb.common.bench import bench_test
from tb.common.packing import Codec
from tb.pim.bank.pe_sums import random_sums
from tb.pim.bank.pe_traffic import pack_sums, unpack_sums

VARIANTS: dict[str, dict[str, object]] = {
    "default": {},
    "fp16": {"format": "fp16", "stages": 3},
    "int8": {"format": "int8", "stages": 1},
    "narrow": {"lanes": 1, "terms_width": 1, "stages": 2},
}


class _Packed(SumRounder):
    """The golden model behind the port's bits."""

    def results(self, *, sum: Any, format: Any) -> dict[str, np.ndarray]:
        total = unpack_sums(self.p, Codec(exact_sum(self.p)).from_ints([int(sum)]))[0]
        return super().results(sum=total, format=format)


def _operands(gen: np.random.Generator, count: int) -> dict[str, Any]:
    p = params()
    sums, formats = random_sums(p, gen, count)
    return {"sum": Codec(exact_sum(p)).to_ints(pack_sums(p, sums)), "format": formats}


@bench_test(timeout_us=100)
async def traffic(dut: Any) -> None:
    """Any sums under any pauses."""
    await check_traffic(dut, _Packed(params()), _operands)


@bench_test(timeout_us=20)
async def latency(dut: Any) -> None:
    """Cycles from sum to result, one result a cycle."""
    await check_latency(dut, _Packed(params()), _operands)
