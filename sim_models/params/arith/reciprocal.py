"""Parameters of ``reciprocal``."""

import dataclasses

from sim_models.params.arith.stages import _stages
from sim_models.params.base import Params

__all__ = ["ReciprocalParams"]



@dataclasses.dataclass(frozen=True, kw_only=True)
class ReciprocalParams(Params):
    """Parameters of the reciprocal."""

    stages: int = _stages(6, 6)
