"""Parameters of ``float_multiplier``."""

import dataclasses

from sim_models.params.arith.stages import _stages
from sim_models.params.base import Params

__all__ = ["FloatMultiplierParams"]



@dataclasses.dataclass(frozen=True, kw_only=True)
class FloatMultiplierParams(Params):
    """Parameters of a float32 multiplier."""

    stages: int = _stages(3, 3)
