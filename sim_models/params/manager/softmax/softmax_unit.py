"""Parameters of ``softmax_unit``."""

import dataclasses

from sim_models.params.arith.float_maximum import FloatMaximumParams
from sim_models.params.arith.reciprocal import ReciprocalParams
from sim_models.params.base import ParamError, Params, param
from sim_models.params.manager.pools.pool import H_WIDTH
from sim_models.params.memory.fifo import FifoParams

__all__ = ["BANDS", "BAND_WIDTH", "FRACTION_WIDTH", "LARGE_EXPONENT", "LARGE_SHIFT", "LOG2_E_18", "LOG2_E_FRACTION",
           "WHOLE_WIDTH", "SoftmaxUnitParams"]

#: log2(e) in 18 bits, of which 17 are behind the point; the error is 4e-7 of it
LOG2_E_18, LOG2_E_FRACTION = 189097, 17
#: exponent field of float32 logits from 2^28 on: neighbours are at least 32 apart, so their distance need not be
#: exact, and bits 0 to 30 of the code stand for their exponent of two, shifted by so much to the left
LARGE_EXPONENT, LARGE_SHIFT = 155, 6
#: bits before the point of an exponent of two, with its sign
WHOLE_WIDTH = 31 + LARGE_SHIFT + 1
#: bits behind the point of a power's significand
FRACTION_WIDTH = 18
#: a band is 2^BAND_WIDTH exponents of two; sums are kept of so many
BAND_WIDTH, BANDS = 4, 4


@dataclasses.dataclass(frozen=True, kw_only=True)
class SoftmaxUnitParams(Params):
    """Parameters of the softmax unit."""

    lanes: int = param(8, "logits a cycle, a power of two", low=1, high=64, tag="n")
    token_width: int = param(17, "bits of a token's number; a vocabulary is at most 2 to that power", low=5, high=20,
                             tag="t")

    def validate(self) -> None:
        if self.lanes & (self.lanes - 1):
            raise ParamError(f"lanes must be a power of two, not {self.lanes}", "lanes")
        if self.lane_width >= self.token_width:
            raise ParamError(f"lanes must be fewer than the {1 << self.token_width} tokens of "
                             f"{self.token_width} bits, not {self.lanes}", "lanes")

    @property
    def lane_width(self) -> int:
        """Bits of a lane's number."""
        return (self.lanes - 1).bit_length()

    @property
    def term_width(self) -> int:
        """Bits of a power within its band."""
        return FRACTION_WIDTH + (1 << BAND_WIDTH)

    @property
    def sum_width(self) -> int:
        """Bits of the sum of a band."""
        return self.term_width + self.token_width

    @property
    def total_width(self) -> int:
        """Bits of the sum of all bands."""
        return self.sum_width + (1 << BAND_WIDTH) + 1

    @property
    def maximum(self) -> FloatMaximumParams:
        """Parameters of the tree that finds a beat's largest logit."""
        return FloatMaximumParams(lanes=self.lanes, stages=self.lane_width + 1)

    @property
    def reciprocal(self) -> ReciprocalParams:
        """Parameters of the reciprocal."""
        return ReciprocalParams()

    @property
    def results(self) -> int:
        """Vectors that may be on their way, from their last beat until their result is taken."""
        return 16

    @property
    def result_queue(self) -> FifoParams:
        """Parameters of the queue of probabilities."""
        return FifoParams(width=H_WIDTH, depth=self.results)

    @property
    def vector_queue(self) -> FifoParams:
        """Parameters of the queue of all else that is known of a vector: two tokens and two flags."""
        return FifoParams(width=2 * self.token_width + 2, depth=self.results)

    @property
    def exponent_cycles(self) -> int:
        """Cycles from a logit to its exponent of two."""
        return 4

    @property
    def power_cycles(self) -> int:
        """Cycles from a logit to its power of two."""
        return self.exponent_cycles + 3

    @property
    def maximum_cycles(self) -> int:
        """Cycles from a beat to the largest logit of all beats so far."""
        return 1 + self.maximum.stages + 3

    @property
    def band_cycles(self) -> int:
        """Cycles from a beat to the band of the largest logit of all beats so far."""
        return self.maximum_cycles + self.exponent_cycles + 1

    @property
    def sum_cycles(self) -> int:
        """Cycles from that band to the sums of all bands."""
        return 1 + max(1, self.lane_width) + 1

    @property
    def total_cycles(self) -> int:
        """Cycles from the sums of all bands to their sum, normalised."""
        return 8

    @property
    def finish_cycles(self) -> int:
        """Cycles from the sums of all bands to the probability: divided, rounded."""
        return self.total_cycles + self.reciprocal.stages + 5

    @property
    def latency(self) -> int:
        """Cycles from a vector's last beat to its result."""
        return self.band_cycles + self.sum_cycles + self.finish_cycles + 1
