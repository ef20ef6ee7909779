"""What the Manager tells the engines: passes, draft steps, where operators run; and what it counts."""

from typing import TYPE_CHECKING

from amaranth.hdl import Module, Mux, Signal

from rtl.manager.layouts import VerifyKind
from rtl.manager.manager_state import ManagerState, State

if TYPE_CHECKING:
    from rtl.manager.manager import Manager

__all__ = ["count", "place", "send_pass", "send_step"]


def send_pass(m: Module, unit: "Manager", s: ManagerState) -> None:
    """A verification pass: its requests, then the pool's round."""
    p, pool, beat, chosen = s.p, s.pool, unit.verify.payload, s.pool.selected.payload
    serve, select = s.at[State.SERVE], s.at[State.SELECT]
    rows_left = Signal(p.rows_width)
    token = select & ~chosen.end
    m.d.comb += [
        rows_left.eq(s.capacity - s.served),
        pool.start.valid.eq(s.at[State.START]),
        pool.start.payload.eq(Mux(rows_left > p.entries, p.entries, rows_left)),
        pool.selected.ready.eq(select & unit.verify.ready),
        pool.eligible.eq(s.verifying.bit_select(pool.candidate, 1)),
        unit.verify.valid.eq(serve | (select & pool.selected.valid)),
        beat.request.eq(Mux(serve | token, s.request, 0)),
        beat.position.eq(Mux(serve, s.row["base"], Mux(token, chosen.entry.position, 0))),
        beat.token.eq(Mux(token, chosen.entry.token, 0)),
        beat.kind.eq(Mux(serve, VerifyKind.REQUEST, Mux(chosen.end, VerifyKind.END, VerifyKind.TOKEN))),
        s.scheduler.tokens.eq(s.tokens), s.scheduler.requests.eq(s.served),
    ]
    counters = unit.counters
    with m.If(s.at[State.NEXT_SERVED]):
        m.d.sync += [s.chosen.eq(s.lowest), s.wrapped.eq(s.wrapped | ~s.found)]
        with m.If(s.found):
            m.d.sync += s.state.eq(State.SERVE)
    with m.If(serve & unit.verify.ready):
        ended = (s.served + 1 == s.capacity) | (s.todo == s.flag)
        m.d.sync += [
            s.verifying.eq(s.verifying | s.flag), s.verifying_count.eq(s.verifying_count + 1),
            s.todo.eq(s.todo & ~s.flag), s.served.eq(s.served + 1),
            counters.served.eq(counters.served + 1), counters.rows.eq(counters.rows + 1),
            s.state.eq(Mux(ended, State.START, State.NEXT_SERVED))]
    with m.If(s.at[State.START] & pool.start.ready):
        m.d.sync += [s.rings[s.group].eq(s.chosen + 1), s.state.eq(State.SELECT)]
    with m.If(select & unit.verify.valid & unit.verify.ready):
        with m.If(chosen.end):
            m.d.comb += s.scheduler.round.eq(1)
            m.d.sync += [counters.passes.eq(counters.passes + 1), s.state.eq(State.SETTLE)]
        with m.Else():
            m.d.comb += s.put("locked", s.row["locked"] + 1)
            m.d.sync += [s.tokens.eq(s.tokens + 1), counters.rows.eq(counters.rows + 1)]


def send_step(m: Module, unit: "Manager", s: ManagerState) -> None:
    """A draft step: its requests."""
    beat, draft, end = unit.draft.payload, s.at[State.DRAFT], s.at[State.DRAFT_END]
    m.d.comb += [
        unit.draft.valid.eq(draft | end), beat.request.eq(Mux(draft, s.request, 0)),
        beat.position.eq(Mux(draft, s.end, 0)), beat.token.eq(Mux(draft, s.row["last"], 0)), beat.end.eq(end),
        s.scheduler.drafting.eq(s.served), s.scheduler.step.eq(end & unit.draft.ready),
    ]
    with m.If(s.at[State.NEXT_DRAFT]):
        m.d.sync += [s.chosen.eq(s.lowest), s.state.eq(State.DRAFT)]
    with m.If(draft & unit.draft.ready):
        ended = (s.places == 1) | (s.todo == s.flag)
        m.d.sync += [
            s.drafting.eq(s.drafting | s.flag), s.drafting_count.eq(s.drafting_count + 1),
            s.todo.eq(s.todo & ~s.flag), s.served.eq(s.served + 1), s.places.eq(s.places - 1),
            s.state.eq(Mux(ended, State.DRAFT_END, State.NEXT_DRAFT))]
    with m.If(end & unit.draft.ready):
        m.d.sync += s.state.eq(State.SETTLE)


def place(m: Module, unit: "Manager", s: ManagerState) -> None:
    """Where the movable operators run."""
    names = ("dynamic", "initial_dlm_fc", "initial_tlm_attention", "dlm_fc_low", "dlm_fc_high",
             "tlm_attention_low", "tlm_attention_high")
    m.d.comb += [getattr(s.scheduler, name).eq(unit.settings[name]) for name in names]
    m.d.comb += [unit.dlm_fc.eq(s.scheduler.dlm_fc), unit.tlm_attention.eq(s.scheduler.tlm_attention)]


def count(m: Module, unit: "Manager", s: ManagerState) -> None:
    """Cycles while requests are live, and draft tokens."""
    drafting, verifying, counters = s.drafting_count != 0, s.verifying_count != 0, unit.counters
    stuck = ~drafting & s.lane_wants.any()
    for name, condition in (
            ("cycles", 1), ("drafting", drafting), ("verifying", verifying), ("both", drafting & verifying),
            ("locked", stuck & ~s.eager_mode & verifying),
            ("eager_full", stuck & s.eager_mode & ~s.lane_could.any()),
            ("pool_full", stuck & ~s.eager_mode & ~verifying & ~s.room), ("idle", ~drafting & ~verifying),
            ("softmax", unit.softmax.busy), ("deciding", unit.busy | unit.softmax.busy)):
        with m.If((s.alive_count != 0) & condition):
            m.d.sync += counters[name].eq(counters[name] + 1)
    with m.If(unit.drafted.ready):
        m.d.sync += counters.drafted.eq(counters.drafted + 1)
        with m.If(s.stale.bit_select(s.request, 1)):
            m.d.sync += counters.stale.eq(counters.stale + 1)
    with m.If(unit.softmax.masked):
        m.d.sync += counters.masked.eq(counters.masked + 1)
