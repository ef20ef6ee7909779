"""What the Manager does next: which passes and steps could begin, and which event goes ahead."""

from typing import TYPE_CHECKING, Any

from amaranth.hdl import Cat, Module, Mux, Signal

from rtl.manager.manager_state import ManagerState, State, lowest
from rtl.parts.pick import pick

if TYPE_CHECKING:
    from rtl.manager.manager import Manager

__all__ = ["decide", "due"]


def due(m: Module, unit: "Manager", s: ManagerState) -> None:
    """Which passes and steps could begin, as of the cycle before."""
    p, n, pool = s.p, s.p.lanes, s.pool
    shared, passing = unit.settings.shared, s.verifying_count != 0
    m.d.comb += [
        s.candidates.eq(s.wants & ~s.drafting), s.room.eq(pool.used + s.drafting_count < p.entries),
        s.fills.eq(shared & (s.alive_count + pool.used >= s.capacity)),
    ]
    at_work = [s.drafting[k::n].any() for k in range(n)]
    # of a complete request nothing more is waited for
    hoped_for = s.drafting & s.alive
    free = sum(at_work) < s.engines
    for k in range(n):
        wanted, room = s.candidates[k::n].any(), Mux(s.eager_mode, ~s.eager[k].full, s.room)
        m.d.comb += [s.lane_wants[k].eq(wanted), s.lane_could[k].eq(wanted & room)]
        held = ~s.eager_mode & (s.fills | Mux(shared, passing, s.verifying[k::n].any()))
        m.d.sync += [s.go[k].eq(~at_work[k] & s.lane_could[k] & free & ~held),
                     s.rests[k].eq(s.alive[k::n].any() & ~hoped_for[k::n].any() & ~s.lane_could[k])]
    quiet = ~hoped_for.any()
    now = (quiet & ~s.lane_could.any()) | (s.fills & (s.eager_mode | quiet)) | (
        s.eager_mode & (pool.used >= unit.settings.start))
    m.d.sync += s.due.eq(~passing & (s.alive_count != 0) & (~shared | now))


def decide(m: Module, unit: "Manager", s: ManagerState) -> None:
    """What comes next, and for which request."""
    p = s.p
    searched, movable = Signal(p.requests), s.eagers & ~s.verifying
    from_ring = Cat(k >= s.ring_at for k in range(p.requests))
    m.d.comb += searched.eq(Mux(s.at[State.DECIDE], movable, Mux(
        s.at[State.NEXT_SERVED] & ~s.wrapped, s.todo & from_ring, s.todo)))
    found, first = lowest(list(searched))
    m.d.comb += [s.found.eq(found), s.lowest.eq(first)]
    named = unit.requests.payload.request
    free = ~(s.alive | s.drafting).bit_select(named, 1)
    awake = s.pool.flush.ready
    with m.If(s.at[State.SETTLE]):
        m.d.sync += s.state.eq(State.DECIDE)
    with m.If(s.at[State.DECIDE] & awake):
        with m.If(s.found & ~s.pool.full):
            m.d.sync += [s.chosen.eq(s.lowest), s.state.eq(State.MOVE)]
        with m.Elif(unit.drafted.valid):
            m.d.sync += [s.chosen.eq(unit.drafted.payload.request), s.state.eq(State.TAKE)]
        with m.Elif(unit.verdicts.valid):
            m.d.sync += [s.chosen.eq(unit.verdicts.payload.request), s.state.eq(State.WAITING)]
        with m.Elif(unit.requests.valid & free):
            m.d.sync += [s.chosen.eq(named), s.state.eq(State.NEW)]
        with m.Elif(s.due & (unit.settings.shared | s.rests.any())):
            _begin_pass(m, unit, s)
        with m.Elif(s.go.any()):
            _begin_step(m, s)
        with m.Else():
            m.d.comb += s.waits.eq(1)
    m.d.comb += unit.busy.eq(~s.waits)


def _begin_pass(m: Module, unit: "Manager", s: ManagerState) -> None:
    p, shared = s.p, unit.settings.shared
    later = s.rests & Cat(k >= s.lane_ring for k in range(p.lanes))
    _, lane = lowest(list(Mux(later.any(), later, s.rests)))
    group = Mux(shared, 0, lane)
    m.d.sync += [
        s.served.eq(0), s.tokens.eq(0), s.wrapped.eq(0), s.group.eq(group), s.ring_at.eq(pick(list(s.rings), group)),
        s.todo.eq(Mux(shared, s.alive, s.alive & _members(s, lane))), s.state.eq(State.NEXT_SERVED),
    ]
    with m.If(~shared):
        m.d.sync += s.lane_ring.eq(lane + 1)


def _begin_step(m: Module, s: ManagerState) -> None:
    p = s.p
    _, lane = lowest(list(s.go))
    here = p.eager_entries - pick([unit.used for unit in s.eager], lane)
    m.d.sync += [
        s.served.eq(0), s.todo.eq(s.candidates & _members(s, lane)), s.state.eq(State.NEXT_DRAFT),
        s.places.eq(Mux(s.eager_mode, here, p.entries - s.pool.used - s.drafting_count)),
    ]


def _members(s: ManagerState, lane: Any) -> Any:
    """The requests of a micro-batch."""
    return Cat(lane == k for k in range(s.p.lanes)).replicate(s.p.requests // s.p.lanes)
