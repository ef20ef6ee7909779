"""Golden model of the operator scheduler: fractions compared with thresholds, cycle by cycle."""

import dataclasses
from fractions import Fraction

from sim_models.params.manager.intensity_scheduler import IntensitySchedulerParams
from sim_models.spec.manager import Place

__all__ = ["PIM", "TILES", "Inputs", "IntensityScheduler"]

PIM, TILES = Place


@dataclasses.dataclass(frozen=True)
class Inputs:
    """What stands at the inputs in a cycle.

    Members
    -------
    drafting: int or None
        Requests that draft on, after a step.
    round: (tokens, requests) or None
        What a verification is about to take.
    initial: (int, int)
        Mapping of draft FC and target attention while not dynamic.
    fc: (int, int)
        Low and high threshold in requests.
    attention: (int, int)
        Low and high threshold in units of 2^-fraction_width tokens per request.
    """

    drafting: int | None = None
    round: tuple[int, int] | None = None
    dynamic: bool = True
    initial: tuple[int, int] = (PIM, PIM)
    fc: tuple[int, int] = (0, 0)
    attention: tuple[int, int] = (0, 0)


class IntensityScheduler:
    """The scheduler.

    Parameters
    ----------
    p:
        Parameters of the block.

    Attributes
    ----------
    places: list of int
        Where draft FC and target attention run.
    moved: list of bool
        Whether they came from the other side in this cycle.
    """

    def __init__(self, p: IntensitySchedulerParams) -> None:
        self.p = p
        self.reset()

    def reset(self) -> None:
        """Everything near the banks."""
        self.places: list[int] = [PIM, PIM]
        self.moved = [False, False]
        #: for each operator whether the estimate reaches (low, high), None without an estimate
        self._waiting: list[tuple[bool, bool] | None] = [None, None]

    def step(self, i: Inputs) -> None:
        """One clock edge with these inputs; an estimate counts at the edge after its own."""
        for n, reached in enumerate(self._waiting):
            old = self.places[n]
            if not i.dynamic:
                self.places[n] = i.initial[n]
            elif reached is not None:
                self.places[n] = TILES if reached[0 if old == TILES else 1] else PIM
            self.moved[n] = i.dynamic and self.places[n] != old
        unit = Fraction(1, 1 << self.p.fraction_width)
        fc = Fraction(i.drafting) if i.drafting else None
        attention = Fraction(*i.round) if i.round and i.round[1] else None
        self._waiting = [
            None if fc is None else (fc >= i.fc[0], fc >= i.fc[1]),
            None if attention is None else (attention >= i.attention[0] * unit, attention >= i.attention[1] * unit)]
