"""Speculative decoding of a batch, event by event: the scheduler's decisions on real distributions.

Draft steps and verification passes take the cycles that a cost model gives them. At one instant, finished draft
steps come first (lowest micro-batch first), then the verdicts of a finished pass (lowest request first), then a
pass is started if one is due, then draft steps, of each micro-batch in turn.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from sim_models.specdec.draws import Draws, KeyedDraws, Place
from sim_models.specdec.fixed import quantise
from sim_models.specdec.models import Model, Session, check_batch
from sim_models.specdec.policies import Policy
from sim_models.specdec.pools import Entry
from sim_models.specdec.rules import Greedy, Rule, Verdict, verify
from sim_models.specdec.scheduler import Job, Scheduler, Settings
from sim_models.transformer.decoding import End, end_tokens

__all__ = ["Costs", "Record", "Roofline", "Simulation"]


class Costs(Protocol):
    """Cycles that the engines take, at least 1."""

    def draft(self, requests: int, rows: int) -> int:
        """A draft step; ``rows`` is more than ``requests`` where the draft has to catch up."""
        ...

    def verify(self, requests: int, rows: int) -> int:
        """A verification pass."""
        ...


@dataclasses.dataclass(frozen=True)
class Roofline:
    """Each engine takes a least time, or a time per row when that is more.

    Members
    -------
    draft_fixed, verify_fixed: int
        Cycles to read the weights once: what a bandwidth-bound step costs.
    draft_row, verify_row: int
        Cycles of a row's arithmetic: what a compute-bound step costs for each row.
    """

    draft_fixed: int = 1
    draft_row: int = 1
    verify_fixed: int = 8
    verify_row: int = 1

    def draft(self, requests: int, rows: int) -> int:
        return max(self.draft_fixed, self.draft_row * rows)

    def verify(self, requests: int, rows: int) -> int:
        return max(self.verify_fixed, self.verify_row * rows)


class Record(NamedTuple):
    """A verdict.

    Members
    -------
    time: int
        Cycle at which the pass ended.
    passed: int
        Number of the pass.
    request: int
    drafts: tuple of Entry
        What was dispatched.
    accepted: int
    matches: bool
        As in :class:`rules.Verdict`.
    emitted: tuple of int
        The accepted tokens and the one behind them, up to an end token or the length limit.
    """

    time: int
    passed: int
    request: int
    drafts: tuple[Entry, ...]
    accepted: int
    matches: bool
    emitted: tuple[int, ...]


@dataclasses.dataclass
class _Context:
    """A request's tokens and the two models' caches.

    ``tokens`` holds prompt, emitted and live draft tokens; ``q`` the distributions of the live ones; ``seen``
    the tokens that the draft's cache holds.
    """

    prompt: int
    tokens: list[int]
    target: Session
    draft: Session
    foresight: Session | None
    seen: list[int]
    emitted: int = 0
    q: list[NDArray[np.float64]] = dataclasses.field(default_factory=list)

    @property
    def known(self) -> int:
        """Tokens that are certain: prompt and emitted."""
        return self.prompt + self.emitted


class Simulation:
    """A batch of requests through draft, Manager and target.

    Parameters
    ----------
    draft, target: Model
        Of one vocabulary. Where the draft's context ends, the target goes on alone (d = 0).
    prompts: list of lists of int
        At least one token each. All but the last token of each is in both caches when the clock starts.
    limits: int or list of int
        Tokens wanted of each request.
    policy: Policy
    settings: Settings
    rule, draws, costs, end:
        Greedy decoding, seed 0, :class:`Roofline` and no end token unless given; ``end`` may be several tokens.
    engines: int or None
        Draft steps that can be under way at once; one for each micro-batch unless given.

    Members
    -------
    now: int
        Cycles since the start.
    log: list of Record
    draft_busy, verify_busy: int
        Cycles of all draft steps and of all passes that have ended.

    Raises
    ------
    ValueError
        What :func:`models.check_batch` refuses, an end token that is none of the vocabulary, or no engine.
    """

    def __init__(self, draft: Model, target: Model, prompts: Sequence[Sequence[int]], limits: int | Sequence[int],
                 policy: Policy, settings: Settings | None = None, *, rule: Rule | None = None,
                 draws: Draws | None = None, costs: Costs | None = None, end: End = None,
                 engines: int | None = None) -> None:
        limits = [limits] * len(prompts) if isinstance(limits, int) else list(limits)
        check_batch(draft, target, prompts, limits)
        settings = settings or Settings()
        if engines is not None and engines < 1:
            raise ValueError(f"at least 1 draft engine is needed, not {engines}")
        self.draft_model, self.target_model = draft, target
        self.rule, self.draws, self.costs = rule or Greedy(), draws or KeyedDraws(), costs or Roofline()
        self.engines = engines or settings.lanes
        self.scheduler = Scheduler(settings, policy, [(len(p), n) for p, n in zip(prompts, limits, strict=True)],
                                   end_tokens(end, target.vocab_size), _horizon(draft, target))
        self.contexts = [self._context(i, list(p), p[:-1], p[:-1] if _fits(draft, len(p) - 1) else [])
                         for i, p in enumerate(prompts)]
        self.log: list[Record] = []
        self.now = self.draft_busy = self.verify_busy = 0
        #: what is under way: (end, jobs) of each micro-batch, (end, tokens by request) of the pass
        self.steps: list[tuple[int, tuple[Job, ...]] | None] = [None] * settings.lanes
        self.passed: tuple[int, dict[int, list[Entry]]] | None = None
        self._start()

    @property
    def outputs(self) -> list[list[int]]:
        """Tokens emitted so far, by request."""
        return [c.tokens[c.prompt:c.known] for c in self.contexts]

    @property
    def done(self) -> bool:
        """Whether all requests are complete."""
        return not self.scheduler.live()

    def run(self) -> list[list[int]]:
        """Go on until all requests are complete: their tokens."""
        while not self.done:
            self.step()
        return self.outputs

    def step(self) -> None:
        """Go on to the next instant at which something ends."""
        ends = [s[0] for s in (*self.steps, self.passed) if s]
        self.now = min(ends)
        for lane, step in enumerate(self.steps):
            if step and step[0] == self.now:
                self.steps[lane] = None
                for job in step[1]:
                    self._finish_draft(job)
        if self.passed and self.passed[0] == self.now:
            drafts, self.passed = self.passed[1], None
            for request, entries in drafts.items():
                self._finish_verification(request, entries)
        self._start()

    def _start(self) -> None:
        """Start what can be started."""
        drafts = self.scheduler.dispatch()
        if drafts:
            cycles = self.costs.verify(len(drafts), len(drafts) + sum(map(len, drafts.values())))
            self.passed = self.now + cycles, drafts
            self.verify_busy += cycles
        for lane in self.scheduler.draft_order():
            if self.steps[lane] is None and sum(s is not None for s in self.steps) < self.engines:
                jobs = self.scheduler.begin_drafts(lane)
                if jobs:
                    contexts = [self.contexts[j.request] for j in jobs]
                    cycles = self.costs.draft(len(jobs), sum(len(c.tokens) - c.draft.length for c in contexts))
                    self.steps[lane] = self.now + cycles, tuple(jobs)
                    self.draft_busy += cycles
        self.check()

    def _finish_draft(self, job: Job) -> None:
        """A draft token has come: let the draft take in what it has not seen, and choose."""
        c = self.contexts[job.request]
        if not self.scheduler.valid(job):
            self.scheduler.drafted(job, 0, 0)
            return
        place, rows = Place(job.request, len(c.tokens), job.branch), c.tokens[c.draft.length:]
        q = c.draft.extend(rows)[-1]
        c.seen += rows
        token = self.rule.draft(q, self.draws, place)
        right = True
        if c.foresight:
            p = c.foresight.extend(c.tokens[c.foresight.length:])[-1]
            right = self.rule.accepts(token, q, p, self.draws, place)
        c.tokens.append(token)
        c.q.append(q)
        self.scheduler.drafted(job, token, quantise(float(q[token])), entropy=_entropy(q), right=right)

    def _finish_verification(self, request: int, entries: list[Entry]) -> None:
        """Run the target on a request's rows, and carry the verdict into pools and caches."""
        c, n = self.contexts[request], len(entries)
        assert [e.token for e in entries] == c.tokens[c.known:c.known + n], (request, entries)
        p = c.target.extend(c.tokens[c.known - 1:c.known + n])
        place = Place(request, c.known, self.scheduler.requests[request].branch)
        live = list(zip(c.tokens[c.known:], c.q, strict=True))
        verdict = self.judge(place, live[:n], live[n] if len(live) > n else None, p)
        emitted = self.scheduler.verdict(request, *verdict)
        passed = self.scheduler.counters.passes
        self.log.append(Record(self.now, passed, request, tuple(entries), verdict.accepted, verdict.matches,
                               tuple(emitted)))
        keep = verdict.matches and not self.scheduler.requests[request].done
        tail = slice(c.known + n + 1, None)
        tokens, q = (c.tokens[tail], c.q[n + 1:]) if keep else ([], [])
        c.tokens[c.known:] = [*emitted, *tokens]
        c.q = q
        c.emitted += len(emitted)
        self._roll_back(c)

    def judge(self, place: Place, drafts: list[tuple[int, Any]], waiting: tuple[int, Any] | None,
              p: NDArray[np.float64]) -> Verdict:
        """The verdict on a request; see :func:`rules.verify`."""
        return verify(self.rule, self.draws, place, drafts, waiting, p)

    def _roll_back(self, c: _Context) -> None:
        """Take rejected positions out of the caches.

        The target has seen all but the last token. So has the draft, unless a token that it has not seen was
        accepted or emitted behind its last one: those it takes in with its next step.
        """
        c.target.roll_back(c.known - 1)
        length = min(c.draft.length, len(c.tokens) - 1)
        c.draft.roll_back(length)
        del c.seen[length:]
        if c.foresight:
            c.foresight.roll_back(min(c.foresight.length, len(c.tokens) - 1))

    def check(self) -> None:
        """Assert the bookkeeping of pools and caches."""
        self.scheduler.check()
        for c, r in zip(self.contexts, self.scheduler.requests, strict=True):
            assert c.target.length == c.known - 1, (r, c.target.length, c.known)
            assert len(c.tokens) == c.known + r.live == r.base + r.live, (r, c.tokens)
            assert c.draft.length == len(c.seen) < len(c.tokens), (r, c.draft.length, c.seen)
            assert c.seen == c.tokens[:len(c.seen)], (r, c.seen, c.tokens)

    def _context(self, request: int, tokens: list[int], target_seen: Sequence[int],
                 draft_seen: Sequence[int]) -> _Context:
        """A context whose caches hold the given tokens."""
        foresees = self.scheduler.policy.foresees
        return _Context(len(tokens), tokens, _opened(self.target_model, request, target_seen),
                        _opened(self.draft_model, request, draft_seen),
                        _opened(self.target_model, request, draft_seen) if foresees else None, list(draft_seen))

    def state(self) -> tuple[Any, ...]:
        """All that the future depends on, as a hashable value; times count from now."""
        steps = tuple(s and (s[0] - self.now, s[1]) for s in self.steps)
        passed = self.passed and (self.passed[0] - self.now,
                                  tuple((r, tuple(e)) for r, e in self.passed[1].items()))
        contexts = tuple((c.prompt, c.emitted, tuple(c.tokens), tuple(c.seen), tuple(q.tobytes() for q in c.q))
                         for c in self.contexts)
        return self.scheduler.state(), steps, passed, contexts

    def load_state(self, state: tuple[Any, ...]) -> None:
        """Go on from what :meth:`state` gave, at time 0; log and counters are not part of it."""
        scheduler, steps, passed, contexts = state
        self.scheduler.load_state(scheduler)
        self.now = 0
        self.steps = list(steps)
        self.passed = passed and (passed[0], {r: list(e) for r, e in passed[1]})
        self.contexts = []
        for request, (prompt, emitted, tokens, seen, q) in enumerate(contexts):
            c = self._context(request, list(tokens), tokens[:prompt + emitted - 1], seen)
            c.prompt, c.emitted = prompt, emitted
            # each token keeps the distribution that it was drawn from; one computed anew may be another
            c.q = [np.frombuffer(row) for row in q]
            self.contexts.append(c)


def _opened(model: Model, request: int, tokens: Sequence[int]) -> Session:
    """A context that holds some tokens."""
    session = model.open(request)
    if tokens:
        session.extend(list(tokens))
    return session


def _entropy(q: NDArray[np.float64]) -> float:
    """In nats."""
    positive = q[q > 0]
    return float(-(positive * np.log(positive)).sum())


def _fits(model: Model, tokens: int) -> bool:
    """Whether a context can hold so many tokens."""
    return model.positions is None or tokens <= model.positions


def _horizon(draft: Model, target: Model) -> int | None:
    """First position that cannot be drafted.

    A token is drafted when all before it are in the draft's context, and verified when it is in the target's too.
    """
    drafted = None if draft.positions is None else draft.positions + 1
    return min((n for n in (drafted, target.positions) if n is not None), default=None)
