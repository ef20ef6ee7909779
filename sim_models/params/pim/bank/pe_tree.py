"""Parameters of ``pe_tree``."""

import dataclasses

from sim_models.params.base import Params, param
from sim_models.params.pim.bank.exact_sum import _format
from sim_models.params.pim.bank.pe_lane import PELaneParams

__all__ = ["PETreeParams"]



@dataclasses.dataclass(frozen=True, kw_only=True)
class PETreeParams(Params):
    """Parameters of the adder tree of the processing element."""

    format: str = _format()
    lanes: int = param(16, "terms to add, a power of two", low=1, high=64, tag="n")

    @property
    def levels(self) -> int:
        """Levels of adders."""
        return self.lanes.bit_length() - 1

    @property
    def latency(self) -> int:
        """Cycles from terms to total."""
        return (self.levels + 1) // 2

    @property
    def lane(self) -> PELaneParams:
        """Parameters of the lanes."""
        return PELaneParams(format=self.format)
