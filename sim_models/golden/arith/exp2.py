"""Golden model of the power of two."""

from typing import Any

import numpy as np

from sim_models.golden.arith.pipeline import PipelineModel
from sim_models.numerics.convert import fp16_bits, fp16_from_bits
from sim_models.numerics.float32 import bits, from_bits
from sim_models.numerics.functions import exp2, exp2_fp16
from sim_models.params.arith.exp2 import Exp2Params

__all__ = ["Exp2"]


class Exp2(PipelineModel):
    """Golden model of the power of two."""

    p: Exp2Params

    def results(self, *, x: Any) -> dict[str, np.ndarray]:
        if self.p.format == "fp16":
            return {"result": fp16_bits(exp2_fp16(fp16_from_bits(x)))}
        return {"result": bits(exp2(from_bits(x)))}
