"""Golden model of the float32 adder."""

from typing import Any

import numpy as np

from sim_models.golden.arith.pipeline import PipelineModel
from sim_models.numerics.float32 import add, bits, from_bits
from sim_models.params.arith.float_adder import FloatAdderParams

__all__ = ["FloatAdder"]


class FloatAdder(PipelineModel):
    """Golden model of the float32 adder."""

    p: FloatAdderParams

    def results(self, *, a: Any, b: Any) -> dict[str, np.ndarray]:
        return {"result": bits(add(from_bits(a), from_bits(b)))}
