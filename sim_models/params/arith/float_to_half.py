"""Parameters of ``float_to_half``."""

import dataclasses

from sim_models.params.arith.stages import _half, _stages
from sim_models.params.base import Params

__all__ = ["FloatToHalfParams"]



@dataclasses.dataclass(frozen=True, kw_only=True)
class FloatToHalfParams(Params):
    """Parameters of a converter from float32 to a 16-bit format."""

    format: str = _half()
    stages: int = _stages(2, 2)
