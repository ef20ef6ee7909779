"""Figures of the Manager on recorded texts, with engines of stated costs."""

import dataclasses
import functools
from pathlib import Path

from sim_models.golden.manager.manager import Switches
from sim_models.golden.manager.saddle_manager import SaddleManager
from sim_models.params.manager.manager import ManagerParams
from sim_models.params.manager.saddle_manager import SaddleManagerParams
from sim_models.specdec.costs import MappedCosts
from sim_models.specdec.fixed import ONE
from sim_models.specdec.traces import RequestTrace, Trace
from tb.common.scoreboard import Mismatch
from tb.manager.manager_engines import Engines, expected_texts
from tb.manager.manager_machine import Machine
from tb.manager.manager_run import run_streams
from tb.manager.saddle_leap import Exposed, Leaps, exposed
from tb.manager.saddle_play import vector

__all__ = ["Intervals", "ManagerMeter"]

Intervals = list[tuple[str, int, int, int]]
"""Kind ("draft", "verify"), micro-batch, begin, end."""


class ManagerMeter:
    """Runs batches of recorded texts through the Verilated Manager.

    Parameters
    ----------
    p:
        The Manager.
    build_root:
        Folder of all builds.
    trace:
        What draft and target say; batches take its requests in turn.

    Members
    -------
    compared: int
        Tokens that were compared with the target's own.
    prompts: int
        Different requests.

    Notes
    -----
    A text that differs from the target's own raises :class:`tb.common.scoreboard.Mismatch`.
    """

    def __init__(self, p: ManagerParams, build_root: Path, trace: Trace) -> None:
        self.p, self.compared, self._build_root = p, 0, build_root
        self.traces, self.prompts = trace.requests, len(trace.requests)

    def run(self, switches: Switches, batch: int, costs: MappedCosts, *, oracle: bool = False, first: int = 0
            ) -> tuple[dict[str, int], Intervals]:
        """Counters, and the intervals of steps and passes, of a batch that begins with request ``first``."""
        engines = self._engines(batch, costs, oracle, first)
        self._machine.restart(switches)
        run_streams(self._machine.sim, self.p, engines, 1 << 40, least=costs.verify(1, 1, 0))
        self._compare(engines)
        return self._machine.counters, engines.intervals

    def decide(self, switches: Switches, batch: int, costs: MappedCosts, vocabulary: int, lanes: int
               ) -> tuple[dict[str, int], Exposed]:
        """Counters of the Manager with softmax unit, and what of its deciding no engine hides.

        Tokens come as ``vocabulary`` logits, ``lanes`` a cycle, in which they have their probabilities. The golden
        model is run, which shows what the RTL shows in every cycle and leaps over those without a decision.
        """
        values = {f.name: getattr(self.p, f.name) for f in dataclasses.fields(ManagerParams)}
        p = SaddleManagerParams(**values, logit_lanes=lanes)
        engines = self._engines(batch, costs, False, 0)
        leaps = Leaps(SaddleManager(p, switches.fitted(p)),
                      lambda _, token, probability: vector(token, probability, vocabulary))
        leaps.run(engines, 1 << 40)
        self._compare(engines)
        return leaps.model.counters, exposed(leaps.deciding, engines.intervals)

    @functools.cached_property
    def _machine(self) -> Machine:
        """The RTL, built when it is needed."""
        common = {f.name: getattr(self.p, f.name) for f in dataclasses.fields(ManagerParams)}
        return Machine(ManagerParams(**common), Switches(), self._build_root)

    def _engines(self, batch: int, costs: MappedCosts, oracle: bool, first: int) -> Engines:
        requests = [self.traces[(first + n) % len(self.traces)] for n in range(batch)]
        if oracle:
            requests = [_foreseen(r) for r in requests]
        return Engines(requests, costs.draft, costs.verify, lanes=self.p.lanes)

    def _compare(self, engines: Engines) -> None:
        for text, want in zip(engines.texts, expected_texts(engines.requests), strict=True):
            if text != want:
                raise Mismatch(f"a text is {text}, the target's own is {want}")
            self.compared += len(text)


def _foreseen(r: RequestTrace) -> RequestTrace:
    """A draft that is certain of what is right, and of nothing else: it ends where the next token would be wrong.

    Only where already the first token is wrong is one drafted in vain: no policy knows a token before it came.
    """
    right = [t == want for (t, _), want in zip(r.draft, r.target, strict=True)]
    ahead = [*right[1:], True]
    draft = tuple((t, ONE if good and more else 0) for (t, _), good, more in zip(r.draft, right, ahead, strict=True))
    return dataclasses.replace(r, draft=draft)
