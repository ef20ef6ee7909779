"""Golden model of the Manager, cycle by cycle.

What is decided comes from :class:`sim_models.specdec.scheduler.Scheduler`, which knows no hardware; when it happens
comes from the events below, each a list of cycles, and from the golden models of the Shared Pool and the draft
controller. All must agree on what the pools hold, on H and on who may draft.
"""

from collections.abc import Generator, Iterable
from typing import Any

from sim_models.golden.manager import draft_controller, intensity_scheduler
from sim_models.golden.manager.manager_ports import COUNTERS, END, REQUEST, TOKEN, Inputs, Outputs, Switches
from sim_models.golden.manager.pools import shared_pool
from sim_models.golden.manager.pools.shared_pool import Token
from sim_models.params.manager.manager import ManagerParams
from sim_models.specdec.fixed import ONE
from sim_models.specdec.scheduler import Job, Request, Scheduler

__all__ = ["COUNTERS", "END", "REQUEST", "TOKEN", "Inputs", "Manager", "Outputs", "Switches"]

_Cycles = Generator[Outputs, None, None]


class Manager:
    """The Manager.

    Parameters
    ----------
    p:
        Parameters of the block.
    switches:
        Settings, which stay.
    """

    def __init__(self, p: ManagerParams, switches: Switches) -> None:
        self.p, self.switches = p, switches
        self.reset()

    def reset(self) -> None:
        """Forget everything; nothing happens for 2 * requests cycles."""
        p, s = self.p, self.switches
        self.scheduler = Scheduler(s.settings(p), s.stopping, [(0, 0)] * p.requests, s.end_token)
        self.controller = draft_controller.DraftController(p.controller)
        self.pool = shared_pool.SharedPool(p.shared_pool)
        #: eager tokens of each request
        self.eager: list[list[Token]] = [[] for _ in range(p.requests)]
        self.mapper = intensity_scheduler.IntensityScheduler(p.scheduler)
        self.counters: dict[str, int] = dict.fromkeys(COUNTERS, 0)
        #: tokens before the next position: the last draft token or the last one emitted
        self.last = [0] * p.requests
        self.jobs: dict[int, Job] = {}
        #: micro-batch of the last draft step
        self.last_step = p.lanes - 1
        # as the hardware's flags are, in the middle of events too
        self.alive: set[int] = set()
        self.wants: set[int] = set()
        self.drafting: set[int] = set()
        self.verifying: set[int] = set()
        #: whose draft an event has changed
        self._changed: Request | None = None
        self._inputs = Inputs()
        #: what was offered in the cycle before and not taken
        self._seen = Inputs()
        #: cycles since something was decided or could be
        self._resting = 0
        self._events = self._run()

    def step(self, i: Inputs) -> Outputs:
        """One cycle: what the outputs show with these inputs; then the edge."""
        self._inputs = i
        return next(self._events)

    @property
    def rests(self) -> bool:
        """Whether nothing happens until something is offered: pools and controller, too, have come to an end."""
        return self._resting > 2 * self.p.requests + 16

    def leap(self, cycles: int, softmax_busy: bool) -> None:
        """So many cycles of rest at once, in which nothing is offered; only counters move."""
        assert self.rests, "the Manager is at work"
        before = dict(self.counters)
        self._inputs = Inputs(softmax_busy=softmax_busy)
        self._count(busy=False)
        for name, count in before.items():
            self.counters[name] += (cycles - 1) * (self.counters[name] - count)

    def check(self) -> None:
        """Assert, between events, that the pools hold what the scheduler says, and that flags agree."""
        scheduler = self.scheduler
        scheduler.check()
        for r in scheduler.requests:
            entries = self.pool.lists[r.index]
            assert [e.token for e in entries] == [_token(e) for e in scheduler.pool.match(r.index)], r
            assert [e.locked for e in entries] == [e.locked for e in scheduler.pool.match(r.index)], r
            assert self.eager[r.index] == [_token(e) for e in scheduler.eager[r.lane].match(r.index)], r
            flags = [r.index in f for f in (self.alive, self.drafting, self.verifying)]
            assert flags == [not r.done, r.drafting, r.verifying], (r, flags)
            draft = self.controller.drafts[r.index]
            assert (draft.h, draft.length) == (r.h, r.live), (r, draft)
        assert self.scheduler.draft_order()[0] == (self.last_step + 1) % self.p.lanes

    # Events

    def _run(self) -> _Cycles:
        awake = False
        while True:
            yield from self._cycle()
            if self._changed is not None:
                self._draws_on(self._changed)
                self._changed = None
            event, settled = None, 0
            while event is None:
                # what comes in goes ahead at once; what may begin is known 2 cycles later
                event = self._next(self._seen, begins=settled >= 2) if awake else None
                busy = not awake or settled < 2 or event is not None
                awake |= not self.pool.waking
                yield from self._cycle(busy=busy)
                settled += 1
                self._resting = 0 if busy else self._resting + 1
            yield from event

    def _next(self, seen: Inputs, begins: bool) -> _Cycles | None:
        """The event that goes ahead."""
        movable = [r for r in range(self.p.requests) if self.eager[r] and r not in self.verifying]
        if movable and self.pool.used < self.p.entries:
            return self._move(movable[0])
        if seen.drafted is not None:
            return self._token(*seen.drafted)
        if seen.verdicts is not None:
            return self._verdict(*seen.verdicts)
        if seen.requests is not None:
            return self._new(*seen.requests)
        if not begins:
            return None
        rings = list(self.scheduler.rings)
        passed = self.scheduler.dispatch()
        if passed is not None:
            ring = 0 if self.switches.shared else next(iter(passed)) % self.p.lanes
            return self._pass(list(passed), rings[ring], sum(map(len, passed.values())))
        at_work = {r % self.p.lanes for r in self.drafting}
        if len(at_work) < self.switches.engines:
            # each in turn, behind the last one
            for lane in sorted(range(self.p.lanes), key=lambda k: (k <= self.last_step, k)):
                jobs = [] if lane in at_work else self.scheduler.begin_drafts(lane)
                if jobs:
                    self.last_step = lane
                    return self._step(jobs)
        return None

    def _new(self, request: int, position: int, stop: int, token: int) -> _Cycles:
        yield from self._cycle()
        if position < stop:
            yield from self._cycle(requests_ready=True)
            self.last[request] = token
            r = Request(request, request % self.p.lanes, position, stop, position)
            self.scheduler.requests[request] = self._changed = r
            self.alive.add(request)
            return
        yield from self._cycle()
        taken = False
        while not taken:
            taken = self._inputs.emitted_ready
            yield from self._cycle(requests_ready=taken, emitted=(request, position, 0, 1, 1))
        self.counters["refused"] += 1
        self.counters["completed"] += 1

    def _token(self, request: int, token: int, probability: int) -> _Cycles:
        yield from self._cycle()
        job = self.jobs.pop(request, None)
        r = self.scheduler.requests[request]
        if job is None or not self.scheduler.valid(job):
            yield from self._cycle(drafted_ready=True)
            if job is None:
                self.counters["illegal"] += 1
                return
            self.scheduler.drafted(job, token, min(probability, ONE))
            self.counters["stale"] += 1
        else:
            at = r.base + r.live
            taken = draft_controller.Drafted(at, token, probability, at + 2 == r.stop)
            yield from self._cycle(drafted_ready=True, controller={"request": request, "drafted": taken})
            to_eager = self.scheduler.counters.eager
            self.scheduler.drafted(job, token, min(probability, ONE))
            yield from self._cycle(controller={
                "verifying": request in self.verifying, "behind": bool(self.eager[request]),
                "shared_room": self.pool.used < self.p.entries})
            t = Token(request, at, token, r.h)
            eager = self.scheduler.counters.eager > to_eager
            assert (self.controller.shared, self.controller.eager) == ((None, t) if eager else (t, None)), t
            yield from self._cycle(insert=None if eager else t)
            if eager:
                self.eager[request].append(t)
                self.counters["eager"] += 1
            self.last[request] = token
            self._changed = r
        self.counters["drafted"] += 1
        self.drafting.discard(request)

    def _verdict(self, request: int, accepted: int, token: int, bonus: bool) -> _Cycles:
        scheduler, r = self.scheduler, self.scheduler.requests[request]
        locked = sum(e.locked for e in scheduler.pool.match(request))
        yield from self._cycle()
        if request not in self.verifying or accepted > locked:
            yield from self._cycle(verdicts_ready=True)
            self.counters["illegal"] += 1
            return
        base, waiting, length = r.base, scheduler.waiting(request), r.live
        keep = bonus and accepted == locked and waiting is not None and waiting.token == token
        in_eager = not scheduler.pool.pending([request])
        for _ in range(3):
            yield from self._cycle()
        emitted = scheduler.verdict(request, accepted, token, keep)
        for n, text in enumerate(emitted):
            last = r.done and n == len(emitted) - 1
            taken = False
            while not taken:
                taken = self._inputs.emitted_ready
                yield from self._cycle(emitted=(request, base + n, text, int(last), 0))
            self.counters["emitted"] += 1
            self.counters["accepted"] += n < accepted + keep
            self.counters["completed"] += last
        stays = keep and not r.done
        update = draft_controller.Update(not stays or length == locked + 1, locked + 1)
        told: dict[str, Any] = {"request": request, "update": update}
        done = False
        while not done:
            done = (yield from self._cycle(verdict=(request, locked, stays), controller=told)).verdict_ready
            told = {}
        yield from self._cycle(verdicts_ready=True)
        if not stays:
            self.eager[request] = []
            self.last[request] = token
        elif in_eager:
            self.eager[request].pop(0)
        self.verifying.discard(request)
        if r.done:
            self.alive.discard(request)
        self._changed = r

    def _move(self, request: int) -> _Cycles:
        yield from self._cycle()
        yield from self._cycle()
        yield from self._cycle(insert=self.eager[request][0])
        self.eager[request].pop(0)

    def _pass(self, served: list[int], ring: int, count: int) -> _Cycles:
        scheduler, s = self.scheduler, self.switches
        order = _List([r for r in served if r >= ring], [r for r in served if r < ring])
        while not order.finished:
            request, taken = order.shown, self._inputs.verify_ready
            beat = None if request is None else (request, scheduler.requests[request].base, 0, REQUEST)
            yield from self._cycle(verify=beat)
            order.step(taken)
            if request is not None and taken:
                self.verifying.add(request)
                self.counters["served"] += 1
                self.counters["rows"] += 1
        left = min(s.capacity - len(served), self.p.entries)
        while not (yield from self._cycle(start=left)).start_ready:
            pass
        chosen = 0
        while True:
            selected, taken = self.pool.selected, self._inputs.verify_ready
            if isinstance(selected, Token):
                beat = selected.request, selected.position, selected.token, TOKEN
            else:
                beat = None if selected is None else (0, 0, 0, END)
            ends = beat is not None and beat[3] == END and taken
            round_ = (chosen, len(served)) if ends else None
            yield from self._cycle(verify=beat, selected_ready=taken, round_=round_)
            if beat is not None and taken:
                if ends:
                    break
                chosen += 1
                self.counters["rows"] += 1
        assert chosen == count, (chosen, count)
        self.counters["passes"] += 1

    def _step(self, jobs: list[Job]) -> _Cycles:
        by_request = {job.request: job for job in jobs}
        order = _List(by_request)
        while not order.finished:
            request, taken = order.shown, self._inputs.draft_ready
            if request is None:
                yield from self._cycle()
            else:
                r = self.scheduler.requests[request]
                yield from self._cycle(draft=(request, r.base + r.live, self.last[request], 0))
                if taken:
                    self.jobs[request] = by_request[request]
                    self.drafting.add(request)
            order.step(taken)
        taken = False
        while not taken:
            taken = self._inputs.draft_ready
            yield from self._cycle(draft=(0, 0, 0, 1), drafting=len(jobs) if taken else None)

    # Cycles

    def _cycle(self, *, busy: bool = True, insert: Token | None = None, verdict: tuple[int, int, bool] | None = None,
               start: int | None = None, selected_ready: bool = False, drafting: int | None = None,
               round_: tuple[int, int] | None = None, controller: dict[str, Any] | None = None, **shown: Any
               ) -> Generator[Outputs, None, shared_pool.Outputs]:
        """One cycle; returns what the pool showed."""
        self._count(busy)
        places = self.mapper.places
        out: dict[str, Any] = {
            "requests_ready": False, "drafted_ready": False, "verdicts_ready": False, "draft": None, "verify": None,
            "emitted": None, "busy": busy, "mapping": (places[0], places[1]), **shown}
        choosing = self.pool.selecting or start is not None
        out_of = frozenset(range(self.p.requests)) - self.verifying if choosing else frozenset()
        pool = self.pool.step(shared_pool.Inputs(insert=insert, verdict=verdict, start=start, ineligible=out_of,
                                                 selected_ready=selected_ready))
        s, i = self.switches, self._inputs
        self.controller.step(draft_controller.Inputs(**controller or {}, settings=s.controller(len(self.alive))))
        self.mapper.step(intensity_scheduler.Inputs(drafting, round_, s.dynamic, s.initial, s.dlm_fc,
                                                    s.tlm_attention))
        free = i.requests is not None and i.requests[0] not in self.alive | self.drafting
        self._seen = Inputs(i.requests if free and not out["requests_ready"] else None,
                            None if out["drafted_ready"] else i.drafted,
                            None if out["verdicts_ready"] else i.verdicts)
        yield Outputs(**out)
        return pool

    def _count(self, busy: bool) -> None:
        softmax = self._inputs.softmax_busy
        self.counters["masked"] += self._inputs.masked
        if not self.alive:
            return
        s, p = self.switches, self.p
        eager = s.shared and s.eager
        drafting, verifying = bool(self.drafting), bool(self.verifying)
        wanting = {r % p.lanes for r in self.wants - self.drafting}
        room = self.pool.used + len(self.drafting) < p.entries
        could = any(self._eager_used(k) < p.eager_entries for k in wanting) if eager else bool(wanting) and room
        stuck = bool(wanting) and not drafting
        for name, condition in (
                ("cycles", True), ("drafting", drafting), ("verifying", verifying), ("both", drafting and verifying),
                ("locked", stuck and not eager and verifying), ("eager_full", stuck and eager and not could),
                ("pool_full", stuck and not eager and not verifying and not room),
                ("idle", not drafting and not verifying), ("softmax", softmax),
                ("deciding", busy or softmax),
                ("exposed", not verifying and (softmax or (busy and not drafting)))):
            self.counters[name] += condition

    def _eager_used(self, lane: int) -> int:
        """Tokens in the Eager Pool of a micro-batch."""
        return sum(map(len, self.eager[lane::self.p.lanes]))

    def _draws_on(self, r: Request) -> None:
        """Set the flag of a request that may draft on."""
        more = r.base + r.live < r.stop - 1
        wants = more and not (r.done or r.stopped or r.ended) and r.live < self.switches.max_draft
        (self.wants.add if wants else self.wants.discard)(r.index)


class _List:
    """When requests are shown, one after the other: the next one is looked for every other cycle, one ahead.

    Parameters
    ----------
    first, rest:
        Those before the end of the ring, and those behind it, for which the search begins anew.
    """

    def __init__(self, first: Iterable[int], rest: Iterable[int] = ()) -> None:
        self.parts = [list(first), list(rest)]
        #: cycles until a search is over; what it found; the request at hand, and cycles until it is shown
        self.search, self.known, self.at_hand, self.shows_in = 1, None, None, 0
        #: nobody is at hand; nobody is left
        self.waits, self.empty, self.finished = True, False, False

    known: int | None
    at_hand: int | None

    @property
    def shown(self) -> int | None:
        """Who is shown in this cycle."""
        return self.at_hand if self.shows_in == 0 else None

    def step(self, taken: bool) -> None:
        """One cycle; whether a request that is shown is taken."""
        took = taken and self.shown is not None
        advances = self.known is not None and (self.waits or took)
        self.finished = (took or self.waits) and self.empty and self.known is None
        free = self.known is None or advances
        self.shows_in = max(self.shows_in - 1, 0)
        if took:
            self.at_hand, self.waits = None, True
        if advances:
            self.at_hand, self.known, self.waits, self.shows_in = self.known, None, False, 1
        if self.search:
            self.search -= 1
        elif self.parts[0]:
            if free:
                self.known, self.search = self.parts[0].pop(0), 1
        else:
            self.search = 1
            self.parts.pop(0)
            self.empty |= not any(self.parts)
            self.parts = self.parts or [[]]


def _token(entry: Any) -> Token:
    return Token(entry.request, entry.position, entry.token, entry.h)
