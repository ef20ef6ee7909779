"""Golden model of the reciprocal square root."""

from typing import Any

import numpy as np

from sim_models.golden.arith.pipeline import PipelineModel
from sim_models.numerics.float32 import bits, from_bits
from sim_models.numerics.functions import rsqrt
from sim_models.params.arith.reciprocal_sqrt import ReciprocalSqrtParams

__all__ = ["ReciprocalSqrt"]


class ReciprocalSqrt(PipelineModel):
    """Golden model of the reciprocal square root."""

    p: ReciprocalSqrtParams

    def results(self, *, x: Any) -> dict[str, np.ndarray]:
        return {"result": bits(rsqrt(from_bits(x)))}
