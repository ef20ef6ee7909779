"""Parameters of ``shared_pool``."""

import dataclasses

from sim_models.params.base import param
from sim_models.params.manager.pools.pool import H_WIDTH, PoolParams
from sim_models.params.manager.pools.request_cam import RequestCamParams
from sim_models.params.manager.pools.tournament import TournamentParams

__all__ = ["SharedPoolParams"]



@dataclasses.dataclass(frozen=True, kw_only=True)
class SharedPoolParams(PoolParams):
    """Parameters of the Shared Pool."""

    aging_width: int = param(7, "bits of the number of rounds after which a request comes first, 0 for never", low=0,
                             high=16, tag="ag")

    @property
    def age_width(self) -> int:
        """Bits of an age in rounds: enough for every request to be urgent and one served a round."""
        return max(self.aging_width, self.request_width) + 1 if self.aging_width else 0

    @property
    def storage_bits(self) -> int:
        """Bits of all memories together: what the pool's size really is (SADDLE counts 16 an entry: 1 KB)."""
        rows = sum(1 << (part.stop - part.start) for part in self.cam.parts)
        key = self.tournament.key_width
        tree = sum((key + level) << (self.request_width - level) for level in range(self.request_width))
        entry = self.entry_bits - self.request_width + self.index_width + rows
        request = 3 * (self.count_width + 1) + 3 * self.index_width + self.age_width + H_WIDTH
        return self.entries * entry + self.requests * request + tree

    @property
    def cam(self) -> RequestCamParams:
        """Parameters of the memory that finds the entries of a request."""
        return RequestCamParams(entries=self.entries, request_width=self.request_width)

    @property
    def tournament(self) -> TournamentParams:
        """Parameters of the search for the highest H."""
        return TournamentParams(request_width=self.request_width, key_width=1 + self.age_width + H_WIDTH)
