"""Parameters of ``float_comparator``."""

import dataclasses

from sim_models.params.arith.stages import _stages
from sim_models.params.base import Params

__all__ = ["FloatComparatorParams"]



@dataclasses.dataclass(frozen=True, kw_only=True)
class FloatComparatorParams(Params):
    """Parameters of a float32 comparator."""

    stages: int = _stages(1, 2)
