"""Golden model of the maximum of several float32 numbers."""

from typing import Any

import numpy as np

from sim_models.golden.arith.pipeline import PipelineModel
from sim_models.numerics.float32 import argmax, bits, from_bits
from sim_models.params.arith.float_maximum import FloatMaximumParams

__all__ = ["FloatMaximum"]


class FloatMaximum(PipelineModel):
    """Golden model of the maximum of several float32 numbers."""

    p: FloatMaximumParams

    def results(self, *, values: Any, present: Any) -> dict[str, np.ndarray]:
        lanes = np.asarray(present)[..., None] >> np.arange(self.p.lanes, dtype=np.uint64) & 1
        found, number, index = argmax(from_bits(values), lanes.astype(bool))
        return {"found": found.astype(np.uint8), "number": bits(number), "index": index.astype(np.uint8)}
