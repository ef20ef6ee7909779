"""Golden model of the conversion from float32 to FP16 or BF16."""

from typing import Any

import numpy as np

from sim_models.golden.arith.pipeline import PipelineModel
from sim_models.numerics.convert import float32_to_bf16, float32_to_fp16, fp16_bits
from sim_models.numerics.float32 import from_bits
from sim_models.params.arith.float_to_half import FloatToHalfParams

__all__ = ["FloatToHalf"]


class FloatToHalf(PipelineModel):
    """Golden model of the conversion from float32 to FP16 or BF16."""

    p: FloatToHalfParams

    def results(self, *, value: Any) -> dict[str, np.ndarray]:
        x = from_bits(value)
        return {"result": float32_to_bf16(x) if self.p.format == "bf16" else fp16_bits(float32_to_fp16(x))}
