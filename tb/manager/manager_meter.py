"""Figures of the Manager on recorded texts, with engines of stated costs."""

import dataclasses
from pathlib import Path

from sim_models.golden.manager import Switches
from sim_models.params.manager import ManagerParams
from sim_models.specdec.fixed import ONE
from sim_models.specdec.simulation import Roofline
from sim_models.specdec.traces import RequestTrace, record, shipped_models
from tb.common.scoreboard import Mismatch
from tb.manager.manager_engines import Engines, expected_texts
from tb.manager.manager_machine import Machine, play

__all__ = ["ManagerMeter"]


class ManagerMeter:
    """Runs batches of the shipped pair through the Verilated Manager.

    Parameters
    ----------
    p:
        The Manager.
    build_root:
        Folder of all builds.
    tokens, prompts:
        Tokens of each request; different prompts that are recorded (a larger batch repeats them).

    Notes
    -----
    A text that differs from the target's own raises :class:`tb.common.scoreboard.Mismatch`.
    """

    def __init__(self, p: ManagerParams, build_root: Path, *, tokens: int, prompts: int) -> None:
        self.p, self.compared = p, 0
        draft, target, texts = shipped_models()
        self.traces = record(draft, target, texts[:prompts], tokens).requests
        self._machine = Machine(p, Switches(), build_root)

    def run(self, switches: Switches, batch: int, costs: Roofline, *, oracle: bool = False
            ) -> tuple[dict[str, int], list[tuple[str, int, int, int]]]:
        """Counters, and the intervals of steps and passes."""
        requests = [self.traces[n % len(self.traces)] for n in range(batch)]
        if oracle:
            requests = [_foreseen(r) for r in requests]
        engines = Engines(requests, lambda n: costs.draft(n, n), costs.verify, lanes=self.p.lanes)
        self._machine.restart(switches)
        play(self._machine, engines, 1 << 30)
        for text, want in zip(engines.texts, expected_texts(requests), strict=True):
            if text != want:
                raise Mismatch(f"a text is {text}, the target's own is {want}")
            self.compared += len(text)
        return self._machine.counters, engines.intervals


def _foreseen(r: RequestTrace) -> RequestTrace:
    """A draft that is certain of what is right, and of nothing else."""
    return dataclasses.replace(r, draft=tuple((t, ONE if t == want else 0)
                                              for (t, _), want in zip(r.draft, r.target, strict=True)))
