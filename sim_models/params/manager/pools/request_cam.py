"""Parameters of ``request_cam``."""

import dataclasses
import itertools

from sim_models.params.manager.pools.token_lists import TokenListsParams

__all__ = ["RequestCamParams"]



@dataclasses.dataclass(frozen=True, kw_only=True)
class RequestCamParams(TokenListsParams):
    """Parameters of the memory that finds the entries of a request."""

    @property
    def parts(self) -> tuple[slice, ...]:
        """Bits of a request's number that share a set of rows: at most 5, since memory in LUTs is 32 deep."""
        count = -(-self.request_width // 5)
        cuts = [self.request_width * n // count for n in range(count + 1)]
        return tuple(slice(low, high) for low, high in itertools.pairwise(cuts))
