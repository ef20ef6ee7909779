"""Parameters of ``sum_rounder``."""

import dataclasses

from sim_models.params.base import param
from sim_models.params.pim.bank.exact_sum import ExactSumParams

__all__ = ["SumRounderParams"]



@dataclasses.dataclass(frozen=True, kw_only=True)
class SumRounderParams(ExactSumParams):
    """Parameters of what rounds an exact sum."""

    stages: int = param(4, "pipeline registers from sum to result", low=1, high=4, tag="s")
