"""Golden model of the conversion from FP16 or BF16 to float32."""

from typing import Any

import numpy as np

from sim_models.golden.arith.pipeline import PipelineModel
from sim_models.numerics.convert import bf16_to_float32, fp16_from_bits, fp16_to_float32
from sim_models.numerics.float32 import bits
from sim_models.params.arith.half_to_float import HalfToFloatParams

__all__ = ["HalfToFloat"]


class HalfToFloat(PipelineModel):
    """Golden model of the conversion from FP16 or BF16 to float32."""

    p: HalfToFloatParams

    def results(self, *, value: Any) -> dict[str, np.ndarray]:
        x = bf16_to_float32(value) if self.p.format == "bf16" else fp16_to_float32(fp16_from_bits(value))
        return {"result": bits(x)}
