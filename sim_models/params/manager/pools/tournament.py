"""Parameters of ``tournament``."""

import dataclasses

from sim_models.params.base import Params, param
from sim_models.params.manager.pools.token_lists import _request_width

__all__ = ["TournamentParams"]



@dataclasses.dataclass(frozen=True, kw_only=True)
class TournamentParams(Params):
    """Parameters of the search for the request with the highest key."""

    request_width: int = _request_width()
    key_width: int = param(25, "bits of a key", low=1, high=64, tag="k")
