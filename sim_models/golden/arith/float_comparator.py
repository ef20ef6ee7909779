"""Golden model of the float32 comparator."""

from typing import Any

import numpy as np

from sim_models.golden.arith.pipeline import PipelineModel
from sim_models.numerics.float32 import equal, from_bits, less, unordered
from sim_models.params.arith.float_comparator import FloatComparatorParams

__all__ = ["FloatComparator"]


class FloatComparator(PipelineModel):
    """Golden model of the float32 comparator."""

    p: FloatComparatorParams

    def results(self, *, a: Any, b: Any) -> dict[str, np.ndarray]:
        x, y = from_bits(a), from_bits(b)
        return {"less": less(x, y).astype(np.uint8), "equal": equal(x, y).astype(np.uint8),
                "unordered": unordered(x, y).astype(np.uint8)}
