"""Golden model of the Manager, cycle by cycle.

What is decided comes from :class:`sim_models.specdec.scheduler.Scheduler`, which knows no hardware; when it happens
comes from the events below, each a list of cycles, and from the golden models of the pools and the draft controller.
All must agree on what the pools hold, on H and on who may draft.
"""

from collections.abc import Generator
from typing import Any

from sim_models.golden.manager import draft_controller, intensity_scheduler
from sim_models.golden.manager.manager_ports import COUNTERS, END, REQUEST, TOKEN, Inputs, Outputs, Switches
from sim_models.golden.manager.pools import eager_pool, shared_pool
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
        self.eager = [eager_pool.EagerPool(p.eager_pool) for _ in range(p.lanes)]
        self.mapper = intensity_scheduler.IntensityScheduler(p.scheduler)
        self.counters: dict[str, int] = dict.fromkeys(COUNTERS, 0)
        #: tokens before the next position: the last draft token or the last one emitted
        self.last = [0] * p.requests
        self.jobs: dict[int, Job] = {}
        # as the hardware's flags are, in the middle of events too
        self.alive: set[int] = set()
        self.wants: set[int] = set()
        self.drafting: set[int] = set()
        self.verifying: set[int] = set()
        self._inputs = Inputs()
        self._events = self._run()

    def step(self, i: Inputs) -> Outputs:
        """One cycle: what the outputs show with these inputs; then the edge."""
        self._inputs = i
        return next(self._events)

    def check(self) -> None:
        """Assert, between events, that the pools hold what the scheduler says, and that flags agree."""
        scheduler = self.scheduler
        scheduler.check()
        for r in scheduler.requests:
            shared = [(e.token, e.locked) for e in self.pool.lists[r.index]], self.eager[r.lane].queues[r.index]
            assert [e for e, _ in shared[0]] == [_token(e) for e in scheduler.pool.match(r.index)], r
            assert [k for _, k in shared[0]] == [e.locked for e in scheduler.pool.match(r.index)], r
            assert shared[1] == [_token(e) for e in scheduler.eager[r.lane].match(r.index)], r
            flags = [r.index in f for f in (self.alive, self.drafting, self.verifying)]
            assert flags == [not r.done, r.drafting, r.verifying], (r, flags)
            draft = self.controller.drafts[r.index]
            assert (draft.h, draft.length) == (r.h, r.live), (r, draft)

    # Events

    def _run(self) -> _Cycles:
        while True:
            i, event = self._inputs, None
            awake = not self.pool.waking
            if awake:
                event = self._next(i)
            yield from self._cycle(busy=not awake or event is not None)
            if event is not None:
                yield from event
                yield from self._cycle()

    def _next(self, i: Inputs) -> _Cycles | None:
        """The event that goes ahead."""
        movable = [r for r in range(self.p.requests) if self._queue(r) and r not in self.verifying]
        if movable and self.pool.used < self.p.entries:
            return self._move(movable[0])
        if i.drafted is not None:
            return self._token(*i.drafted)
        if i.verdicts is not None:
            return self._verdict(*i.verdicts)
        if i.requests is not None and i.requests[0] not in self.alive | self.drafting:
            return self._new(*i.requests)
        rings = list(self.scheduler.rings)
        passed = self.scheduler.dispatch()
        if passed is not None:
            ring = 0 if self.switches.shared else next(iter(passed)) % self.p.lanes
            return self._pass(list(passed), rings[ring], sum(map(len, passed.values())))
        at_work = {r % self.p.lanes for r in self.drafting}
        if len(at_work) < self.switches.engines:
            for lane in range(self.p.lanes):
                jobs = [] if lane in at_work else self.scheduler.begin_drafts(lane)
                if jobs:
                    return self._step(jobs)
        return None

    def _new(self, request: int, position: int, stop: int, token: int) -> _Cycles:
        yield from self._cycle(requests_ready=True)
        self.last[request] = token
        if stop > position:
            r = Request(request, request % self.p.lanes, position, stop, position)
            self.scheduler.requests[request] = r
            self.alive.add(request)
            self._draws_on(r)

    def _token(self, request: int, token: int, probability: int) -> _Cycles:
        job = self.jobs.pop(request)
        late = not self.scheduler.valid(job)
        r = self.scheduler.requests[request]
        taken = None
        if not late:
            at = r.base + r.live
            taken = draft_controller.Drafted(request, at, token, probability, at + 2 == r.stop)
        yield from self._cycle(drafted_ready=True, controller={"drafted": taken})
        to_eager = self.scheduler.counters.eager
        self.scheduler.drafted(job, token, min(probability, ONE))
        if late:
            self.counters["stale"] += 1
        else:
            yield from self._cycle(controller={
                "verifying": request in self.verifying, "behind": bool(self._queue(request)),
                "shared_room": self.pool.used < self.p.entries})
            t = Token(request, r.base + r.live - 1, token, r.h)
            eager = self.scheduler.counters.eager > to_eager
            assert (self.controller.shared, self.controller.eager) == ((None, t) if eager else (t, None)), t
            if eager:
                yield from self._cycle(eager=(request % self.p.lanes, eager_pool.Inputs(insert=t)))
                self.counters["eager"] += 1
            else:
                yield from self._cycle(insert=t)
            self.last[request] = token
            self._draws_on(r)
        self.counters["drafted"] += 1
        self.drafting.discard(request)

    def _verdict(self, request: int, accepted: int, token: int, bonus: bool) -> _Cycles:
        scheduler, r = self.scheduler, self.scheduler.requests[request]
        lane, base, waiting = r.lane, r.base, scheduler.waiting(request)
        locked = sum(e.locked for e in scheduler.pool.match(request))
        in_eager = not scheduler.pool.pending([request])
        length = r.live
        keep = bonus and accepted == locked and waiting is not None and waiting.token == token
        yield from self._cycle()
        yield from self._cycle()
        emitted = scheduler.verdict(request, accepted, token, keep)
        for n, text in enumerate(emitted):
            last = r.done and n == len(emitted) - 1
            while True:
                taken = self._inputs.emitted_ready
                yield from self._cycle(emitted=(request, base + n, text, int(last)))
                if taken:
                    break
            self.counters["emitted"] += 1
            self.counters["accepted"] += n < accepted + keep
            self.counters["completed"] += last
        stays = keep and not r.done
        told = request, locked, stays
        update = draft_controller.Update(request, not stays or length == locked + 1, locked + 1)
        done = False
        while not done:
            done = (yield from self._cycle(verdict=told, controller={"update": update})).verdict_ready
        command = (request, stays) if in_eager or not stays else None
        yield from self._cycle(verdicts_ready=True, eager=(lane, eager_pool.Inputs(command=command)))
        self.verifying.discard(request)
        if not stays:
            self.last[request] = token
        if r.done:
            self.alive.discard(request)
        self._draws_on(r)

    def _move(self, request: int) -> _Cycles:
        lane = request % self.p.lanes
        yield from self._cycle(eager=(lane, eager_pool.Inputs(move=request, moved_ready=False)))
        yield from self._cycle(eager=(lane, eager_pool.Inputs()), insert=self.eager[lane].moved)

    def _pass(self, served: list[int], ring: int, count: int) -> _Cycles:
        scheduler, s = self.scheduler, self.switches
        order = sorted(served, key=lambda r: (r - ring) % self.p.requests)
        for n, request in enumerate(order):
            yield from self._cycle()
            if request < ring and (not n or order[n - 1] >= ring):
                # the search starts again at the lowest number
                yield from self._cycle()
            beat = request, scheduler.requests[request].base, 0, REQUEST
            yield from self._offer("verify", beat)
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
        for job in jobs:
            r = self.scheduler.requests[job.request]
            yield from self._cycle()
            yield from self._offer("draft", (r.index, r.base + r.live, self.last[r.index], 0))
            self.jobs[r.index] = job
            self.drafting.add(r.index)
        yield from self._offer("draft", (0, 0, 0, 1), drafting=len(jobs))

    # Cycles

    def _offer(self, stream: str, beat: tuple[int, ...], drafting: int | None = None) -> _Cycles:
        taken = False
        while not taken:
            taken = getattr(self._inputs, f"{stream}_ready")
            shown: dict[str, Any] = {stream: beat}
            yield from self._cycle(drafting=drafting if taken else None, **shown)

    def _cycle(self, *, busy: bool = True, insert: Token | None = None, verdict: tuple[int, int, bool] | None = None,
               start: int | None = None, selected_ready: bool = False, drafting: int | None = None,
               round_: tuple[int, int] | None = None, eager: tuple[int, eager_pool.Inputs] | None = None,
               controller: dict[str, Any] | None = None, **shown: Any
               ) -> Generator[Outputs, None, shared_pool.Outputs]:
        """One cycle; returns what the pool showed."""
        self._count(busy)
        places = self.mapper.places
        out: dict[str, Any] = {
            "requests_ready": False, "drafted_ready": False, "verdicts_ready": False, "draft": None, "verify": None,
            "emitted": None, "busy": busy, "mapping": (places[0], places[1]), **shown}
        out_of = frozenset(range(self.p.requests)) - self.verifying if self.pool.selecting else frozenset()
        pool = self.pool.step(shared_pool.Inputs(insert=insert, verdict=verdict, start=start, ineligible=out_of,
                                                 selected_ready=selected_ready))
        for lane, unit in enumerate(self.eager):
            unit.step(eager[1] if eager and eager[0] == lane else eager_pool.Inputs(moved_ready=False))
        s = self.switches
        told = controller or {}
        if "update" in told and not pool.verdict_ready:
            told = {}
        self.controller.step(draft_controller.Inputs(**told, settings=s.controller(len(self.alive))))
        self.mapper.step(intensity_scheduler.Inputs(drafting, round_, s.dynamic, s.initial, s.dlm_fc,
                                                    s.tlm_attention))
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
        could = any(self.eager[k].used < p.eager_entries for k in wanting) if eager else bool(wanting) and room
        stuck = bool(wanting) and not drafting
        for name, condition in (
                ("cycles", True), ("drafting", drafting), ("verifying", verifying), ("both", drafting and verifying),
                ("locked", stuck and not eager and verifying), ("eager_full", stuck and eager and not could),
                ("pool_full", stuck and not eager and not verifying and not room),
                ("idle", not drafting and not verifying), ("softmax", softmax),
                ("deciding", busy or softmax)):
            self.counters[name] += condition

    def _queue(self, request: int) -> list[Token]:
        return self.eager[request % self.p.lanes].queues[request]

    def _draws_on(self, r: Request) -> None:
        """Set the flag of a request that may draft on."""
        more = r.base + r.live < r.stop - 1
        wants = more and not (r.done or r.stopped or r.ended) and r.live < self.switches.max_draft
        (self.wants.add if wants else self.wants.discard)(r.index)


def _token(entry: Any) -> Token:
    return Token(entry.request, entry.position, entry.token, entry.h)
