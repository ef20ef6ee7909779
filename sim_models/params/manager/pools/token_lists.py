"""Parameters of ``token_lists``."""

import dataclasses

from sim_models.params.base import Params, param

__all__ = ["TokenListsParams"]



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
