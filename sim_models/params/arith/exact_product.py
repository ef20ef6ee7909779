"""Parameters of ``exact_product``."""

import dataclasses

from sim_models.params.arith.stages import _half, _stages
from sim_models.params.base import Params

__all__ = ["ExactProductParams"]



@dataclasses.dataclass(frozen=True, kw_only=True)
class ExactProductParams(Params):
    """Parameters of a multiplier of two 16-bit numbers into float32."""

    format: str = _half()
    stages: int = _stages(3, 3)
