"""Parameters of ``int_to_float``."""

import dataclasses

from sim_models.params.arith.stages import _stages
from sim_models.params.base import Params, param

__all__ = ["IntToFloatParams"]



@dataclasses.dataclass(frozen=True, kw_only=True)
class IntToFloatParams(Params):
    """Parameters of a converter from a signed integer to float32."""

    width: int = param(32, "bits of the integer", low=2, high=32, tag="w")
    stages: int = _stages(3, 3)
