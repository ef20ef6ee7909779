"""The SADDLE Manager: who drafts, where a token goes, what is verified, and what a verdict leaves behind.

It decides one event at a time; the engines work meanwhile, and what they deliver waits in their streams::

    requests --> new request --.                                   .--> draft    a step: requests, then end
    drafted ---> token --------|   +-------------------------+     |
    verdicts --> verdict ------+-> | tables, one row a       | ----+--> verify   a pass: requests, tokens, end
                 migration ----|   | request; flags of all   |     |
                 pass, step ---'   +-------------------------+     '--> emitted  tokens of the texts
                                     |            |        |
                            Eager Pool a      Shared     memory of
                            micro-batch  -->   Pool      unverified tokens

The first of this list that can go ahead does:

1. Migration: the first eager token of the lowest request that is not under verification moves to the Shared Pool
   if that has room.
2. A draft token: H is multiplied by its probability. It goes to the Shared Pool if that has room and its request is
   not under verification, else to its micro-batch's Eager Pool. It may be the draft's last: below tau
   (``adaptive``), at ``max_draft`` unverified tokens, an end token, or the length limit; it stays in the draft in
   any case. A token whose draft was broken meanwhile is dropped.
3. A verdict: accepted tokens and the one behind them are emitted, up to an end token or the limit. If all tokens of
   the request in the pass were accepted, ``bonus`` is set and the next drafted token, pending or eager, is the very
   one that was emitted, then this leaves its pool and those behind it stay; else the draft is broken and all leave.
   H is 1 where none is left. A greedy engine sets ``bonus`` whenever it accepts all; one that samples if the
   drafted token passed its test on the bonus distribution.
4. A new request, if its number is not in use.
5. A pass, if none is under way. With ``shared``: for all requests, when nobody drafts or could, or with ``eager``
   when ``start`` tokens are pending, or without when nobody drafts; and in either case when a row for each request
   and one for each pending token fill the ``capacity``. Without ``shared``: for the next micro-batch that rests.
   Each request gets a row for its last known token, in ring order when there are more requests than rows, and the
   other rows go to the pending tokens of highest H.
6. A draft step of the lowest micro-batch that is not at work, with those of its requests that draft on, lowest
   first, as far as there is room for their tokens; at most ``engines`` steps are under way. Without ``eager``, no
   step begins during verification.

Liveness: of any ceil(live requests / capacity) passes in a row, each live request is in at least one (without
``shared``: passes of its micro-batch); each pass yields a token or more for each of its requests. This is the
Manager's aging; that of the Shared Pool is off. Both engines must take the beats of a step or pass that begins.

Latency, with engines that take every beat at once: a draft token 5 cycles from the decision before to the one after
(3 if it comes too late); a verdict 6 and one for each emitted token, and one more for each token that leaves the
pool while others stay; a migration 4; a pass 2 a request and request_width + 1 a token, and up to ``requests`` cycles
that the pool takes after the pass before; a step 2 a request and 3. Settings must stay while requests are live. After
reset nothing happens for 2 * requests cycles. Reference: SADDLE IV.
"""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from rtl.arith.parts import round_nearest_even
from rtl.arith.pick import pick
from rtl.manager.eager_pool import EagerPool
from rtl.manager.intensity_scheduler import IntensityScheduler
from rtl.manager.manager_state import ONE, ManagerState, State, lowest
from rtl.manager.shared_pool import SharedPool
from rtl.manager.token_lists import table
from rtl.manager_layouts import (
    EagerAction,
    Place,
    VerifyKind,
    draft_beat,
    drafted,
    emitted,
    manager_counters,
    manager_settings,
    new_request,
    request_verdict,
    verify_beat,
)
from rtl.memory.ram import Ram
from rtl.unit import Unit, in_reset
from sim_models.params.manager import H_WIDTH, ManagerParams
from sim_models.params.memory import RamParams

__all__ = ["Manager"]


class Manager(Unit):
    """The Manager without its registers.

    Members
    -------
    requests: In(stream of new_request)
        One that wants no token (``stop`` not above ``position``) is taken and forgotten.
    drafted: In(stream of drafted)
        One token for each request of a step, in any order.
    verdicts: In(stream of request_verdict)
        One for each request of a pass, in any order, after the pass's end.
    draft: Out(stream of draft_beat)
    verify: Out(stream of verify_beat)
    emitted: Out(stream of emitted)
    settings: In(manager_settings)
        0 rows, 0 engines stand for 1.
    counters: Out(manager_counters)
    dlm_fc, tlm_attention: Out(Place)
        Mapping of the movable operators, for the next step from 2 cycles after a step's end was taken and for this
        pass from 2 cycles after its end was.
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
            "settings": In(manager_settings(p)), "counters": Out(manager_counters()),
            "dlm_fc": Out(Place), "tlm_attention": Out(Place), "busy": Out(1),
        })

    def body(self, platform: Any) -> Module:
        m = Module()
        p = self.p
        m.submodules.pool = pool = SharedPool(p.shared_pool)
        eager = []
        for lane in range(p.lanes):
            eager.append(EagerPool(p.eager_pool))
            m.submodules[f"eager_{lane}"] = eager[-1]
        m.submodules.text = text = Ram(RamParams(depth=p.text_depth, width=p.token_width))
        m.submodules.scheduler = scheduler = IntensityScheduler(p.scheduler)
        s = ManagerState(p)
        m.d.comb += [s.at[state].eq(s.state == state) for state in State]
        self._rows(m, s, pool)
        self._due(m, s, pool, eager)
        self._decide(m, s, pool, eager)
        self._new(m, s)
        self._token(m, s, pool, eager, text)
        self._verdict(m, s, text)
        self._unlock(m, s, pool, eager)
        self._migrate(m, s, pool, eager)
        self._pass(m, s, pool, scheduler)
        self._step(m, s, scheduler)
        self._map(m, scheduler)
        self._count(m, s, pool)
        return m

    def _rows(self, m: Module, s: ManagerState, pool: SharedPool) -> None:
        """The tables' row of the request at hand, and the settings as far as they make sense."""
        p, given = self.p, self.settings
        longest = 1 << p.draft_width
        m.d.comb += [
            s.request.eq(Mux(s.at[State.SELECT], pool.selected.payload.entry.request, s.chosen)),
            s.flag.eq(1 << s.request), s.lane.eq(s.request[:p.lane_width]), s.end.eq(s.row["base"] + s.row["live"]),
            s.limit.eq(Mux(given.max_draft > longest, longest, given.max_draft)),
            s.capacity.eq(Mux(given.capacity == 0, 1, given.capacity)),
            s.engines.eq(Mux(given.engines == 0, 1, given.engines)), s.eager_mode.eq(given.shared & given.eager),
        ]
        for name, row in s.row.items():
            m.submodules[f"{name}_rows"] = memory = table(len(row), p.requests)
            write, read = memory.write_port(), memory.read_port(domain="comb")
            m.d.comb += [write.addr.eq(s.request), read.addr.eq(s.request), row.eq(read.data),
                         write.en.eq(s.write[name]), write.data.eq(s.new[name])]

    def _due(self, m: Module, s: ManagerState, pool: SharedPool, eager: list[EagerPool]) -> None:
        """Which passes and steps could begin, as of the cycle before."""
        p, n = self.p, self.p.lanes
        shared, passing = self.settings.shared, s.verifying_count != 0
        m.d.comb += [
            s.candidates.eq(s.wants & ~s.drafting), s.room.eq(pool.used + s.drafting_count < p.entries),
            s.fills.eq(shared & (s.alive_count + pool.used >= s.capacity)),
        ]
        at_work = [s.drafting[k::n].any() for k in range(n)]
        # of a complete request nothing more is waited for
        hoped_for = s.drafting & s.alive
        free = sum(at_work) < s.engines
        for k in range(n):
            wanted, room = s.candidates[k::n].any(), Mux(s.eager_mode, ~eager[k].full, s.room)
            m.d.comb += [s.lane_wants[k].eq(wanted), s.lane_could[k].eq(wanted & room)]
            held = ~s.eager_mode & (s.fills | Mux(shared, passing, s.verifying[k::n].any()))
            m.d.sync += [s.go[k].eq(~at_work[k] & s.lane_could[k] & free & ~held),
                         s.rests[k].eq(s.alive[k::n].any() & ~hoped_for[k::n].any() & ~s.lane_could[k])]
        quiet = ~hoped_for.any()
        due = (quiet & ~s.lane_could.any()) | (s.fills & (s.eager_mode | quiet)) | (
            s.eager_mode & (pool.used >= self.settings.start))
        m.d.sync += s.due.eq(~passing & (s.alive_count != 0) & (~shared | due))

    def _decide(self, m: Module, s: ManagerState, pool: SharedPool, eager: list[EagerPool]) -> None:
        """What comes next, and for which request."""
        p = self.p
        searched, movable = Signal(p.requests), s.eagers & ~s.verifying
        from_ring = Cat(k >= s.ring_at for k in range(p.requests))
        m.d.comb += searched.eq(Mux(s.at[State.DECIDE], movable, Mux(
            s.at[State.NEXT_SERVED] & ~s.wrapped, s.todo & from_ring, s.todo)))
        found, first = lowest(list(searched))
        m.d.comb += [s.found.eq(found), s.lowest.eq(first)]
        named = self.requests.payload.request
        free = ~(s.alive | s.drafting).bit_select(named, 1)
        awake = pool.flush.ready
        with m.If(s.at[State.SETTLE]):
            m.d.sync += s.state.eq(State.DECIDE)
        with m.If(s.at[State.DECIDE] & awake):
            with m.If(s.found & ~pool.full):
                m.d.sync += [s.chosen.eq(s.lowest), s.state.eq(State.MOVE)]
            with m.Elif(self.drafted.valid):
                m.d.sync += [s.chosen.eq(self.drafted.payload.request), s.state.eq(State.MULTIPLY)]
            with m.Elif(self.verdicts.valid):
                m.d.sync += [s.chosen.eq(self.verdicts.payload.request), s.state.eq(State.WAITING)]
            with m.Elif(self.requests.valid & free):
                m.d.sync += [s.chosen.eq(named), s.state.eq(State.NEW)]
            with m.Elif(s.due & (self.settings.shared | s.rests.any())):
                self._begin_pass(m, s)
            with m.Elif(s.go.any()):
                self._begin_step(m, s, pool, eager)
            with m.Else():
                m.d.comb += s.waits.eq(1)
        m.d.comb += self.busy.eq(~s.waits)

    def _begin_pass(self, m: Module, s: ManagerState) -> None:
        p = self.p
        later = s.rests & Cat(k >= s.lane_ring for k in range(p.lanes))
        _, lane = lowest(list(Mux(later.any(), later, s.rests)))
        group = Mux(self.settings.shared, 0, lane)
        m.d.sync += [
            s.served.eq(0), s.tokens.eq(0), s.wrapped.eq(0), s.group.eq(group),
            s.ring_at.eq(pick(list(s.rings), group)),
            s.todo.eq(Mux(self.settings.shared, s.alive, s.alive & self._members(lane))),
            s.state.eq(State.NEXT_SERVED),
        ]
        with m.If(~self.settings.shared):
            m.d.sync += s.lane_ring.eq(lane + 1)

    def _begin_step(self, m: Module, s: ManagerState, pool: SharedPool, eager: list[EagerPool]) -> None:
        p = self.p
        _, lane = lowest(list(s.go))
        here = p.eager_entries - pick([unit.used for unit in eager], lane)
        m.d.sync += [
            s.served.eq(0), s.todo.eq(s.candidates & self._members(lane)), s.state.eq(State.NEXT_DRAFT),
            s.places.eq(Mux(s.eager_mode, here, p.entries - pool.used - s.drafting_count)),
        ]

    def _members(self, lane: Any) -> Any:
        """The requests of a micro-batch."""
        p = self.p
        return Cat(lane == k for k in range(p.lanes)).replicate(p.requests // p.lanes)

    def _new(self, m: Module, s: ManagerState) -> None:
        """A new request."""
        given = self.requests.payload
        m.d.comb += self.requests.ready.eq(s.at[State.NEW] & ~in_reset())
        with m.If(s.at[State.NEW]):
            for name, value in (("base", given.position), ("stop", given.stop), ("last", given.token), ("live", 0),
                                ("locked", 0), ("eager", 0), ("h", ONE)):
                m.d.comb += s.put(name, value)
            m.d.sync += [s.stopped.eq(s.stopped & ~s.flag), s.state.eq(State.SETTLE)]
            with m.If(given.stop > given.position):
                m.d.sync += [s.alive.eq(s.alive | s.flag), s.alive_count.eq(s.alive_count + 1),
                             s.wants.eq(_with(s.wants, s.flag, s.limit != 0))]

    def _token(self, m: Module, s: ManagerState, pool: SharedPool, eager: list[EagerPool], text: Ram) -> None:
        """A draft token: its H, its pool, and whether it is the draft's last."""
        p, given = self.p, self.drafted.payload
        product, h = Signal(2 * H_WIDTH - 1), Signal(H_WIDTH)
        kept, up = round_nearest_even(product[H_WIDTH - 2:], [product[:H_WIDTH - 2].any()])
        m.d.sync += [product.eq(s.row["h"] * given.probability), h.eq(kept + up)]
        late, to_shared, stops, length = Signal(), Signal(), Signal(), Signal(p.length_width)
        store = s.at[State.STORE]
        m.d.comb += [
            late.eq(s.stale.bit_select(s.request, 1)),
            self.drafted.ready.eq((store | (s.at[State.MULTIPLY] & late)) & ~in_reset()),
            to_shared.eq(~s.verifying.bit_select(s.request, 1) & ~pool.full),
            stops.eq((self.settings.adaptive & (h < self.settings.tau)) | self._ends(given.token)),
            length.eq(s.row["live"] + 1),
        ]
        for port, here in ((pool.insert, to_shared), *((unit.insert, ~to_shared & (s.lane == k))
                                                       for k, unit in enumerate(eager))):
            entry = port.payload
            m.d.comb += [entry.request.eq(s.request), entry.position.eq(s.end), entry.token.eq(given.token),
                         entry.h.eq(h), port.valid.eq(store & here)]
        with m.If(self.drafted.ready):
            m.d.sync += [s.drafting.eq(s.drafting & ~s.flag), s.drafting_count.eq(s.drafting_count - 1),
                         s.stale.eq(s.stale & ~s.flag), s.state.eq(State.SETTLE)]
        with m.Elif(s.at[State.MULTIPLY]):
            m.d.sync += s.state.eq(State.ROUND)
        with m.Elif(s.at[State.ROUND]):
            m.d.sync += s.state.eq(State.STORE)
        with m.If(store):
            m.d.comb += [
                *s.put("h", h), *s.put("live", length), *s.put("last", given.token), text.write_en.eq(1),
                text.write_addr.eq(Cat(s.end[:p.draft_width], s.request)), text.write_data.eq(given.token),
            ]
            draws_on = ~stops & (length < s.limit) & ((s.end + 1)[:p.position_width] != s.row["stop"])
            m.d.sync += [s.wants.eq(_with(s.wants, s.flag, draws_on)), s.stopped.eq(_with(s.stopped, s.flag, stops))]
            with m.If(~to_shared):
                m.d.comb += s.put("eager", s.row["eager"] + 1)
                m.d.sync += s.eagers.eq(s.eagers | s.flag)
                m.d.sync += self.counters.eager.eq(self.counters.eager + 1)

    def _ends(self, token: Any) -> Any:
        return self.settings.stop_at_end & (token == self.settings.end_token)

    def _verdict(self, m: Module, s: ManagerState, text: Ram) -> None:
        """Whether the draft stays valid, and the tokens that are emitted."""
        p, told, out = self.p, self.verdicts.payload, self.emitted.payload
        of_draft, position = Signal(), Signal(p.position_width)
        read_position = Signal(p.position_width)
        taken = self.emitted.valid & self.emitted.ready
        m.d.comb += [
            of_draft.eq(s.index < told.accepted), position.eq(s.row["base"] + s.index),
            read_position.eq(Mux(s.at[State.WAITING], s.row["base"] + s.row["locked"],
                                 Mux(s.at[State.COMPARE], s.row["base"], position + 1))),
            text.read_addr.eq(Cat(read_position[:p.draft_width], s.request)),
            text.read_en.eq(s.at[State.WAITING] | s.at[State.COMPARE] | taken),
            self.emitted.valid.eq(s.at[State.EMIT]), out.request.eq(s.request), out.position.eq(position),
            out.token.eq(Mux(of_draft, text.read_data, told.token)),
            out.last.eq(self._ends(out.token) | ((position + 1)[:p.position_width] == s.row["stop"])),
        ]
        with m.If(s.at[State.WAITING]):
            m.d.sync += [s.index.eq(0), s.state.eq(State.COMPARE)]
        with m.If(s.at[State.COMPARE]):
            m.d.sync += [
                s.keep.eq(told.bonus & (told.accepted == s.row["locked"]) & (s.row["live"] > s.row["locked"])
                          & (text.read_data == told.token)),
                s.state.eq(State.EMIT)]
        with m.If(taken):
            m.d.sync += [s.index.eq(s.index + 1), s.done.eq(out.last),
                         self.counters.emitted.eq(self.counters.emitted + 1),
                         self.counters.accepted.eq(self.counters.accepted + (of_draft | s.keep))]
            with m.If(out.last | ~of_draft):
                m.d.sync += s.state.eq(State.UNLOCK)

    def _unlock(self, m: Module, s: ManagerState, pool: SharedPool, eager: list[EagerPool]) -> None:
        """What a verdict leaves behind."""
        p, row = self.p, s.row
        stays, in_eager, live, base = Signal(), Signal(), Signal(p.length_width), Signal(p.position_width)
        judged, close = pool.verdict.payload, s.at[State.CLOSE]
        m.d.comb += [
            stays.eq(s.keep & ~s.done), in_eager.eq(row["live"] - row["eager"] == row["locked"]),
            live.eq(Mux(stays, row["live"] - row["locked"] - 1, 0)), base.eq(row["base"] + s.index),
            pool.verdict.valid.eq(s.at[State.UNLOCK]), judged.request.eq(s.request),
            judged.accepted.eq(row["locked"]), judged.bonus.eq(stays), self.verdicts.ready.eq(close & ~in_reset()),
        ]
        for k, unit in enumerate(eager):
            command = unit.command.payload
            m.d.comb += [unit.command.valid.eq(close & (s.lane == k) & (~stays | in_eager)),
                         command.request.eq(s.request),
                         command.action.eq(Mux(stays, EagerAction.DROP_FIRST, EagerAction.FLUSH))]
        with m.If(s.at[State.UNLOCK] & pool.verdict.ready):
            m.d.sync += s.state.eq(State.CLOSE)
        with m.If(close):
            left = Mux(stays, row["eager"] - in_eager, 0)
            anew = ~stays | (live == 0)
            stopped = ~anew & s.stopped.bit_select(s.request, 1)
            draws_on = ~s.done & ~stopped & (live < s.limit) & ((base + live)[:p.position_width] != row["stop"])
            m.d.comb += [*s.put("base", base), *s.put("live", live), *s.put("locked", 0), *s.put("eager", left)]
            m.d.sync += [
                s.eagers.eq(_with(s.eagers, s.flag, left != 0)), s.verifying.eq(s.verifying & ~s.flag),
                s.verifying_count.eq(s.verifying_count - 1), s.wants.eq(_with(s.wants, s.flag, draws_on)),
                s.stopped.eq(_with(s.stopped, s.flag, stopped)), s.state.eq(State.SETTLE)]
            with m.If(anew):
                m.d.comb += s.put("h", ONE)
            with m.If(~stays):
                m.d.comb += s.put("last", self.verdicts.payload.token)
                m.d.sync += s.stale.eq(s.stale | (s.drafting & s.flag))
            with m.If(s.done):
                m.d.sync += [s.alive.eq(s.alive & ~s.flag), s.alive_count.eq(s.alive_count - 1)]

    def _migrate(self, m: Module, s: ManagerState, pool: SharedPool, eager: list[EagerPool]) -> None:
        """A token moves from an Eager Pool to the Shared Pool."""
        arrive = s.at[State.ARRIVE]
        for k, unit in enumerate(eager):
            here = s.lane == k
            m.d.comb += [unit.move.eq(s.at[State.MOVE] & here), unit.move_request.eq(s.request),
                         unit.moved.ready.eq(arrive & here)]
            with m.If(arrive & here):
                m.d.comb += [pool.insert.payload.eq(unit.moved.payload), pool.insert.valid.eq(1)]
        with m.If(s.at[State.MOVE]):
            m.d.sync += s.state.eq(State.ARRIVE)
        with m.If(arrive):
            m.d.comb += s.put("eager", s.row["eager"] - 1)
            m.d.sync += [s.eagers.eq(_with(s.eagers, s.flag, s.row["eager"] != 1)), s.state.eq(State.SETTLE)]

    def _pass(self, m: Module, s: ManagerState, pool: SharedPool, scheduler: IntensityScheduler) -> None:
        """A verification pass: its requests, then the pool's round."""
        p, beat, chosen = self.p, self.verify.payload, pool.selected.payload
        serve, select = s.at[State.SERVE], s.at[State.SELECT]
        rows_left = Signal(p.rows_width)
        token = select & ~chosen.end
        m.d.comb += [
            rows_left.eq(s.capacity - s.served),
            pool.start.valid.eq(s.at[State.START]),
            pool.start.payload.eq(Mux(rows_left > p.entries, p.entries, rows_left)),
            pool.selected.ready.eq(select & self.verify.ready),
            pool.eligible.eq(s.verifying.bit_select(pool.candidate, 1)),
            self.verify.valid.eq(serve | (select & pool.selected.valid)),
            beat.request.eq(Mux(serve | token, s.request, 0)),
            beat.position.eq(Mux(serve, s.row["base"], Mux(token, chosen.entry.position, 0))),
            beat.token.eq(Mux(token, chosen.entry.token, 0)),
            beat.kind.eq(Mux(serve, VerifyKind.REQUEST, Mux(chosen.end, VerifyKind.END, VerifyKind.TOKEN))),
            scheduler.tokens.eq(s.tokens), scheduler.requests.eq(s.served),
        ]
        counters = self.counters
        with m.If(s.at[State.NEXT_SERVED]):
            m.d.sync += [s.chosen.eq(s.lowest), s.wrapped.eq(s.wrapped | ~s.found)]
            with m.If(s.found):
                m.d.sync += s.state.eq(State.SERVE)
        with m.If(serve & self.verify.ready):
            ended = (s.served + 1 == s.capacity) | (s.todo == s.flag)
            m.d.sync += [
                s.verifying.eq(s.verifying | s.flag), s.verifying_count.eq(s.verifying_count + 1),
                s.todo.eq(s.todo & ~s.flag), s.served.eq(s.served + 1),
                counters.served.eq(counters.served + 1), counters.rows.eq(counters.rows + 1),
                s.state.eq(Mux(ended, State.START, State.NEXT_SERVED))]
        with m.If(s.at[State.START] & pool.start.ready):
            m.d.sync += [s.rings[s.group].eq(s.chosen + 1), s.state.eq(State.SELECT)]
        with m.If(select & self.verify.valid & self.verify.ready):
            with m.If(chosen.end):
                m.d.comb += scheduler.round.eq(1)
                m.d.sync += [counters.passes.eq(counters.passes + 1), s.state.eq(State.SETTLE)]
            with m.Else():
                m.d.comb += s.put("locked", s.row["locked"] + 1)
                m.d.sync += [s.tokens.eq(s.tokens + 1), counters.rows.eq(counters.rows + 1)]

    def _step(self, m: Module, s: ManagerState, scheduler: IntensityScheduler) -> None:
        """A draft step: its requests."""
        beat, draft, end = self.draft.payload, s.at[State.DRAFT], s.at[State.DRAFT_END]
        m.d.comb += [
            self.draft.valid.eq(draft | end), beat.request.eq(Mux(draft, s.request, 0)),
            beat.position.eq(Mux(draft, s.end, 0)), beat.token.eq(Mux(draft, s.row["last"], 0)), beat.end.eq(end),
            scheduler.drafting.eq(s.served), scheduler.step.eq(end & self.draft.ready),
        ]
        with m.If(s.at[State.NEXT_DRAFT]):
            m.d.sync += [s.chosen.eq(s.lowest), s.state.eq(State.DRAFT)]
        with m.If(draft & self.draft.ready):
            ended = (s.places == 1) | (s.todo == s.flag)
            m.d.sync += [
                s.drafting.eq(s.drafting | s.flag), s.drafting_count.eq(s.drafting_count + 1),
                s.todo.eq(s.todo & ~s.flag), s.served.eq(s.served + 1), s.places.eq(s.places - 1),
                s.state.eq(Mux(ended, State.DRAFT_END, State.NEXT_DRAFT))]
        with m.If(end & self.draft.ready):
            m.d.sync += s.state.eq(State.SETTLE)

    def _map(self, m: Module, scheduler: IntensityScheduler) -> None:
        """Where the movable operators run."""
        names = ("dynamic", "initial_dlm_fc", "initial_tlm_attention", "dlm_fc_low", "dlm_fc_high",
                 "tlm_attention_low", "tlm_attention_high")
        m.d.comb += [getattr(scheduler, name).eq(self.settings[name]) for name in names]
        m.d.comb += [self.dlm_fc.eq(scheduler.dlm_fc), self.tlm_attention.eq(scheduler.tlm_attention)]

    def _count(self, m: Module, s: ManagerState, pool: SharedPool) -> None:
        """Cycles while requests are live, and draft tokens."""
        drafting, verifying = s.drafting_count != 0, s.verifying_count != 0
        stuck = ~drafting & s.lane_wants.any()
        for name, condition in (
                ("cycles", 1), ("drafting", drafting), ("verifying", verifying), ("both", drafting & verifying),
                ("locked", stuck & ~s.eager_mode & verifying),
                ("eager_full", stuck & s.eager_mode & ~s.lane_could.any()),
                ("pool_full", stuck & ~s.eager_mode & ~verifying & ~s.room), ("idle", ~drafting & ~verifying),
                ("deciding", self.busy)):
            with m.If((s.alive_count != 0) & condition):
                m.d.sync += self.counters[name].eq(self.counters[name] + 1)
        with m.If(self.drafted.ready):
            m.d.sync += self.counters.drafted.eq(self.counters.drafted + 1)
            with m.If(s.at[State.MULTIPLY]):
                m.d.sync += self.counters.stale.eq(self.counters.stale + 1)


def _with(flags: Any, flag: Any, value: Any) -> Any:
    """Flags with one of them set to a value."""
    return Mux(value, flags | flag, flags & ~flag)
