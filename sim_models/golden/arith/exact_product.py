"""Golden model of the exact product of 16-bit numbers."""

from typing import Any

import numpy as np

from sim_models.golden.arith.pipeline import PipelineModel
from sim_models.numerics.convert import bf16_product, fp16_from_bits, fp16_product
from sim_models.numerics.float32 import bits
from sim_models.params.arith.exact_product import ExactProductParams

__all__ = ["ExactProduct"]


class ExactProduct(PipelineModel):
    """Golden model of the exact product of 16-bit numbers."""

    p: ExactProductParams

    def results(self, *, a: Any, b: Any) -> dict[str, np.ndarray]:
        if self.p.format == "bf16":
            return {"result": bits(bf16_product(a, b))}
        return {"result": bits(fp16_product(fp16_from_bits(a), fp16_from_bits(b)))}
