"""Parameters of ``softmax_unit``."""

import dataclasses

from sim_models.params.arith.exp2 import Exp2Params
from sim_models.params.arith.float_adder import FloatAdderParams
from sim_models.params.arith.float_maximum import FloatMaximumParams
from sim_models.params.arith.float_multiplier import FloatMultiplierParams
from sim_models.params.arith.float_to_int import FloatToIntParams
from sim_models.params.arith.reciprocal import ReciprocalParams
from sim_models.params.base import ParamError, Params, param
from sim_models.params.manager.pools.pool import H_WIDTH

__all__ = ["SOFTMAX_RISE", "SoftmaxUnitParams"]

#: float32 code of 32: the rise of the softmax unit's maximum at which it takes a new anchor; e^-32 is 2^-46
SOFTMAX_RISE = 0x42000000


@dataclasses.dataclass(frozen=True, kw_only=True)
class SoftmaxUnitParams(Params):
    """Parameters of the softmax unit."""

    lanes: int = param(8, "logits a cycle, a power of two", low=1, high=16, tag="n")
    token_width: int = param(17, "bits of a token's number; a vocabulary is at most 2 to that power", low=5, high=20,
                             tag="t")

    def validate(self) -> None:
        if self.lanes & (self.lanes - 1):
            raise ParamError(f"lanes must be a power of two, not {self.lanes}", "lanes")

    @property
    def lane_width(self) -> int:
        """Bits of a lane's number."""
        return (self.lanes - 1).bit_length()

    @property
    def fraction_width(self) -> int:
        """Bits of the sum behind the point: all that is cut off of it is less than 2^-18 together."""
        return self.token_width + 19

    @property
    def sum_width(self) -> int:
        """Bits of the sum; a term is below 2."""
        return self.fraction_width + self.token_width + 1

    @property
    def maximum(self) -> FloatMaximumParams:
        """Parameters of the tree that finds a beat's largest logit."""
        return FloatMaximumParams(lanes=self.lanes, stages=min(2, self.lane_width + 1))

    @property
    def adder(self) -> FloatAdderParams:
        """Parameters of the adders."""
        return FloatAdderParams()

    @property
    def multiplier(self) -> FloatMultiplierParams:
        """Parameters of the multipliers."""
        return FloatMultiplierParams()

    @property
    def exp2(self) -> Exp2Params:
        """Parameters of the powers of two."""
        return Exp2Params()

    @property
    def reciprocal(self) -> ReciprocalParams:
        """Parameters of the reciprocal."""
        return ReciprocalParams()

    @property
    def to_int(self) -> FloatToIntParams:
        """Parameters of the rounding to UQ1.15; a sign and a bit for what rounds to above 1."""
        return FloatToIntParams(width=H_WIDTH + 1)

    @property
    def scan_cycles(self) -> int:
        """Cycles until a beat's maximum has met the earlier ones."""
        return self.maximum.stages + self.adder.stages + 2

    @property
    def power_cycles(self) -> int:
        """Cycles of a logit's difference, its product and its power."""
        return self.adder.stages + self.multiplier.stages + self.exp2.stages

    @property
    def sum_cycles(self) -> int:
        """Cycles from the anchor to the sum."""
        return self.power_cycles + 4

    @property
    def finish_cycles(self) -> int:
        """Cycles from the sum to the result."""
        return (2 * self.adder.stages + 3 * self.multiplier.stages + self.exp2.stages + self.reciprocal.stages
                + self.to_int.stages + 3)

    @property
    def latency(self) -> int:
        """Cycles from a vector's last beat to its result."""
        return self.scan_cycles + self.sum_cycles + self.finish_cycles
