"""Parameters of the blocks in ``rtl/manager`` (SADDLE 1.2)."""

import dataclasses

from sim_models.params.base import Params, param

__all__ = ["EagerPoolParams", "IntensitySchedulerParams", "PoolParams", "RequestCamParams", "SharedPoolParams",
           "TokenListsParams", "TournamentParams"]

#: bits of H, UQ1.15: 0x8000 is 1.0
H_WIDTH = 16


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
