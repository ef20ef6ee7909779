"""Parameters of the blocks in ``rtl/manager`` (SADDLE 1.2)."""

import dataclasses
import itertools

from sim_models.params.arith import (
    LOG2_E,
    Exp2Params,
    FloatAdderParams,
    FloatMaximumParams,
    FloatMultiplierParams,
    FloatToIntParams,
    ReciprocalParams,
)
from sim_models.params.base import ParamError, Params, param
from sim_models.params.memory import FifoParams

__all__ = ["H_WIDTH", "LOG2_E", "SOFTMAX_RISE", "TAU_ENTRIES", "DraftControllerParams", "EagerPoolParams",
           "IntensitySchedulerParams", "ManagerParams", "ManagerRegistersParams", "PoolParams", "RequestCamParams",
           "SaddleManagerParams", "SharedPoolParams", "SoftmaxUnitParams", "TokenListsParams", "TournamentParams"]

#: bits of H, UQ1.15: 0x8000 is 1.0
H_WIDTH = 16
#: float32 code of 32: the rise of the softmax unit's maximum at which it takes a new anchor; e^-32 is 2^-46
SOFTMAX_RISE = 0x42000000
#: thresholds in the draft controller's table
TAU_ENTRIES = 8


def _request_width() -> int:
    return param(7, "bits of a request's number; there are 2 to that power", low=1, high=8, tag="rw")


@dataclasses.dataclass(frozen=True, kw_only=True)
class TokenListsParams(Params):
    """Parameters of the lists of entries, one list a request."""

    entries: int = param(512, "entries of all lists together", low=1, high=4096, tag="e")
    request_width: int = _request_width()

    @property
    def requests(self) -> int:
        """How many requests there can be."""
        return 1 << self.request_width

    @property
    def index_width(self) -> int:
        """Bits of an entry's index."""
        return max(1, (self.entries - 1).bit_length())

    @property
    def count_width(self) -> int:
        """Bits of a number of entries."""
        return self.entries.bit_length()


@dataclasses.dataclass(frozen=True, kw_only=True)
class RequestCamParams(TokenListsParams):
    """Parameters of the memory that finds the entries of a request."""

    @property
    def parts(self) -> tuple[slice, ...]:
        """Bits of a request's number that share a set of rows: at most 5, since memory in LUTs is 32 deep."""
        count = -(-self.request_width // 5)
        cuts = [self.request_width * n // count for n in range(count + 1)]
        return tuple(slice(low, high) for low, high in itertools.pairwise(cuts))


@dataclasses.dataclass(frozen=True, kw_only=True)
class TournamentParams(Params):
    """Parameters of the search for the request with the highest key."""

    request_width: int = _request_width()
    key_width: int = param(25, "bits of a key", low=1, high=64, tag="k")


@dataclasses.dataclass(frozen=True, kw_only=True)
class PoolParams(TokenListsParams):
    """What both pools have in common."""

    token_width: int = param(17, "bits of a token's number; 17 for Llama's vocabulary", low=1, high=32, tag="t")
    position_width: int = param(16, "bits of a position in a text", low=1, high=32, tag="p")

    @property
    def lists(self) -> TokenListsParams:
        """Parameters of the lists inside."""
        return TokenListsParams(entries=self.entries, request_width=self.request_width)

    @property
    def entry_bits(self) -> int:
        """Bits that an entry of the payload holds: request, position, token and H (SADDLE says 16)."""
        return self.request_width + self.position_width + self.token_width + H_WIDTH


@dataclasses.dataclass(frozen=True, kw_only=True)
class SharedPoolParams(PoolParams):
    """Parameters of the Shared Pool."""

    aging_width: int = param(7, "bits of the number of rounds after which a request comes first", low=1, high=16,
                             tag="ag")

    @property
    def age_width(self) -> int:
        """Bits of an age in rounds: enough for every request to be urgent and one served a round."""
        return max(self.aging_width, self.request_width) + 1

    @property
    def storage_bits(self) -> int:
        """Bits of all memories together: what the pool's size really is (SADDLE counts 16 an entry: 1 KB)."""
        rows = sum(1 << (part.stop - part.start) for part in self.cam.parts)
        key = self.tournament.key_width
        tree = sum((key + level) << (self.request_width - level) for level in range(self.request_width))
        entry = self.entry_bits - self.request_width + self.index_width + rows
        request = 2 * (self.count_width + 1) + 3 * self.index_width + self.age_width + H_WIDTH
        return self.entries * entry + self.requests * request + tree

    @property
    def cam(self) -> RequestCamParams:
        """Parameters of the memory that finds the entries of a request."""
        return RequestCamParams(entries=self.entries, request_width=self.request_width)

    @property
    def tournament(self) -> TournamentParams:
        """Parameters of the search for the highest H."""
        return TournamentParams(request_width=self.request_width, key_width=1 + self.age_width + H_WIDTH)


@dataclasses.dataclass(frozen=True, kw_only=True)
class EagerPoolParams(PoolParams):
    """Parameters of a micro-batch's slice of the Eager Pool."""

    entries: int = param(128, "entries of this micro-batch", low=1, high=4096, tag="e")


@dataclasses.dataclass(frozen=True, kw_only=True)
class IntensitySchedulerParams(Params):
    """Parameters of the operator scheduler."""

    request_width: int = _request_width()
    count_width: int = param(10, "bits of a number of draft tokens", low=1, high=13, tag="c")
    whole_width: int = param(8, "bits before the point of a threshold in tokens per request", low=1, high=13, tag="w")
    fraction_width: int = param(4, "bits behind the point of a threshold in tokens per request", low=0, high=8,
                                tag="f")

    @property
    def requests_width(self) -> int:
        """Bits of a number of requests."""
        return self.request_width + 1

    @property
    def threshold_width(self) -> int:
        """Bits of a threshold in tokens per request."""
        return self.whole_width + self.fraction_width


@dataclasses.dataclass(frozen=True, kw_only=True)
class ManagerParams(PoolParams):
    """Parameters of the Manager; ``entries`` is the size of the Shared Pool."""

    lane_width: int = param(2, "bits of a micro-batch's number; a request's are its lowest", low=0, high=4, tag="l")
    eager_entries: int = param(128, "entries of each micro-batch's Eager Pool", low=1, high=4096, tag="ee")
    draft_width: int = param(4, "unverified tokens of a request are at most 2 to this power", low=1, high=6, tag="d")

    def validate(self) -> None:
        """A micro-batch must have a request; positions must tell the tokens of a draft apart."""
        if self.lane_width > self.request_width:
            raise ParamError(f"lane_width must be at most request_width = {self.request_width}, not "
                             f"{self.lane_width}", "lane_width")
        if self.draft_width >= self.position_width:
            raise ParamError(f"draft_width must be below position_width = {self.position_width}, not "
                             f"{self.draft_width}", "draft_width")

    @property
    def lanes(self) -> int:
        """Micro-batches."""
        return 1 << self.lane_width

    @property
    def length_width(self) -> int:
        """Bits of a draft's length."""
        return self.draft_width + 1

    @property
    def rows_width(self) -> int:
        """Bits of a number of rows: a token each and a row for every request."""
        return (self.entries + self.requests).bit_length()

    @property
    def text_depth(self) -> int:
        """Words of the memory of unverified tokens."""
        return self.requests << self.draft_width

    @property
    def shared_pool(self) -> SharedPoolParams:
        """Parameters of the Shared Pool."""
        return SharedPoolParams(entries=self.entries, request_width=self.request_width,
                                token_width=self.token_width, position_width=self.position_width)

    @property
    def eager_pool(self) -> EagerPoolParams:
        """Parameters of a micro-batch's Eager Pool."""
        return EagerPoolParams(entries=self.eager_entries, request_width=self.request_width,
                               token_width=self.token_width, position_width=self.position_width)

    @property
    def controller(self) -> "DraftControllerParams":
        """Parameters of the draft controller."""
        return DraftControllerParams(request_width=self.request_width, token_width=self.token_width,
                                     position_width=self.position_width, length_width=self.length_width)

    @property
    def scheduler(self) -> IntensitySchedulerParams:
        """Parameters of the operator scheduler."""
        return IntensitySchedulerParams(request_width=self.request_width, count_width=self.entries.bit_length())


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


@dataclasses.dataclass(frozen=True, kw_only=True)
class DraftControllerParams(Params):
    """Parameters of the draft controller."""

    request_width: int = _request_width()
    token_width: int = param(17, "bits of a token's number; 17 for Llama's vocabulary", low=1, high=32, tag="t")
    position_width: int = param(16, "bits of a position in a text", low=1, high=32, tag="p")
    length_width: int = param(7, "bits of the length of a draft", low=1, high=12, tag="l")

    @property
    def requests(self) -> int:
        """How many requests there can be."""
        return 1 << self.request_width

    @property
    def load_width(self) -> int:
        """Bits of a number of requests."""
        return self.request_width + 1

    @property
    def pool(self) -> PoolParams:
        """Parameters of a pool with the same entries."""
        return PoolParams(request_width=self.request_width, token_width=self.token_width,
                          position_width=self.position_width)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ManagerRegistersParams(ManagerParams):
    """Parameters of the Manager whose registers they are."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class SaddleManagerParams(ManagerParams):
    """Parameters of the Manager with softmax unit and registers."""

    logit_lanes: int = param(8, "logits a cycle, a power of two", low=1, high=16, tag="n")

    def validate(self) -> None:
        """Those of the softmax unit too."""
        super().validate()
        if not 5 <= self.token_width <= 20:
            raise ParamError(f"token_width must be from 5 to 20 with a softmax unit, not {self.token_width}",
                             "token_width")
        if self.logit_lanes & (self.logit_lanes - 1):
            raise ParamError(f"logit_lanes must be a power of two, not {self.logit_lanes}", "logit_lanes")

    @property
    def manager(self) -> ManagerParams:
        """Parameters of the Manager inside."""
        return ManagerParams(**self._common)

    @property
    def registers(self) -> ManagerRegistersParams:
        """Parameters of the registers."""
        return ManagerRegistersParams(**self._common)

    @property
    def softmax(self) -> SoftmaxUnitParams:
        """Parameters of the softmax unit."""
        return SoftmaxUnitParams(lanes=self.logit_lanes, token_width=self.token_width)

    @property
    def tags(self) -> FifoParams:
        """Parameters of the queue of requests whose logits are complete."""
        return FifoParams(width=self.request_width, depth=8)

    @property
    def _common(self) -> dict[str, int]:
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(ManagerParams)}
