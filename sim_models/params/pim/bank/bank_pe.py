"""Parameters of ``bank_pe``."""

import dataclasses

from sim_models.params.base import ParamError, param
from sim_models.params.pim.bank.exact_sum import ExactSumParams
from sim_models.params.pim.bank.pe_lane import PELaneParams
from sim_models.params.pim.bank.pe_tree import PETreeParams

__all__ = ["BankPEParams"]



@dataclasses.dataclass(frozen=True, kw_only=True)
class BankPEParams(ExactSumParams):
    """Parameters of the processing element of a bank."""

    accumulators: int = param(32, "sums that are kept, a power of two", low=2, high=256, tag="a")

    def validate(self) -> None:
        super().validate()
        if self.accumulators & (self.accumulators - 1):
            raise ParamError(f"accumulators must be a power of two, not {self.accumulators}", "accumulators")

    @property
    def index_width(self) -> int:
        """Bits of an accumulator's number."""
        return self.accumulators.bit_length() - 1

    @property
    def latency(self) -> int:
        """Cycles from a step to when a read may begin that is to find it in its accumulator."""
        return self.lane.latency + self.tree.latency + 1

    @property
    def read_latency(self) -> int:
        """Cycles from ``read_en`` to ``sum``."""
        return 2

    @property
    def lane(self) -> "PELaneParams":
        """Parameters of the lanes."""
        return PELaneParams(format=self.format)

    @property
    def tree(self) -> "PETreeParams":
        """Parameters of the adder tree over the lanes."""
        return PETreeParams(format=self.format, lanes=self.lanes)
