"""Parameters of ``pe_lane``."""

import dataclasses

from sim_models.params.base import Params
from sim_models.params.pim.bank.exact_sum import _format

__all__ = ["PELaneParams"]



@dataclasses.dataclass(frozen=True, kw_only=True)
class PELaneParams(Params):
    """Parameters of one lane of the processing element."""

    format: str = _format()

    @property
    def latency(self) -> int:
        """Cycles from operands to term."""
        return 2 if self.format == "int8" else 4

    @property
    def term_width(self) -> int:
        """Signed bits of a term."""
        return 17 if self.format == "int8" else 81
