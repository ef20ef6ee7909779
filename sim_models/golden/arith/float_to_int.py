"""Golden model of the conversion from float32 to integers."""

from typing import Any

import numpy as np

from sim_models.golden.arith.pipeline import PipelineModel
from sim_models.numerics.convert import float32_to_int
from sim_models.numerics.float32 import from_bits
from sim_models.params.arith.float_to_int import FloatToIntParams

__all__ = ["FloatToInt"]


class FloatToInt(PipelineModel):
    """Golden model of the conversion from float32 to integers."""

    p: FloatToIntParams

    def results(self, *, value: Any) -> dict[str, np.ndarray]:
        return {"result": float32_to_int(from_bits(value), self.p.width) & ((1 << self.p.width) - 1)}
