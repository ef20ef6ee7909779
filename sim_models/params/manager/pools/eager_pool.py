"""Parameters of ``eager_pool``."""

import dataclasses

from sim_models.params.base import param
from sim_models.params.manager.pools.pool import PoolParams

__all__ = ["EagerPoolParams"]



@dataclasses.dataclass(frozen=True, kw_only=True)
class EagerPoolParams(PoolParams):
    """Parameters of a micro-batch's slice of the Eager Pool."""

    entries: int = param(128, "entries of this micro-batch", low=1, high=4096, tag="e")
