"""What the Manager does with a request: a new one, a draft token, a verdict, a token that moves."""

from typing import TYPE_CHECKING, Any

from amaranth.hdl import Cat, Module, Mux, Signal

from rtl.manager.manager_state import ManagerState, State
from rtl.manager.pools.layouts import EagerAction
from rtl.unit import in_reset

if TYPE_CHECKING:
    from rtl.manager.manager import Manager

__all__ = ["migrate", "new", "token", "unlock", "verdict"]


def new(m: Module, unit: "Manager", s: ManagerState) -> None:
    """A new request; the controller left off with an empty draft of the one before."""
    given = unit.requests.payload
    m.d.comb += unit.requests.ready.eq(s.at[State.NEW] & ~in_reset())
    with m.If(s.at[State.NEW]):
        for name, value in (("base", given.position), ("stop", given.stop), ("last", given.token), ("locked", 0),
                            ("eager", 0)):
            m.d.comb += s.put(name, value)
        m.d.sync += s.state.eq(State.SETTLE)
        with m.If(given.stop > given.position):
            m.d.sync += [s.alive.eq(s.alive | s.flag), s.alive_count.eq(s.alive_count + 1),
                         s.wants.eq(_with(s.wants, s.flag, s.controller.may_draft
                                          & (given.stop > given.position + 1)))]


def token(m: Module, unit: "Manager", s: ManagerState) -> None:
    """A draft token goes to the controller, and from there to its pool."""
    p, given, controller = s.p, unit.drafted.payload, s.controller
    offered = controller.drafted.payload
    late, take, store = Signal(), s.at[State.TAKE], s.at[State.STORE]
    m.d.comb += [
        late.eq(s.stale.bit_select(s.request, 1)),
        unit.drafted.ready.eq(take & (late | controller.drafted.ready) & ~in_reset()),
        controller.drafted.valid.eq(take & ~late), offered.request.eq(s.request), offered.position.eq(s.end),
        offered.token.eq(given.token), offered.p.eq(given.probability),
        # the last token of a text is the target's in any case, so the one before it is the last to be drafted
        offered.final.eq((s.end + 2)[:p.position_width] == s.row["stop"]),
        controller.verifying.eq(s.verifying.bit_select(s.request, 1)),
        controller.behind.eq(s.eagers.bit_select(s.request, 1)), controller.shared_room.eq(~s.pool.full),
        s.pool.insert.valid.eq(controller.to_shared.valid), s.pool.insert.payload.eq(controller.to_shared.payload),
        controller.to_shared.ready.eq(s.pool.insert.ready),
    ]
    for k, pool in enumerate(s.eager):
        here = s.lane == k
        m.d.comb += [pool.insert.valid.eq(controller.to_eager.valid & here),
                     pool.insert.payload.eq(controller.to_eager.payload)]
        with m.If(here):
            m.d.comb += controller.to_eager.ready.eq(pool.insert.ready)
    with m.If(take & late):
        m.d.sync += s.state.eq(State.SETTLE)
    with m.Elif(take):
        m.d.sync += s.state.eq(State.RATE)
    with m.If(s.at[State.RATE]):
        m.d.sync += s.state.eq(State.STORE)
    with m.If(store | (take & late)):
        m.d.sync += [s.drafting.eq(s.drafting & ~s.flag), s.drafting_count.eq(s.drafting_count - 1),
                     s.stale.eq(s.stale & ~s.flag)]
    with m.If(store):
        entry = controller.to_shared.payload
        m.d.comb += [
            *s.put("last", entry.token), s.text.write_en.eq(1), s.text.write_data.eq(entry.token),
            s.text.write_addr.eq(Cat(entry.position[:p.draft_width], s.request)),
        ]
        m.d.sync += [s.wants.eq(_with(s.wants, s.flag, controller.may_draft)), s.state.eq(State.SETTLE)]
        with m.If(controller.to_eager.valid):
            m.d.comb += s.put("eager", s.row["eager"] + 1)
            m.d.sync += [s.eagers.eq(s.eagers | s.flag), unit.counters.eager.eq(unit.counters.eager + 1)]


def verdict(m: Module, unit: "Manager", s: ManagerState) -> None:
    """Whether the draft stays valid, and the tokens that are emitted."""
    p, told, out, row = s.p, unit.verdicts.payload, unit.emitted.payload, s.row
    of_draft, position = Signal(), Signal(p.position_width)
    read_position = Signal(p.position_width)
    taken = unit.emitted.valid & unit.emitted.ready
    ends = unit.settings.stop_at_end & (out.token == unit.settings.end_token)
    m.d.comb += [
        of_draft.eq(s.index < told.accepted), position.eq(row["base"] + s.index),
        read_position.eq(Mux(s.at[State.WAITING], row["base"] + row["locked"],
                             Mux(s.at[State.COMPARE], row["base"], position + 1))),
        s.text.read_addr.eq(Cat(read_position[:p.draft_width], s.request)),
        s.text.read_en.eq(s.at[State.WAITING] | s.at[State.COMPARE] | taken),
        unit.emitted.valid.eq(s.at[State.EMIT]), out.request.eq(s.request), out.position.eq(position),
        out.token.eq(Mux(of_draft, s.text.read_data, told.token)),
        out.last.eq(ends | ((position + 1)[:p.position_width] == row["stop"])),
    ]
    with m.If(s.at[State.WAITING]):
        m.d.sync += [s.index.eq(0), s.state.eq(State.COMPARE)]
    with m.If(s.at[State.COMPARE]):
        m.d.sync += [
            s.keep.eq(told.bonus & (told.accepted == row["locked"]) & (s.length > row["locked"])
                      & (s.text.read_data == told.token)),
            s.state.eq(State.EMIT)]
    with m.If(taken):
        m.d.sync += [s.index.eq(s.index + 1), s.done.eq(out.last),
                     s.ends_next.eq((position + 2)[:p.position_width] == row["stop"]),
                     unit.counters.emitted.eq(unit.counters.emitted + 1),
                     unit.counters.accepted.eq(unit.counters.accepted + (of_draft | s.keep)),
                     unit.counters.completed.eq(unit.counters.completed + out.last)]
        with m.If(out.last | ~of_draft):
            m.d.sync += s.state.eq(State.UNLOCK)


def unlock(m: Module, unit: "Manager", s: ManagerState) -> None:
    """What a verdict leaves behind."""
    row, controller = s.row, s.controller
    stays, in_eager, told = Signal(), Signal(), controller.update.payload
    judged, close = s.pool.verdict.payload, s.at[State.CLOSE]
    unlocked = s.at[State.UNLOCK] & s.pool.verdict.ready
    m.d.comb += [
        stays.eq(s.keep & ~s.done),
        s.pool.verdict.valid.eq(s.at[State.UNLOCK]), judged.request.eq(s.request),
        judged.accepted.eq(row["locked"]), judged.bonus.eq(stays), unit.verdicts.ready.eq(close & ~in_reset()),
        controller.update.valid.eq(unlocked), told.request.eq(s.request), told.gone.eq(row["locked"] + 1),
        # the next token begins another draft also where none of this one is left
        told.restart.eq(~stays | (s.length == row["locked"] + 1)),
        # the length is that after the update: whether all that waited was in the Eager Pool
        in_eager.eq(s.length + 1 == row["eager"]),
    ]
    for k, pool in enumerate(s.eager):
        command = pool.command.payload
        m.d.comb += [pool.command.valid.eq(close & (s.lane == k) & (~stays | in_eager)),
                     command.request.eq(s.request),
                     command.action.eq(Mux(stays, EagerAction.DROP_FIRST, EagerAction.FLUSH))]
    with m.If(unlocked):
        m.d.sync += s.state.eq(State.CLOSE)
    with m.If(close):
        left = Mux(stays, row["eager"] - in_eager, 0)
        m.d.comb += [*s.put("base", row["base"] + s.index), *s.put("locked", 0), *s.put("eager", left)]
        m.d.sync += [
            s.eagers.eq(_with(s.eagers, s.flag, left != 0)), s.verifying.eq(s.verifying & ~s.flag),
            s.verifying_count.eq(s.verifying_count - 1),
            s.wants.eq(_with(s.wants, s.flag, ~s.done & ~s.ends_next & controller.may_draft)),
            s.state.eq(State.SETTLE)]
        with m.If(~stays):
            m.d.comb += s.put("last", unit.verdicts.payload.token)
            m.d.sync += s.stale.eq(s.stale | (s.drafting & s.flag))
        with m.If(s.done):
            m.d.sync += [s.alive.eq(s.alive & ~s.flag), s.alive_count.eq(s.alive_count - 1)]


def migrate(m: Module, unit: "Manager", s: ManagerState) -> None:
    """A token moves from an Eager Pool to the Shared Pool."""
    arrive = s.at[State.ARRIVE]
    for k, pool in enumerate(s.eager):
        here = s.lane == k
        m.d.comb += [pool.move.eq(s.at[State.MOVE] & here), pool.move_request.eq(s.request),
                     pool.moved.ready.eq(arrive & here)]
        with m.If(arrive & here):
            m.d.comb += [s.pool.insert.payload.eq(pool.moved.payload), s.pool.insert.valid.eq(1)]
    with m.If(s.at[State.MOVE]):
        m.d.sync += s.state.eq(State.ARRIVE)
    with m.If(arrive):
        m.d.comb += s.put("eager", s.row["eager"] - 1)
        m.d.sync += [s.eagers.eq(_with(s.eagers, s.flag, s.row["eager"] != 1)), s.state.eq(State.SETTLE)]


def _with(flags: Any, flag: Any, value: Any) -> Any:
    """Flags with one of them set to a value."""
    return Mux(value, flags | flag, flags & ~flag)
