"""Golden model of the reciprocal."""

from typing import Any

import numpy as np

from sim_models.golden.arith.pipeline import PipelineModel
from sim_models.numerics.float32 import bits, from_bits
from sim_models.numerics.functions import reciprocal
from sim_models.params.arith.reciprocal import ReciprocalParams

__all__ = ["Reciprocal"]


class Reciprocal(PipelineModel):
    """Golden model of the reciprocal."""

    p: ReciprocalParams

    def results(self, *, x: Any) -> dict[str, np.ndarray]:
        return {"result": bits(reciprocal(from_bits(x)))}
