"""The SADDLE Manager decides who drafts, where a token goes and what is verified.

It decides one event at a time; the engines work meanwhile, and what they deliver waits in their streams::

    requests --> new request --.                                   .--> draft    a step: requests, then end
    drafted ---> token --------|   +-------------------------+     |
    verdicts --> verdict ------+-> | tables, one row a       | ----+--> verify   a pass: requests, tokens, end
                 migration ----|   | request; flags of all   |     |
                 pass, step ---'   +-------------------------+     '--> emitted  tokens of the texts
                                     |            |        |
     draft controller -->   Eager Pool a      Shared     memory of
     H, stop, route         micro-batch  -->   Pool      unverified tokens

The first of these that can go ahead does: migration, draft token, verdict, new request, pass, draft step.
docs/manager.md says what each of them does, when it can go ahead, how many cycles it takes, and why no request
starves.

Limits: settings must stay while requests are live; both engines must take the beats of a step or pass that begins.
Reference: SADDLE IV.
"""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from rtl.manager.draft_controller import DraftController
from rtl.manager.events.event_sequencer import EventSequencer
from rtl.manager.events.layouts import text_read, text_word
from rtl.manager.events.migrate_token import MigrateToken
from rtl.manager.events.send_pass import SendPass
from rtl.manager.events.send_step import SendStep
from rtl.manager.events.take_request import TakeRequest
from rtl.manager.events.take_token import TakeToken
from rtl.manager.events.take_verdict import TakeVerdict
from rtl.manager.intensity_scheduler import IntensityScheduler
from rtl.manager.layouts import (
    draft_beat,
    drafted,
    emitted,
    manager_counters,
    manager_settings,
    new_request,
    request_verdict,
    verify_beat,
)
from rtl.manager.manager_counts import ManagerCounts
from rtl.manager.pools.eager_counts import EagerCounts
from rtl.manager.pools.shared_pool import SharedPool
from rtl.manager.requests.readiness import Readiness
from rtl.manager.requests.request_flags import RequestFlags
from rtl.manager.requests.request_lister import RequestLister
from rtl.manager.requests.request_table import RequestTable
from rtl.manager.softmax.layouts import softmax_events
from rtl.memory.ram import Ram
from rtl.parts.streams import joined
from rtl.unit import Unit
from sim_models.params.manager.draft_controller import TAU_ENTRIES
from sim_models.params.manager.manager import ManagerParams
from sim_models.params.memory.ram import RamParams
from sim_models.spec.manager import Place

__all__ = ["Manager", "Parts"]


class Parts:
    """The blocks of a Manager."""

    def __init__(self, p: ManagerParams) -> None:
        # what is known of requests
        self.table, self.states, self.lister = RequestTable(p), RequestFlags(p), RequestLister(p)
        self.readiness, self.eager = Readiness(p), EagerCounts(p)
        self.text = Ram(RamParams(depth=p.text_depth, width=text_word(p).size))
        # events
        self.sequencer = EventSequencer(p)
        self.request, self.token, self.verdict = TakeRequest(p), TakeToken(p), TakeVerdict(p)
        self.migration, self.verify, self.step = MigrateToken(p), SendPass(p), SendStep(p)
        # what they use
        self.controller, self.pool = DraftController(p.controller), SharedPool(p.shared_pool)
        self.scheduler, self.counts = IntensityScheduler(p.scheduler), ManagerCounts(p)


class Manager(Unit):
    """The Manager without its registers.

    Members
    -------
    requests: In(stream of new_request)
        New requests. One that wants no token (``stop`` not above ``position``) is answered with an empty beat.
    drafted: In(stream of drafted)
        One token for each request of a step, in any order.
    verdicts: In(stream of request_verdict)
        One for each request of a pass, in any order, after the pass's end.
    draft: Out(stream of draft_beat)
        Draft steps: the requests of each, then its end.
    verify: Out(stream of verify_beat)
        Verification passes: the requests and draft tokens of each, then its end.
    emitted: Out(stream of emitted)
        Tokens of the texts.
    softmax: In(softmax_events)
        What the softmax unit does that the drafted tokens come from; only counted.
    settings: In(manager_settings)
        0 rows, 0 engines stand for 1.
    counters: Out(manager_counters)
        What happened since reset, 2 cycles behind an event and 3 behind a state.
    dlm_fc: Out(Place)
        Where the draft's FC layers run in a step, from 2 cycles after its end was taken.
    tlm_attention: Out(Place)
        Where the target's attention runs in a pass, from 2 cycles after its end was taken.
    busy: Out(1)
        Something is being decided.
    """

    block = "manager"

    requests: Any
    drafted: Any
    verdicts: Any
    draft: Any
    verify: Any
    emitted: Any
    softmax: Any
    settings: Any
    counters: Any
    dlm_fc: Any
    tlm_attention: Any
    busy: Signal

    def __init__(self, params: ManagerParams | None = None) -> None:
        p = params or ManagerParams()
        self.p = p
        super().__init__(p, {
            "requests": In(stream.Signature(new_request(p))), "drafted": In(stream.Signature(drafted(p))),
            "verdicts": In(stream.Signature(request_verdict(p))), "draft": Out(stream.Signature(draft_beat(p))),
            "verify": Out(stream.Signature(verify_beat(p))), "emitted": Out(stream.Signature(emitted(p))),
            "softmax": In(softmax_events), "settings": In(manager_settings(p)), "counters": Out(manager_counters()),
            "dlm_fc": Out(Place), "tlm_attention": Out(Place), "busy": Out(1),
        })

    def parts(self) -> Parts:
        """The blocks inside, made anew."""
        return Parts(self.p)

    def body(self, platform: Any) -> Module:
        m = Module()
        b = self.parts()
        for name, unit in vars(b).items():
            m.submodules[name] = unit
        settings = Signal(manager_settings(self.p))
        self._settings(m, settings)
        self._sequence(m, b)
        self._requests(m, b)
        self._readiness(m, b, settings)
        self._text(m, b)
        self._pools(m, b)
        self._controller(m, b, settings)
        self._streams(m, b, settings)
        self._lists(m, b, settings)
        self._operators(m, b, settings)
        return m

    def _settings(self, m: Module, settings: Any) -> None:
        """Settings as far as they make sense."""
        given, longest = self.settings, 1 << self.p.draft_width
        m.d.comb += [
            settings.eq(given),
            settings.max_draft.eq(Mux(given.max_draft < longest, given.max_draft, longest)),
            settings.capacity.eq(Mux(given.capacity == 0, 1, given.capacity)),
            settings.engines.eq(Mux(given.engines == 0, 1, given.engines)),
            settings.eager.eq(given.shared & given.eager),
        ]

    def _sequence(self, m: Module, b: Parts) -> None:
        """Which event is next."""
        s, flags, work = b.sequencer, b.states.flags, b.readiness.work
        events = {"migrate": b.migration, "token": b.token, "verdict": b.verdict, "request": b.request,
                  "verify": b.verify, "step": b.step}
        m.d.comb += [
            s.awake.eq(b.pool.flush.ready), b.lister.search.eq(flags.eager & ~flags.verifying),
            s.movable.eq(b.lister.found), s.first.eq(b.lister.first), s.room.eq(~b.pool.full),
            *(offer.eq(given.valid & ~given.ready) for offer, given in (
                (s.token, self.drafted), (s.verdict, self.verdicts), (s.fresh, self.requests))),
            s.token_request.eq(self.drafted.payload.request), s.verdict_request.eq(self.verdicts.payload.request),
            s.fresh_request.eq(self.requests.payload.request), s.taken.eq(flags.alive | flags.drafting),
            s.passes.eq(work.passes), s.steps.eq(work.steps.any()),
            s.advance.eq(b.lister.advance), s.following.eq(b.lister.following),
            *(unit.start.eq(s.start[name]) for name, unit in events.items()),
            s.done.eq(_any(*(unit.done for unit in events.values()))), self.busy.eq(~s.waits),
        ]

    def _requests(self, m: Module, b: Parts) -> None:
        """Numbers and flags of requests: who reads and changes them."""
        m.d.comb += [
            b.table.request.eq(b.sequencer.request), b.states.request.eq(b.sequencer.request),
            b.table.update.eq(_any(*(unit.update for unit in (b.request, b.token, b.verdict, b.migration)))),
            b.states.changes.eq(_any(*(unit.changes for unit in (
                b.request, b.token, b.verdict, b.migration, b.verify, b.step)))),
            b.states.draft.eq(_any(b.request.draft, b.token.draft, b.verdict.draft)),
            b.states.may_draft.eq(b.controller.may_draft),
            *(unit.row.eq(b.table.row) for unit in (b.token, b.verdict, b.migration, b.verify, b.step)),
            *(unit.here.eq(b.states.here) for unit in (b.token, b.verdict)),
            *(unit.length.eq(b.controller.length) for unit in (b.token, b.verdict, b.migration, b.step)),
            *(unit.request.eq(b.sequencer.request) for unit in (b.migration, b.verify, b.step)),
        ]

    def _readiness(self, m: Module, b: Parts, settings: Any) -> None:
        """What passes and steps depend on."""
        for unit in (b.readiness, b.counts):
            m.d.comb += [getattr(unit, name).eq(getattr(b.states, name))
                         for name in ("alive", "drafting", "verifying")]
        m.d.comb += [
            b.readiness.settings.eq(settings), b.readiness.flags.eq(b.states.flags),
            b.readiness.pools.used.eq(b.pool.used), b.readiness.pools.eager.eq(b.eager.used),
        ]

    def _text(self, m: Module, b: Parts) -> None:
        """The memory of unverified tokens, by request and the lowest bits of the position."""
        text, write, request = b.text, b.token.text, b.sequencer.request
        read = data.View(text_read(self.p), _any(b.verdict.text, b.migration.text))
        m.d.comb += [
            text.write_en.eq(write.enable), text.write_addr.eq(_address(write.position, request)),
            text.write_data.eq(write.word), text.read_en.eq(read.enable),
            text.read_addr.eq(_address(read.position, request)),
            b.verdict.word.eq(text.read_data), b.migration.word.eq(text.read_data),
        ]

    def _pools(self, m: Module, b: Parts) -> None:
        """Tokens that enter the Shared Pool and leave it; those of the Eager Pools are counted."""
        pool, moved, decided = b.pool, b.migration.insert, b.controller.to_shared
        m.d.comb += [
            pool.insert.valid.eq(moved.valid | decided.valid),
            pool.insert.payload.eq(Mux(moved.valid, moved.payload, decided.payload)),
            moved.ready.eq(pool.insert.ready), decided.ready.eq(pool.insert.ready),
            *joined(b.verdict.pool, pool.verdict),
            pool.look.eq(self.verdicts.payload.request), b.verdict.locked.eq(pool.match_locked),
            *joined(b.verify.round, pool.start), pool.eligible.eq(b.states.flags.verifying),
            *joined(pool.selected, b.verify.selected),
            b.eager.request.eq(b.sequencer.request), b.eager.add.eq(b.token.add),
            b.eager.remove.eq(_any(b.verdict.remove, b.migration.remove)),
        ]

    def _controller(self, m: Module, b: Parts, settings: Any) -> None:
        """The draft controller: H, stop and route."""
        controller = b.controller
        m.d.comb += [
            controller.request.eq(b.sequencer.request),
            *joined(b.token.controller, controller.drafted), *joined(b.verdict.update_draft, controller.update),
            controller.verifying.eq(b.states.here.verifying), controller.behind.eq(b.states.here.eager),
            controller.shared_room.eq(~b.pool.full), controller.load.eq(b.states.alive),
            b.token.entry.eq(controller.to_shared.payload), b.token.to_eager.eq(controller.to_eager.valid),
            controller.to_eager.ready.eq(1),
            *(controller.taus[n].eq(settings[f"tau_{n}"]) for n in range(TAU_ENTRIES)),
            *(getattr(controller, name).eq(settings[name])
              for name in ("policy", "tabled", "tau", "max_draft", "stop_at_end", "end_token")),
        ]

    def _streams(self, m: Module, b: Parts, settings: Any) -> None:
        """The streams of client and engines; of two events one alone emits."""
        for given, taker in ((self.requests, b.request.requests), (self.drafted, b.token.drafted),
                             (self.verdicts, b.verdict.verdicts), (b.verify.verify, self.verify),
                             (b.step.steps, self.draft)):
            m.d.comb += joined(given, taker)
        texts, answers = b.verdict.emitted, b.request.emitted
        m.d.comb += [
            self.emitted.valid.eq(texts.valid | answers.valid),
            self.emitted.payload.eq(Mux(texts.valid, texts.payload, answers.payload)),
            texts.ready.eq(self.emitted.ready), answers.ready.eq(self.emitted.ready),
            b.verdict.stop_at_end.eq(settings.stop_at_end), b.verdict.end_token.eq(settings.end_token),
        ]

    def _lists(self, m: Module, b: Parts, settings: Any) -> None:
        """Requests of passes and steps."""
        flags, work = b.states.flags, b.readiness.work
        m.d.comb += [
            b.lister.wanted.eq(_any(b.verify.wanted, b.step.wanted)),
            *(unit.shown.eq(b.lister.shown) for unit in (b.verify, b.step)),
            *(unit.finished.eq(b.lister.finished) for unit in (b.verify, b.step)),
            b.verify.pooled.eq(settings.shared), b.verify.capacity.eq(settings.capacity),
            b.verify.alive.eq(flags.alive), b.verify.rests.eq(work.rests),
            b.step.eager.eq(settings.eager), b.step.goes_on.eq(flags.wants & ~flags.drafting), b.step.work.eq(work),
        ]

    def _operators(self, m: Module, b: Parts, settings: Any) -> None:
        """Where the movable operators run; and what is counted."""
        names = ("dynamic", "initial_dlm_fc", "initial_tlm_attention", "dlm_fc_low", "dlm_fc_high",
                 "tlm_attention_low", "tlm_attention_high")
        scheduler, counts = b.scheduler, b.counts
        m.d.comb += [
            *(getattr(scheduler, name).eq(settings[name]) for name in names),
            scheduler.step.eq(b.step.done), scheduler.drafting.eq(b.step.served),
            scheduler.round.eq(b.verify.done), scheduler.tokens.eq(b.verify.tokens),
            scheduler.requests.eq(b.verify.served),
            self.dlm_fc.eq(scheduler.dlm_fc), self.tlm_attention.eq(scheduler.tlm_attention),
            counts.events.eq(_any(b.request.events, b.token.events, b.verdict.events, b.verify.events)),
            counts.softmax.eq(self.softmax), counts.work.eq(b.readiness.work), counts.eager.eq(settings.eager),
            counts.busy.eq(self.busy), self.counters.eq(counts.counters),
        ]


def _any(*values: Any) -> Any:
    """The one of several values that is not 0."""
    first, *others = (Value.cast(value) for value in values)
    for other in others:
        first = first | other
    return first


def _address(position: Any, request: Any) -> Any:
    """Where an unverified token is kept."""
    return Cat(position, request)
