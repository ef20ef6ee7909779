"""A draft step: those requests of a micro-batch whose drafts go on, lowest first, then its end.

Micro-batches take turns: the next one behind that of the step before. A token that is on its way has its place in a
pool for certain, so no more requests are named than there are places.

Latency: 5 cycles from ``start`` to the first request, 2 a request, 1 for the end.
"""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from rtl.manager.layouts import draft_beat
from rtl.manager.requests.layouts import flag_changes, ready_work, request_list, request_row
from rtl.parts.pick import lowest, pick
from rtl.unit import Unit
from sim_models.params.manager.manager import ManagerParams

__all__ = ["SendStep"]


class SendStep(Unit):
    """The event of a draft step.

    Members
    -------
    start: In(1), done: Out(1)
    eager: In(1)
        Setting: tokens have places in the Eager Pools.
    goes_on: In(requests), work: In(ready_work)
        Requests that would be drafted for; micro-batches whose step may begin, and places.
    wanted: Out(request_list), shown: In(1), finished: In(1)
        See :class:`rtl.manager.requests.request_lister.RequestLister`.
    request: In(request_width), row: In(request_row), length: In(length_width)
        The request that is shown, its numbers, and the length of its draft.
    steps: Out(stream of draft_beat)
    served: Out(request_width + 1)
        Requests of the step so far.
    changes: Out(flag_changes)
        0 outside of the event.
    """

    block = "send_step"

    start: Signal
    done: Signal
    eager: Signal
    goes_on: Signal
    work: Any
    wanted: Any
    shown: Signal
    finished: Signal
    request: Signal
    row: Any
    length: Signal
    steps: Any
    served: Signal
    changes: Any

    def __init__(self, params: ManagerParams | None = None) -> None:
        p = params or ManagerParams()
        self.p = p
        super().__init__(p, {
            "start": In(1), "done": Out(1), "eager": In(1), "goes_on": In(p.requests), "work": In(ready_work(p)),
            "wanted": Out(request_list(p)), "shown": In(1), "finished": In(1), "request": In(p.request_width),
            "row": In(request_row(p)), "length": In(p.length_width), "steps": Out(stream.Signature(draft_beat(p))),
            "served": Out(p.request_width + 1), "changes": Out(flag_changes),
        })

    def body(self, platform: Any) -> Module:
        m = Module()
        p, beat, work = self.p, self.steps.payload, self.work
        lists, ends = Signal(name="lists"), Signal(name="ends")
        places = Signal(max(p.count_width, p.eager_entries.bit_length()))
        ring = Signal(max(1, p.lane_width))                     # the micro-batch that is next

        # Which requests
        later = work.steps & ~((1 << ring) - 1)[:p.lanes]
        _, lane = lowest(list(Mux(later.any(), later, work.steps)))
        members = Cat(lane == k for k in range(p.lanes)).replicate(p.requests // p.lanes)
        with m.If(self.start):
            m.d.comb += [self.wanted.start.eq(1), self.wanted.todo.eq(self.goes_on & members)]
            m.d.sync += [
                lists.eq(1), self.served.eq(0), ring.eq(lane + 1),
                places.eq(Mux(self.eager, pick([work.eager_places[k] for k in range(p.lanes)], lane), work.places)),
            ]

        # A beat each
        serves = lists & self.shown & self.steps.ready
        with m.If(lists):
            m.d.comb += [
                self.steps.valid.eq(self.shown), beat.request.eq(self.request),
                beat.position.eq(self.row.base + self.length), beat.token.eq(self.row.last),
            ]
        m.d.comb += [self.wanted.take.eq(serves), self.wanted.stop.eq(lists & (places == 1))]
        with m.If(serves):
            m.d.comb += self.changes.set.drafting.eq(1)
            m.d.sync += [places.eq(places - 1), self.served.eq(self.served + 1)]
        with m.If(lists & self.finished):
            m.d.sync += [lists.eq(0), ends.eq(1)]

        # The end
        with m.If(ends):
            m.d.comb += [self.steps.valid.eq(1), beat.end.eq(1), self.done.eq(self.steps.ready)]
        with m.If(self.done):
            m.d.sync += ends.eq(0)
        return m
