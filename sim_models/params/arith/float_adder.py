"""Parameters of ``float_adder``."""

import dataclasses

from sim_models.params.arith.stages import _stages
from sim_models.params.base import Params

__all__ = ["FloatAdderParams"]



@dataclasses.dataclass(frozen=True, kw_only=True)
class FloatAdderParams(Params):
    """Parameters of a float32 adder."""

    stages: int = _stages(4, 6)
