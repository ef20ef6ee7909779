"""Golden model of the float32 multiplier."""

from typing import Any

import numpy as np

from sim_models.golden.arith.pipeline import PipelineModel
from sim_models.numerics.float32 import bits, from_bits, multiply
from sim_models.params.arith.float_multiplier import FloatMultiplierParams

__all__ = ["FloatMultiplier"]


class FloatMultiplier(PipelineModel):
    """Golden model of the float32 multiplier."""

    p: FloatMultiplierParams

    def results(self, *, a: Any, b: Any) -> dict[str, np.ndarray]:
        return {"result": bits(multiply(from_bits(a), from_bits(b)))}
