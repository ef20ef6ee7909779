"""A verification pass: its requests in ring order, then the tokens that the Shared Pool chooses, then its end.

::

    start --> requests, a row each --> the Shared Pool's round, the other rows --> end

Each request gets a row for its last known token; where there are more requests than rows, the ring goes on behind the
last one in the next pass. Without ``shared`` a pass is for the next micro-batch that rests.

Latency: 5 cycles from ``start`` to the first request, 2 a request, and those of the pool's round.
"""

from typing import Any

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from rtl.manager.events.layouts import manager_events
from rtl.manager.layouts import verify_beat
from rtl.manager.pools.layouts import selected_beat
from rtl.manager.requests.layouts import flag_changes, request_list, request_row
from rtl.parts.pick import lowest, pick
from rtl.unit import Unit
from sim_models.params.manager.manager import ManagerParams
from sim_models.spec.manager import VerifyKind

__all__ = ["SendPass"]


class SendPass(Unit):
    """The event of a pass.

    Members
    -------
    start: In(1), done: Out(1)
    pooled: In(1), capacity: In(rows_width)
        Settings: ``shared``; rows, at least one.
    alive: In(requests), rests: In(lanes)
        Requests, and micro-batches that can be verified alone.
    wanted: Out(request_list), shown: In(1), finished: In(1)
        See :class:`rtl.manager.requests.request_lister.RequestLister`.
    request: In(request_width), row: In(request_row)
        The request that is shown, and its numbers.
    round: Out(stream of count_width bits), selected: In(stream of selected_beat)
        See :class:`rtl.manager.pools.shared_pool.SharedPool`.
    verify: Out(stream of verify_beat)
    served: Out(request_width + 1), tokens: Out(count_width)
        Requests and draft tokens of the pass so far.
    changes, events: Out
        See :mod:`rtl.manager.requests.layouts` and :mod:`rtl.manager.events.layouts`; 0 outside of the event.
    """

    block = "send_pass"

    start: Signal
    done: Signal
    pooled: Signal
    capacity: Signal
    alive: Signal
    rests: Signal
    wanted: Any
    shown: Signal
    finished: Signal
    request: Signal
    row: Any
    round: Any
    selected: Any
    verify: Any
    served: Signal
    tokens: Signal
    changes: Any
    events: Any

    def __init__(self, params: ManagerParams | None = None) -> None:
        p = params or ManagerParams()
        self.p = p
        super().__init__(p, {
            "start": In(1), "done": Out(1), "pooled": In(1), "capacity": In(p.rows_width), "alive": In(p.requests),
            "rests": In(p.lanes), "wanted": Out(request_list(p)), "shown": In(1), "finished": In(1),
            "request": In(p.request_width), "row": In(request_row(p)),
            "round": Out(stream.Signature(p.count_width)),
            "selected": In(stream.Signature(selected_beat(p.shared_pool))),
            "verify": Out(stream.Signature(verify_beat(p))), "served": Out(p.request_width + 1),
            "tokens": Out(p.count_width), "changes": Out(flag_changes), "events": Out(manager_events),
        })

    def body(self, platform: Any) -> Module:
        m = Module()
        p, beat, chosen = self.p, self.verify.payload, self.selected.payload
        lists, begins, selects = (Signal(name=name) for name in ("lists", "begins", "selects"))
        rows = Signal(p.rows_width)                             # that are left
        rings = Array(Signal(p.request_width, name=f"ring_{k}") for k in range(p.lanes))
        group, lane_ring = Signal(max(1, p.lane_width)), Signal(max(1, p.lane_width))

        # Which requests
        later = self.rests & ~((1 << lane_ring) - 1)[:p.lanes]
        _, first = lowest(list(Mux(later.any(), later, self.rests)))
        lane = Mux(self.pooled, 0, first)
        members = Cat(self.pooled | (first == k) for k in range(p.lanes))
        with m.If(self.start):
            m.d.comb += [self.wanted.start.eq(1), self.wanted.ring.eq(pick(list(rings), lane)),
                         self.wanted.todo.eq(self.alive & members.replicate(p.requests // p.lanes))]
            m.d.sync += [lists.eq(1), rows.eq(self.capacity), group.eq(lane), self.served.eq(0), self.tokens.eq(0)]
            with m.If(~self.pooled):
                m.d.sync += lane_ring.eq(first + 1)

        # A row each
        serves = lists & self.shown & self.verify.ready
        with m.If(lists):
            m.d.comb += [self.verify.valid.eq(self.shown), beat.request.eq(self.request),
                         beat.position.eq(self.row.base), beat.kind.eq(VerifyKind.REQUEST)]
        m.d.comb += [self.wanted.take.eq(serves), self.wanted.stop.eq(lists & (rows == 1))]
        with m.If(serves):
            m.d.comb += self.changes.set.verifying.eq(1)
            m.d.sync += [rows.eq(rows - 1), self.served.eq(self.served + 1)]
        with m.If(lists & self.finished):
            m.d.sync += [lists.eq(0), begins.eq(1)]

        # The other rows
        m.d.comb += [self.round.valid.eq(begins), self.round.payload.eq(Mux(rows < p.entries, rows, p.entries))]
        with m.If(begins & self.round.ready):
            m.d.sync += [begins.eq(0), selects.eq(1), rings[group].eq(self.request + 1)]
        offers = selects & self.selected.valid
        taken = offers & self.verify.ready
        m.d.comb += [self.selected.ready.eq(selects & self.verify.ready), self.done.eq(taken & chosen.end)]
        with m.If(offers):
            m.d.comb += [self.verify.valid.eq(1), beat.kind.eq(Mux(chosen.end, VerifyKind.END, VerifyKind.TOKEN))]
            with m.If(~chosen.end):
                m.d.comb += [beat.request.eq(chosen.entry.request), beat.position.eq(chosen.entry.position),
                             beat.token.eq(chosen.entry.token)]
        with m.If(self.done):
            m.d.sync += selects.eq(0)
        with m.Elif(taken):
            m.d.sync += self.tokens.eq(self.tokens + 1)
        m.d.comb += [self.events.served.eq(serves), self.events.passes.eq(self.done),
                     self.events.rows.eq(serves | (taken & ~chosen.end))]
        return m
