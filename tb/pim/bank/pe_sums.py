"""Exact sums for the rounder: of every size, on and beside what lies in the middle between two results."""

import numpy as np

from sim_models.golden.pim.bank.bank_pe import ExactSum
from sim_models.golden.pim.bank.sum_rounder import FLOAT32, FP16, INT32
from sim_models.params.pim.bank.exact_sum import ExactSumParams

__all__ = ["random_sums"]

#: bits that a result of the format has
_PRECISION = {FLOAT32: 24, FP16: 11}


def random_sums(p: ExactSumParams, gen: np.random.Generator, count: int) -> tuple[list[ExactSum], list[int]]:
    """Sums, and the format that each is to be rounded to."""
    sums, formats = [], []
    for _ in range(count):
        form = INT32 if p.int8 and (not p.fp16 or gen.random() < 0.2) else int(gen.choice([FLOAT32, FP16]))
        if form == INT32:
            edge = int(gen.choice([0, 1, -1, (1 << 31) - 1, -(1 << 31), int(gen.integers(-1 << 31, 1 << 31))]))
            total = ExactSum(edge >> (32 - min(p.integer_width, 32)))
        else:
            total = _sum(p, gen, form)
        sums.append(total)
        formats.append(form)
    return sums, formats


def _sum(p: ExactSumParams, gen: np.random.Generator, form: int) -> ExactSum:
    """A sum of FP16 products; one in ten has flags."""
    size = int(gen.integers(0, p.acc_width))
    magnitude = int.from_bytes(gen.bytes(24), "little") % (1 << size)
    # cut to a single bit, to the precision of the format and a bit, or to where FP16's subnormals have their last one
    keep = int(gen.choice([1, _PRECISION[form] + 1, _PRECISION[form] + 2, 200]))
    drop = max(magnitude.bit_length() - keep, 0)
    if form == FP16 and keep < 200:
        drop = max(drop, 23)
    magnitude = magnitude >> drop << drop
    # a single bit anywhere below decides
    nudge = 1 << int(gen.integers(0, drop)) if drop else 1
    magnitude += nudge * int(gen.choice([0, 0, 1, -1]))
    if gen.random() < 0.1:
        magnitude |= (1 << size) - 1
    magnitude = min(max(magnitude, 0), (1 << (p.acc_width - 1)) - 1)
    flags = gen.random(3) < 0.5 if gen.random() < 0.1 else np.zeros(3, bool)
    return ExactSum(magnitude if gen.random() < 0.5 else -magnitude, *map(bool, flags))
