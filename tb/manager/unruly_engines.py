"""Engines that break the protocol now and then, and a client whose requests sometimes want no token."""

import dataclasses
from typing import Any

from sim_models.golden.manager.manager import END, REQUEST, Inputs, Outputs
from sim_models.params.manager.manager import ManagerParams
from tb.manager.manager_engines import Engines

__all__ = ["UnrulyEngines"]


class UnrulyEngines(Engines):
    """Engines whose stream of tokens and of verdicts also has beats that nobody asked for.

    Each is illegal whenever it is taken: a token of a request that is complete or was never sent, or whose
    micro-batch is at work without it; a verdict on such a request, on one that is not in the pass that is under way,
    or with more accepted tokens than are in it. Before some requests comes one of the same number that wants no
    token.

    Parameters
    ----------
    p:
        The Manager.
    rate: float
        How often an illegal beat is put before what is offered, a cycle.
    args, options:
        As of :class:`Engines`; ``gen`` is needed.

    Members
    -------
    illegal, refused: int
        Illegal beats that were taken; requests that were answered with an empty beat.
    """

    def __init__(self, p: ManagerParams, rate: float, *args: Any, **options: Any) -> None:
        super().__init__(*args, lanes=p.lanes, **options)
        assert self.gen is not None
        self.p, self.rate, self.draws = p, rate, self.gen
        self.illegal = self.refused = 0
        self._bad: list[Any] = [None, None]
        #: whether a stream offered nothing in the cycle before, or was taken: what is offered must stay
        self._free = [True, True]
        #: requests whose token, or whose verdict, is to come: the latter with its rows
        self._stepping: set[int] = set()
        self._owed: set[int] = set()
        self._rows: dict[int, int] = {}
        self._judged: dict[int, int] = {}

    def arrivals(self) -> list[tuple[int, int, int, int]]:
        out = []
        for request in super().arrivals():
            if self.draws.random() < 0.5:
                position = int(self.draws.integers(1 << self.p.position_width))
                stop = int(self.draws.integers(position + 1))
                self.unwanted.append((request[0], position))
                out.append((request[0], position, stop, 1))
            out.append(request)
        return out

    def inputs(self, now: int, ready: float = 1.0) -> Inputs:
        i = super().inputs(now, ready)
        for k, make in enumerate((self._bad_token, self._bad_verdict)):
            if self._bad[k] is None and self._free[k] and self.draws.random() < self.rate:
                self._bad[k] = make()
            self._free[k] = (i.drafted, i.verdicts)[k] is None and self._bad[k] is None
        drafted, verdict = self._bad
        return dataclasses.replace(i, drafted=drafted or i.drafted, verdicts=verdict or i.verdicts)

    def observe(self, now: int, i: Inputs, o: Outputs) -> None:
        if i.drafted is not None and o.drafted_ready:
            self._free[0] = True
            if self._bad[0] is None:
                self._owed.discard(i.drafted[0])
        if i.verdicts is not None and o.verdicts_ready:
            self._free[1] = True
            if self._bad[1] is None:
                self._judged.pop(i.verdicts[0])
        before = len(self.unwanted)
        drafted, verdict = self._bad
        if drafted is not None and o.drafted_ready:
            self.illegal, self._bad[0] = self.illegal + 1, None
        if verdict is not None and o.verdicts_ready:
            self.illegal, self._bad[1] = self.illegal + 1, None
        super().observe(now, dataclasses.replace(
            i, drafted=None if drafted else i.drafted, verdicts=None if verdict else i.verdicts), o)
        self.refused += before - len(self.unwanted)

    def drafts(self, now: int, request: int, position: int, token: int, end: int) -> None:
        super().drafts(now, request, position, token, end)
        if end:
            self._owed |= self._stepping
            self._stepping = set()
        else:
            self._stepping.add(request)

    def verifies(self, now: int, request: int, position: int, token: int, kind: int) -> None:
        super().verifies(now, request, position, token, kind)
        if kind == END:
            self._judged, self._rows = self._rows, {}
        elif kind == REQUEST:
            self._rows[request] = 0
        else:
            self._rows[request] += 1

    def _idle(self) -> list[int]:
        """Requests that are complete or were never sent, and of which no token is to come."""
        sent = {i for i, n in enumerate(self.limits) if n} - self.finished
        return [r for r in range(self.p.requests) if r not in sent | self._owed | self._stepping]

    def _bad_token(self) -> tuple[int, int, int] | None:
        lanes = {r % self.lanes for r in self._owed}
        known = [r for r in range(self.p.requests) if r % self.lanes in lanes and r not in self._owed]
        requests = [*self._idle(), *known]
        if not requests:
            return None
        draws, p = self.draws, self.p
        return int(draws.choice(requests)), int(draws.integers(1 << p.token_width)), int(draws.integers(1 << 16))

    def _bad_verdict(self) -> tuple[int, int, int, bool] | None:
        draws, p = self.draws, self.p
        token, bonus, top = int(draws.integers(1 << p.token_width)), bool(draws.integers(2)), 1 << p.length_width
        others = [r for r in range(p.requests) if r not in self._judged] if self._judged else self._idle()
        cases = [(r, 0) for r in others] + [(r, rows + 1) for r, rows in self._judged.items()]
        if not cases:
            return None
        request, least = cases[int(draws.integers(len(cases)))]
        return request, int(draws.integers(least, top)), token, bonus
