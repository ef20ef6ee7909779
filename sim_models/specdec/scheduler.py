"""What the Manager decides: who drafts, where a token goes, what is verified, what a verdict leaves behind.

No distribution, no clock and no model is known here; the events come from :mod:`simulation` (or from whoever
plays the engines), the decisions go back::

    begin_drafts(lane) --> jobs --> draft engine --> drafted(job, token, p)
                                                        |  not under verification, and room: Shared Pool
                                                        |  otherwise: Eager Pool of the micro-batch
    dispatch() ----------> passes --> verify engine --> verdict(request, accepted, token, matches)
                                                        |  broken draft: flush both pools, H = 1.0, new branch
                                                        |  whole: the waiting tokens stay, eager ones move over

A verification pass has ``capacity`` rows. A request's first row, its last known token, yields a token for certain;
the row of a draft token yields one if the token and all before it pass, which is what its H estimates. Hence first
a row for every request (so d = 0 is legal), in ring order when there are more requests than rows, and the other
rows to the pending tokens of highest H. The bonus distribution of a request tests its first waiting token, so no
row is without use, and a draft that gets no row for its unlikely tokens still moves on by one token a pass.

H is 1.0 where a request has no live token; along a draft it only falls, also where the beginning was accepted.

Liveness: of any ceil(live requests / capacity) passes in a row, each live request is in at least one (without the
Shared Pool: passes of its micro-batch). Every pass yields at least one token for each of its requests.
"""

import dataclasses
import itertools
from operator import attrgetter
from typing import Any, NamedTuple

from sim_models.params.base import Params, param
from sim_models.specdec.fixed import ONE, multiply
from sim_models.specdec.policies import Policy, Step
from sim_models.specdec.pools import EagerPool, Entry, SharedPool
from sim_models.transformer.decoding import End, end_tokens

__all__ = ["Counters", "Job", "Request", "Scheduler", "Settings"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings(Params):
    """Sizes and switches of the Manager."""

    lanes: int = param(1, "micro-batches; request i belongs to micro-batch i mod lanes", low=1, high=128)
    capacity: int = param(64, "rows of a verification pass", low=1, high=4096)
    entries: int = param(512, "entries of the Shared Pool", low=1, high=4096)
    eager_entries: int = param(512, "entries of each micro-batch's Eager Pool", low=1, high=4096)
    max_draft: int = param(16, "unverified tokens of a request", low=0, high=64)
    start: int = param(1, "pending tokens at which an idle verifier starts while requests draft on (eager)", low=1,
                       high=4096)
    shared: bool = param(True, "one pool for all micro-batches; otherwise each is verified alone, when all its "
                               "requests have stopped")
    eager: bool = param(True, "draft on during verification; otherwise draft and target work in turn")
    stop_at_end: bool = param(True, "draft neither behind an end token nor the last token of a request, which the "
                                    "target gives in any case")


class Job(NamedTuple):
    """A draft step of one request; ``branch`` says which draft it belongs to."""

    request: int
    branch: int


@dataclasses.dataclass(slots=True)
class Request:
    """One request.

    Members
    -------
    base: int
        Position of the next token that will be emitted.
    stop: int
        Position at which the request is full.
    branch: int
        Position at which the present draft began; h is the product of probabilities along it.
    live: int
        Draft tokens in the pools.
    verifying, stopped, ended, drafting, done: bool
        In the present pass; told to stop by the policy; its draft holds an end token; a job is out; complete.
    """

    index: int
    lane: int
    base: int
    stop: int
    branch: int
    h: int = ONE
    live: int = 0
    verifying: bool = False
    stopped: bool = False
    ended: bool = False
    drafting: bool = False
    done: bool = False


_request_state = attrgetter(*(f.name for f in dataclasses.fields(Request)))


@dataclasses.dataclass
class Counters:
    """What became of the draft tokens, and what verification took.

    Members
    -------
    drafted, accepted, flushed, stale: int
        Tokens that came; that were emitted; that a verdict removed; that came too late. The rest is in the pools.
    eager: int
        Tokens that went to an Eager Pool.
    passes, rows, served, emitted: int
        Verification passes, their rows and requests; tokens emitted.
    """

    drafted: int = 0
    accepted: int = 0
    flushed: int = 0
    stale: int = 0
    eager: int = 0
    passes: int = 0
    rows: int = 0
    served: int = 0
    emitted: int = 0


class Scheduler:
    """The Manager's decisions.

    Parameters
    ----------
    settings: Settings
    policy: Policy
    lengths: list of (prompt, limit)
        Tokens of each request's prompt; tokens wanted.
    end: End
        The tokens that end a request.
    horizon: int or None
        First position that cannot be drafted, since the models' contexts end there; None if there is none.

    Raises
    ------
    ValueError
        An end token or a limit that is negative.
    """

    def __init__(self, settings: Settings, policy: Policy, lengths: list[tuple[int, int]], end: End = None,
                 horizon: int | None = None) -> None:
        for _, limit in lengths:
            if limit < 0:
                raise ValueError(f"a limit must be at least 0, not {limit}")
        self.settings, self.policy, self.ends, self.horizon = settings, policy, end_tokens(end), horizon
        self.requests = [Request(i, i % settings.lanes, prompt, prompt + limit, prompt, done=limit < 1)
                         for i, (prompt, limit) in enumerate(lengths)]
        self.pool = SharedPool(settings.entries)
        self.eager = [EagerPool(settings.eager_entries) for _ in range(settings.lanes)]
        self.counters = Counters()
        #: where the ring of requests goes on, by micro-batch when each is verified alone; the ring of those
        self.rings = [0] * (1 if settings.shared else settings.lanes)
        self.lane_ring = 0
        #: the micro-batch whose turn it is to begin a draft step
        self.draft_ring = 0

    # Drafting

    def draft_order(self) -> list[int]:
        """Micro-batches in the order in which draft steps begin: each in turn, behind the last one that did."""
        lanes = self.settings.lanes
        return [(self.draft_ring + k) % lanes for k in range(lanes)]

    def begin_drafts(self, lane: int) -> list[Job]:
        """The next draft step of a micro-batch: its requests that draft on, lowest first; empty if it rests."""
        if not self.settings.eager and (self._target_at_work(lane) or self._full()):
            return []
        chosen = self._candidates(lane)
        for r in chosen:
            r.drafting = True
        if chosen:
            self.draft_ring = (lane + 1) % self.settings.lanes
        return [Job(r.index, r.branch) for r in chosen]

    def valid(self, job: Job) -> bool:
        """Whether a job's token is still wanted."""
        r = self.requests[job.request]
        return not r.done and r.branch == job.branch

    def drafted(self, job: Job, token: int, p: int, *, entropy: float = 0.0, right: bool = True) -> None:
        """A draft token has come, of probability ``p`` (UQ1.15); it is dropped if its draft was broken meanwhile."""
        r = self.requests[job.request]
        r.drafting = False
        self.counters.drafted += 1
        if not self.valid(job):
            self.counters.stale += 1
            return
        r.h = multiply(r.h, p)
        self._insert(r, Entry(r.index, r.base + r.live, token, r.h))
        r.live += 1
        r.stopped = self.policy.stops(Step(r.live, r.h, p, entropy, len(self.live()), right))
        r.ended |= token in self.ends

    def _insert(self, r: Request, entry: Entry) -> None:
        """Route a token. (Where eager tokens are left of a request without a lock, the Shared Pool is full.)"""
        if not r.verifying and self.pool.free:
            self.pool.insert(entry)
        else:
            self.eager[r.lane].insert(entry)
            self.counters.eager += 1

    def _candidates(self, lane: int) -> list[Request]:
        """Requests of a micro-batch that could start a draft step, no more than there is room for.

        A token that is on its way is certain of an entry: in the Eager Pool, which takes it whatever is
        dispatched before it comes; without eager drafting in the Shared Pool, where nothing is dispatched then.
        """
        load = len(self.live())
        if self.settings.eager:
            room = self.eager[lane].free - sum(r.drafting for r in self.requests if r.lane == lane)
        else:
            room = self.pool.free - sum(r.drafting for r in self.requests)
        return [r for r in self.live(lane) if self._wants(r, load)][:max(room, 0)]

    def _wants(self, r: Request, load: int) -> bool:
        s = self.settings
        if r.drafting or r.stopped or r.live >= s.max_draft or not self.policy.wants(r.live, load):
            return False
        position = r.base + r.live
        if self.horizon is not None and position >= self.horizon:
            return False
        return not (s.stop_at_end and (r.ended or position >= r.stop - 1))

    # Verification

    def dispatch(self) -> dict[int, list[Entry]] | None:
        """The next pass, if one is due: each request that takes part with its tokens, maybe none.

        They are locked until the request's verdict. One pass is under way at a time.
        """
        if any(r.verifying for r in self.requests):
            return None
        group = self._due() if self.settings.shared else self._due_alone()
        if not group:
            return None
        served = self._ring(group)
        counts = self.pool.select(self.settings.capacity - len(served), [r.index for r in served])
        self.counters.passes += 1
        self.counters.served += len(served)
        self.counters.rows += len(served) + sum(counts.values())
        for r in served:
            r.verifying = True
        return {index: self.pool.lock(index, count) for index, count in sorted(counts.items())}

    def waiting(self, request: int) -> Entry | None:
        """A request's first token that is not under verification: what the bonus distribution tests."""
        return next(iter(self.pool.pending([request]) or self.eager[self.requests[request].lane].match(request)),
                    None)

    def verdict(self, request: int, accepted: int, token: int, matches: bool) -> list[int]:
        """Unlock a request: the tokens that are emitted. The arguments are those of :class:`rules.Verdict`.

        An end token or the length limit ends the request there, and what follows is dropped.
        """
        r, counters = self.requests[request], self.counters
        locked = self.pool.unlock(request)
        self.policy.observe(len(locked), accepted)
        if matches:
            self._take_waiting(r)
        emitted = self._cut(r, [*(e.token for e in locked[:accepted]), token])
        of_draft = min(len(emitted), accepted + matches)
        counters.emitted += len(emitted)
        counters.accepted += of_draft
        counters.flushed += len(locked) + matches - of_draft
        r.base += len(emitted)
        r.live -= len(locked) + matches
        r.verifying = False
        if r.done or not matches:
            self._break(r)
        elif not r.live:
            r.h, r.stopped = ONE, False
        self._migrate()
        return emitted

    def _due(self) -> list[Request]:
        """All live requests, when the verifier's rows are full, or it is idle and there is nothing better to do."""
        s, live = self.settings, self.live()
        at_work = any(r.drafting for r in live)
        if not s.eager and at_work:
            return []
        early = s.eager and len(self.pool.pending()) >= s.start
        if early or self._full() or not (at_work or any(self._candidates(lane) for lane in range(s.lanes))):
            return live
        return []

    def _due_alone(self) -> list[Request]:
        """The live requests of the next micro-batch that rests."""
        lanes = self.settings.lanes
        for lane in ((self.lane_ring + i) % lanes for i in range(lanes)):
            live = self.live(lane)
            if live and not any(r.drafting for r in live) and not self._candidates(lane):
                self.lane_ring = (lane + 1) % lanes
                return live
        return []

    def _full(self) -> bool:
        """Whether the Shared Pool fills a pass, counting a row for every request."""
        return self.settings.shared and (
            len(self.live()) + len(self.pool.pending()) >= self.settings.capacity)

    def _target_at_work(self, lane: int) -> bool:
        return any(r.verifying for r in self.requests if self.settings.shared or r.lane == lane)

    def _ring(self, group: list[Request]) -> list[Request]:
        """As many requests as there are rows, beginning behind the last one that was served."""
        ring = 0 if self.settings.shared else group[0].lane
        order = sorted(group, key=lambda r: (r.index - self.rings[ring]) % len(self.requests))
        served = order[:self.settings.capacity]
        self.rings[ring] = (served[-1].index + 1) % len(self.requests)
        return served

    # What a verdict leaves behind

    def _take_waiting(self, r: Request) -> None:
        """The first waiting token is emitted: remove it from its pool."""
        pool = self.pool if self.pool.match(r.index) else self.eager[r.lane]
        pool.take_first(r.index)

    def _cut(self, r: Request, tokens: list[int]) -> list[int]:
        """Tokens up to the end token or the length limit; marks the request done if either came."""
        tokens = tokens[:r.stop - r.base]
        ended = next((n for n, token in enumerate(tokens) if token in self.ends), None)
        if ended is not None:
            tokens = tokens[:ended + 1]
        r.done = ended is not None or r.base + len(tokens) == r.stop
        return tokens

    def _break(self, r: Request) -> None:
        """No token of the draft is left: the next draft begins behind what was emitted."""
        self.counters.flushed += self.pool.flush(r.index) + self.eager[r.lane].flush(r.index)
        r.live, r.h, r.branch, r.stopped, r.ended = 0, ONE, r.base, False, False

    def _migrate(self) -> None:
        """Move eager tokens whose predecessors all passed to the Shared Pool as far as there is room."""
        for r in self.live():
            eager = self.eager[r.lane]
            while not r.verifying and self.pool.free and eager.match(r.index):
                self.pool.insert(eager.take_first(r.index))

    # State

    def live(self, lane: int | None = None) -> list[Request]:
        """Requests that are not done, of a micro-batch or of all."""
        return [r for r in self.requests if not r.done and lane in (None, r.lane)]

    def check(self) -> None:
        """Assert what must hold between events.

        Every live token is in exactly one pool, in order of position without a gap, with an H that does not
        rise; locked tokens come first, eager ones last; what is done holds nothing.
        """
        for r in self.requests:
            shared, eager = self.pool.match(r.index), self.eager[r.lane].match(r.index)
            tokens = shared + eager
            assert [e.position for e in tokens] == [*range(r.base, r.base + r.live)], (r, tokens)
            assert all(a.h >= b.h and a.locked >= b.locked for a, b in itertools.pairwise(tokens)), (r, tokens)
            assert r.verifying or not any(e.locked for e in tokens), (r, tokens)
            assert not (r.done and (tokens or r.verifying)), (r, tokens)
            assert r.branch <= r.base <= r.stop, r
            assert r.verifying or not eager or not self.pool.free, (r, tokens)
            assert r.h == (tokens[-1].h if tokens else ONE), (r, tokens)
        assert min(p.free for p in (self.pool, *self.eager)) >= 0
        assert self.settings.eager or not any(p.entries for p in self.eager)
        assert sum(r.live for r in self.requests) == sum(len(p.entries) for p in (self.pool, *self.eager))

    def state(self) -> tuple[Any, ...]:
        """All that decisions depend on, as a hashable value."""
        return (tuple(map(_request_state, self.requests)), tuple(self.pool.entries),
                tuple(tuple(p.entries) for p in self.eager), tuple(self.rings), self.lane_ring, self.draft_ring,
                self.policy.state())

    def load_state(self, state: tuple[Any, ...]) -> None:
        """Go on from what :meth:`state` gave."""
        requests, shared, eager, rings, self.lane_ring, self.draft_ring, policy = state
        self.requests = [Request(*r) for r in requests]
        self.pool.entries = list(shared)
        for pool, entries in zip(self.eager, eager, strict=True):
            pool.entries = list(entries)
        self.rings = list(rings)
        self.policy.load_state(policy)
