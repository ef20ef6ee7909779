"""Golden model of the Manager with softmax unit and interrupt, cycle by cycle.

Results come from the softmax unit's golden model, decisions from the Manager's; here is when results arrive. The
registers' side has a model of its own (:mod:`sim_models.golden.manager.manager_registers`): settings are given at
once.
"""

import collections
import dataclasses

import numpy as np

from sim_models.golden.manager import manager
from sim_models.golden.manager.manager_ports import Switches
from sim_models.golden.manager.softmax.softmax_unit import SoftmaxUnit
from sim_models.params.manager.saddle_manager import SaddleManagerParams
from sim_models.params.manager.softmax.softmax_unit import SoftmaxUnitParams

__all__ = ["Inputs", "LogitsBeat", "Outputs", "SaddleManager", "SoftmaxPipeline", "SoftmaxToken"]


@dataclasses.dataclass(frozen=True)
class LogitsBeat:
    """Logits of a request.

    Members
    -------
    codes: tuple of int
        Float32 codes, a lane each.
    keep: int
        Which of them count, a bit each.
    given: int
        The token that was sampled; -1 for that of the largest logit.
    """

    request: int
    codes: tuple[int, ...]
    keep: int
    last: bool
    given: int = -1


@dataclasses.dataclass(frozen=True)
class Inputs:
    """What stands at the inputs in a cycle; fields as of :class:`sim_models.golden.manager.manager.Inputs`."""

    requests: tuple[int, int, int, int] | None = None
    logits: LogitsBeat | None = None
    verdicts: tuple[int, int, int, bool] | None = None
    draft_ready: bool = True
    verify_ready: bool = True
    emitted_ready: bool = True


@dataclasses.dataclass(frozen=True)
class Outputs:
    """What the outputs show before the edge that ends a cycle; as of
    :class:`sim_models.golden.manager.manager.Outputs`."""

    requests_ready: bool
    logits_ready: bool
    verdicts_ready: bool
    draft: tuple[int, int, int, int] | None
    verify: tuple[int, int, int, int] | None
    emitted: tuple[int, int, int, int, int] | None
    busy: bool
    mapping: tuple[int, int]
    irq: bool


@dataclasses.dataclass(frozen=True)
class SoftmaxToken:
    """A token, its probability in UQ1.15, and whether its vector had no logit that counts."""

    token: int
    p: int
    masked: bool


class SoftmaxPipeline:
    """When the softmax unit takes beats and shows results.

    Scan and sum are one pipeline that stands while its last stage has a complete vector and the division is not
    free; the division takes one vector at a time and is free again when its result was taken.

    Parameters
    ----------
    p:
        Parameters of the softmax unit.
    """

    def __init__(self, p: SoftmaxUnitParams) -> None:
        self.p, self._unit = p, SoftmaxUnit(p)
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.stages: collections.deque[SoftmaxToken | None] = collections.deque(
            [None] * (self.p.scan_cycles + self.p.sum_cycles))
        self.beats: list[LogitsBeat] = []
        self.result: SoftmaxToken | None = None
        self._dividing: SoftmaxToken | None = None
        self._left = 0

    @property
    def moves(self) -> bool:
        """Whether a beat can be taken in this cycle."""
        return self.stages[-1] is None or self._free

    @property
    def _free(self) -> bool:
        return self._dividing is None and self.result is None

    def step(self, beat: LogitsBeat | None, taken: bool) -> None:
        """An edge: a beat is taken (only if ``moves``); whether the result was."""
        moves, free = self.moves, self._free
        if taken:
            self.result = None
        if self._dividing is not None:
            self._left -= 1
            if not self._left:
                self.result, self._dividing = self._dividing, None
        if free and self.stages[-1] is not None:
            self._dividing, self._left = self.stages[-1], self.p.finish_cycles - 1
        if moves:
            self.stages.pop()
            self.stages.appendleft(self._last(beat) if beat is not None else None)

    def _last(self, beat: LogitsBeat) -> SoftmaxToken | None:
        """The result of the vector whose last beat this is."""
        self.beats.append(beat)
        if not beat.last:
            return None
        codes = np.array([code for b in self.beats for code in b.codes], np.uint32)
        keep = np.array([b.keep >> lane & 1 for b in self.beats for lane in range(self.p.lanes)], bool)
        r = self._unit.results(codes[None], keep[None], [beat.given])
        self.beats = []
        return SoftmaxToken(int(r.token[0]), int(r.p[0]), bool(r.masked[0]))


class SaddleManager:
    """The Manager whole.

    Parameters
    ----------
    p:
        Parameters of the block.
    switches:
        Settings, which stay.
    interrupt, error_interrupt: bool
        Whether they are enabled; ``acknowledged`` and ``errors_acknowledged`` may be changed between cycles.
    """

    def __init__(self, p: SaddleManagerParams, switches: Switches, *, interrupt: bool = False,
                 error_interrupt: bool = False) -> None:
        self.p, self.interrupt, self.error_interrupt = p, interrupt, error_interrupt
        self.acknowledged = self.errors_acknowledged = 0
        self.softmax, self.manager = SoftmaxPipeline(p.softmax), manager.Manager(p.manager, switches)
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.softmax.reset()
        self.manager.reset()
        self.tags: collections.deque[int] = collections.deque()
        self._began = self._irq = False
        #: what the counters of completed requests and of illegal beats show
        self._shown = (0, 0)

    @property
    def counters(self) -> dict[str, int]:
        """The performance counters."""
        return self.manager.counters

    def check(self) -> None:
        """As :meth:`sim_models.golden.manager.manager.Manager.check`."""
        self.manager.check()

    def step(self, i: Inputs) -> Outputs:
        """One cycle: what the outputs show with these inputs; then the edge."""
        result = self.softmax.result
        softmax_busy = self._began or bool(self.tags)
        logits_ready = self.softmax.moves and len(self.tags) < self.p.tags.depth
        irq = self._irq
        o = self.manager.step(manager.Inputs(
            i.requests, None if result is None else (self.tags[0], result.token, result.p), i.verdicts,
            i.draft_ready, i.verify_ready, i.emitted_ready, softmax_busy))
        # counters show what was two cycles before
        completed, illegal = self._shown
        self._irq = ((self.interrupt and completed != self.acknowledged)
                     or (self.error_interrupt and illegal != self.errors_acknowledged))
        self._shown = self.counters["completed"], self.counters["illegal"]
        if result is not None and o.drafted_ready:
            self.tags.popleft()
            self.counters["masked"] += result.masked
        beat = i.logits if logits_ready else None
        self.softmax.step(beat, result is not None and o.drafted_ready)
        if beat is not None:
            self._began = not beat.last
            if beat.last:
                self.tags.append(beat.request)
        return Outputs(o.requests_ready, logits_ready, o.verdicts_ready, o.draft, o.verify, o.emitted,
                       o.busy or softmax_busy, o.mapping, irq)
