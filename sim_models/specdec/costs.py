"""Cycles of draft steps and verification passes where operators can run near the banks or on tiles (SADDLE IV-C).

Near the banks a weight meets one row in the cycle in which it is read: time grows with the rows. Tiles read
``ratio`` times slower and use each weight for all rows of a step, until they are bound by their arithmetic. So the
crossover is at ``ratio`` rows for each weight (papers: 18 TB/s and 2 TB/s a device).
"""

import dataclasses

__all__ = ["PAPER", "PIM", "RATIO", "TILES", "MappedCosts"]

PIM, TILES = 0, 1
#: bandwidth near the banks over that of the tiles, in SADDLE
RATIO = 9


@dataclasses.dataclass(frozen=True, kw_only=True)
class MappedCosts:
    """Costs in cycles.

    Members
    -------
    fc: int
        The draft's FC layers near the banks, a request.
    draft_attention: int
        The draft's attention, always near the banks, a request.
    weights: int
        The target's FC layers, always on tiles: reading the weights.
    row: int
        The target's FC layers: the arithmetic of a row, which counts when all rows take longer than the weights.
    attention: int
        The target's attention near the banks, a row; on tiles ``ratio`` times that for a request, whatever its rows.
    communication: int
        Between draft and target, a draft step: the time in which its tokens travel.
    ratio: int
        Bandwidth near the banks over that of the tiles.
    """

    fc: int
    draft_attention: int
    weights: int
    row: int
    attention: int
    communication: int = 0
    ratio: int = RATIO

    def draft(self, requests: int, place: int) -> int:
        """A step of so many requests, with the FC layers in a place."""
        return (self.fc * (self.ratio if place == TILES else requests) + self.draft_attention * requests
                + self.communication)

    def verify(self, requests: int, rows: int, place: int) -> int:
        """A pass with so many requests and rows, with the attention in a place."""
        return (max(self.weights, self.row * rows)
                + self.attention * (self.ratio * requests if place == TILES else rows))

    @property
    def free_rows(self) -> int:
        """Rows that the tiles take in the time in which the weights are read."""
        return self.weights // self.row

    def scaled(self, divisor: int) -> "MappedCosts":
        """The same, so many times faster."""
        faster = {f.name: max(1, round(getattr(self, f.name) / divisor))
                  for f in dataclasses.fields(self) if f.name not in ("communication", "ratio")}
        return dataclasses.replace(self, **faster, communication=round(self.communication / divisor))


#: OPT-66B and OPT-1.3B in FP16, 1,024 tokens of context, at 1 GHz: 40 stacks with 144 TB/s, 8 GPUs with 16 TB/s and
#: 2.5 PFLOPS (SADDLE VI): 131.4 and 2.62 GB of weights, 2.42 and 0.2 GB of keys and values a request
PAPER = MappedCosts(fc=18_200, draft_attention=1_400, weights=8_210_000, row=52_600, attention=16_800)
