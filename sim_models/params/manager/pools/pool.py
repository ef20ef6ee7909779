"""What the parameters of both pools have in common."""

import dataclasses

from sim_models.params.base import param
from sim_models.params.manager.pools.token_lists import TokenListsParams

__all__ = ["H_WIDTH", "PoolParams"]

#: bits of H, UQ1.15: 0x8000 is 1.0
H_WIDTH = 16


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
