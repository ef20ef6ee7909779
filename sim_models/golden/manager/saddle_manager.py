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

    A result is shown ``latency`` cycles behind its vector's last beat, or when the one before was taken. Beats are
    taken while less than ``results`` vectors are complete and not taken.

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
        self.now = 0
        #: codes and masks of the logits of the vector that has begun
        self._logits: list[tuple[np.ndarray, np.ndarray]] = []
        #: results, and from when on they are shown
        self._results: collections.deque[tuple[int, SoftmaxToken]] = collections.deque()

    @property
    def result(self) -> SoftmaxToken | None:
        """What is shown in this cycle."""
        return self._results[0][1] if self._results and self._results[0][0] <= self.now else None

    @property
    def moves(self) -> bool:
        """Whether a beat can be taken in this cycle."""
        return len(self._results) < self.p.results

    def step(self, beat: LogitsBeat | None, taken: bool) -> None:
        """An edge: a beat is taken (only if ``moves``); whether the result was."""
        if taken:
            self._results.popleft()
        token = self._last(beat) if beat is not None else None
        if token is not None:
            self._results.append((self.now + self.p.latency, token))
        self.now += 1

    @property
    def next_shown(self) -> int | None:
        """The cycle in which the next result is shown; None if there is none on its way."""
        return self._results[0][0] if self._results else None

    def leap(self, cycles: int, logits: tuple[np.ndarray, np.ndarray] | None) -> None:
        """So many cycles at once, in which no result is shown; codes and masks of a beat in each, or nothing."""
        assert self.next_shown is None or self.now + cycles <= self.next_shown, "a result would be shown"
        if logits is not None:
            assert self.moves, "no beats can be taken"
            assert len(logits[0]) == len(logits[1]) == cycles * self.p.lanes, "a beat a cycle"
            self._logits.append(logits)
        self.now += cycles

    def _last(self, beat: LogitsBeat) -> SoftmaxToken | None:
        """The result of the vector whose last beat this is."""
        self._logits.append((np.array(beat.codes, np.uint32),
                             np.array([beat.keep >> lane & 1 for lane in range(self.p.lanes)], bool)))
        if not beat.last:
            return None
        codes, keep = (np.concatenate(parts) for parts in zip(*self._logits, strict=True))
        r = self._unit.results(codes[None], keep[None], [beat.given])
        self._logits = []
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

    @property
    def rests(self) -> bool:
        """Whether nothing happens until a result is shown or something else than logits is offered."""
        return self.manager.rests

    @property
    def softmax_busy(self) -> bool:
        """Whether a vector has begun whose result was not taken."""
        return self._began or bool(self.tags)

    def leap(self, cycles: int, logits: tuple[np.ndarray, np.ndarray] | None = None) -> None:
        """So many cycles of rest at once, before the next result is shown.

        Parameters
        ----------
        logits: uint32 (cycles x lanes,) and bool, or None
            Codes and masks of beats of the vector that has begun, without its last one: one in each of the cycles.
        """
        assert logits is None or self._began, "a vector begins"
        self.softmax.leap(cycles, logits)
        self.manager.leap(cycles, self.softmax_busy)

    def check(self) -> None:
        """As :meth:`sim_models.golden.manager.manager.Manager.check`."""
        self.manager.check()

    def step(self, i: Inputs) -> Outputs:
        """One cycle: what the outputs show with these inputs; then the edge."""
        result = self.softmax.result
        softmax_busy = self.softmax_busy
        logits_ready = self.softmax.moves
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
