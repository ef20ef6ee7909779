"""Parameters of ``half_to_float``."""

import dataclasses

from sim_models.params.arith.stages import _half, _stages
from sim_models.params.base import Params

__all__ = ["HalfToFloatParams"]



@dataclasses.dataclass(frozen=True, kw_only=True)
class HalfToFloatParams(Params):
    """Parameters of a converter from a 16-bit format to float32."""

    format: str = _half()
    stages: int = _stages(1, 2)
