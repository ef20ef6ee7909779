"""Parameters of ``reciprocal_sqrt``."""

import dataclasses

from sim_models.params.arith.stages import _stages
from sim_models.params.base import Params

__all__ = ["ReciprocalSqrtParams"]



@dataclasses.dataclass(frozen=True, kw_only=True)
class ReciprocalSqrtParams(Params):
    """Parameters of the reciprocal square root."""

    stages: int = _stages(8, 8)
