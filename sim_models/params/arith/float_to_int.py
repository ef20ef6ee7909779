"""Parameters of ``float_to_int``."""

import dataclasses

from sim_models.params.arith.stages import _stages
from sim_models.params.base import Params, param

__all__ = ["FloatToIntParams"]



@dataclasses.dataclass(frozen=True, kw_only=True)
class FloatToIntParams(Params):
    """Parameters of a converter from float32 to a signed integer."""

    width: int = param(8, "bits of the integer", low=2, high=32, tag="w")
    stages: int = _stages(2, 3)
