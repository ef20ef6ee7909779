"""Parameters of ``draft_controller``."""

import dataclasses

from sim_models.params.base import Params, param
from sim_models.params.manager.pools.pool import PoolParams
from sim_models.params.manager.pools.token_lists import _request_width

__all__ = ["TAU_ENTRIES", "DraftControllerParams"]

#: thresholds in the draft controller's table
TAU_ENTRIES = 8


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
