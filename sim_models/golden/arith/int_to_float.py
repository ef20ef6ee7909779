"""Golden model of the conversion from integers to float32."""

from typing import Any

import numpy as np

from sim_models.golden.arith.pipeline import PipelineModel
from sim_models.numerics.convert import int_to_float32
from sim_models.numerics.float32 import bits
from sim_models.params.arith.int_to_float import IntToFloatParams

__all__ = ["IntToFloat"]


class IntToFloat(PipelineModel):
    """Golden model of the conversion from integers to float32."""

    p: IntToFloatParams

    def results(self, *, value: Any) -> dict[str, np.ndarray]:
        code = np.asarray(value).astype(np.int64)
        half = 1 << (self.p.width - 1)
        return {"result": bits(int_to_float32((code ^ half) - half))}
