"""Random traffic for the Shared Pool that keeps its rules, one :class:`Inputs` a cycle."""

import dataclasses
from typing import Any

import numpy as np

from sim_models.golden.manager.pools.shared_pool import Inputs, Outputs, SharedPool, Token
from sim_models.params.manager.pools.pool import PoolParams
from sim_models.params.manager.pools.shared_pool import SharedPoolParams

__all__ = ["CHECKED", "Mix", "Traffic", "expected", "packed_eligible", "packed_selected", "packed_token",
           "packed_verdict"]

#: outputs in the order of :func:`expected`
CHECKED = ("insert__ready", "flush__ready", "verdict__ready", "start__ready", "selected__valid",
           "selected__payload", "match", "match_count", "match_locked", "match_first", "match_token", "used",
           "locked", "full", "selecting")


@dataclasses.dataclass(frozen=True)
class Mix:
    """How often what is offered, per cycle, and to how many requests."""

    insert: float = 0.5
    flush: float = 0.02
    verdict: float = 0.3
    start: float = 0.1
    ready: float = 0.8
    #: probability that a request takes no part in rounds, drawn anew now and then
    ineligible: float = 0.0
    #: probability that all tokens of a verdict are accepted, and then that the bonus matches
    accepted: float = 0.7
    bonus: float = 0.6
    requests: int = 1 << 8
    capacity: int = 1 << 12
    aging: int = 0
    #: steps of H: few make many ties
    levels: int = 6


class Traffic:
    """Draws what is offered; what is not taken stays as it is.

    Parameters
    ----------
    model:
        The pool whose state decides what makes sense; it is stepped by :meth:`cycle`.
    gen:
        Source of randomness.
    """

    def __init__(self, model: SharedPool, gen: np.random.Generator) -> None:
        self.model, self.gen = model, gen
        self.serial = 0
        self.restart()

    def restart(self) -> None:
        """Forget what is offered: the pool was reset."""
        self.held: dict[str, Any] = {}
        self.ineligible: frozenset[int] = frozenset()

    def draw(self, mix: Mix) -> Inputs:
        """What stands at the inputs in the next cycle."""
        gen, p = self.gen, self.model.p
        requests = min(mix.requests, p.requests)
        offers = {"insert": self._token, "flush": lambda _: int(gen.integers(requests)), "verdict": self._verdict,
                  "start": lambda _: int(gen.integers(min(mix.capacity, p.entries) + 1))}
        for name, make in offers.items():
            if name not in self.held and gen.random() < getattr(mix, name):
                offer = make(mix)
                if offer is not None:
                    self.held[name] = offer
        if gen.random() < 0.02:
            self.ineligible = frozenset(np.flatnonzero(gen.random(p.requests) < mix.ineligible).tolist())
        return Inputs(**self.held, selected_ready=bool(gen.random() < mix.ready), ineligible=self.ineligible,
                      aging=min(mix.aging, (1 << p.aging_width) - 1), look=int(gen.integers(requests)))

    def step(self, inputs: Inputs) -> Outputs:
        """Let the model see the inputs, and let go of what it took."""
        outputs = self.model.step(inputs)
        for name in ("insert", "flush", "verdict", "start"):
            if getattr(outputs, f"{name}_ready"):
                self.held.pop(name, None)
        return outputs

    def _token(self, mix: Mix) -> Token:
        gen, p = self.gen, self.model.p
        request = int(gen.integers(min(mix.requests, p.requests)))
        before = self.model.lists[request]
        top, position = (before[-1].token.h, before[-1].token.position + 1) if before else (0x8000, 0)
        self.serial += 1
        h = min(top, int(gen.integers(mix.levels + 1)) * 0x8000 // mix.levels)
        return Token(request, position % (1 << p.position_width), self.serial % (1 << p.token_width), h)

    def _verdict(self, mix: Mix) -> tuple[int, int, bool] | None:
        """A verdict for a request under verification, once the round is over; sometimes for one that is not."""
        gen, model = self.gen, self.model
        if model.selecting or model.ending:
            return None
        locked = [sum(e.locked for e in entries) for entries in model.lists]
        waiting = [r for r, n in enumerate(locked) if n]
        if gen.random() < 0.05:
            waiting = [int(gen.integers(min(mix.requests, model.p.requests)))]
        if not waiting:
            return None
        request = int(gen.choice(waiting))
        if gen.random() < mix.accepted:
            return request, locked[request], bool(gen.random() < mix.bonus)
        return request, int(gen.integers(locked[request] + 1)), False


def packed_token(p: PoolParams, token: Token) -> int:
    """A token as a payload of ``pool_entry``."""
    at = p.request_width, p.request_width + p.position_width, p.request_width + p.position_width + p.token_width
    return token.request | token.position << at[0] | token.token << at[1] | token.h << at[2]


def packed_selected(p: PoolParams, selected: Token | str) -> int:
    """A token, or the end with an entry of zero, as a payload of ``selected_beat``."""
    return packed_token(p, selected) if isinstance(selected, Token) else 1 << p.entry_bits


def packed_eligible(p: SharedPoolParams, i: Inputs) -> int:
    """The requests that take part, a bit each."""
    return (1 << p.requests) - 1 & ~sum(1 << request for request in i.ineligible)


def packed_verdict(p: SharedPoolParams, told: tuple[int, int, bool]) -> int:
    """A verdict as a payload."""
    request, accepted, bonus = told
    return request | accepted << p.request_width | int(bonus) << (p.request_width + p.count_width)


def expected(o: Outputs, got: list[int], p: SharedPoolParams) -> list[int]:
    """The outputs as numbers in the order of :data:`CHECKED`; where one is undefined, what came.

    An entry that comes with the end of a round means nothing and has to be zeroed in ``got``.
    """
    payload = None if o.selected is None else packed_selected(p, o.selected)
    values = [o.insert_ready, o.flush_ready, o.verdict_ready, o.start_ready, o.selected is not None, payload,
              o.match, o.count, o.match_locked, o.first, o.token, o.used, o.locked, o.used == p.entries, o.selecting]
    return [g if v is None else int(v) for g, v in zip(got, values, strict=True)]
