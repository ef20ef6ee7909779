"""Which event is next, and which request is at hand.

::

    streams, flags --> register --> the first that may --> start of an event, request
                                        ^                       |
         settle <--- done --------------'-----------------------'

The first of this list that may goes ahead: a migration, a draft token, a verdict, a new request, a pass, a draft
step. After an event comes a cycle in which flags settle; passes and steps wait two cycles more, until it is known
which may begin. An offer is seen a cycle after it came.

Latency: 1 cycle from an offer to its event at rest; 2 from ``done`` to the next. After reset it waits for ``awake``.
"""

from typing import Any

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib.wiring import In, Out

from rtl.manager.events.layouts import event_starts
from rtl.unit import Unit
from sim_models.params.manager.manager import ManagerParams

__all__ = ["EventSequencer"]


class EventSequencer(Unit):
    """Picks events.

    Members
    -------
    awake: In(1)
        The pools take operations; once high after reset it counts as high.
    movable: In(1), first: In(request_width)
        As of the cycle before: a request has eager tokens that may move; the lowest.
    room: In(1)
        The Shared Pool has an entry.
    token, verdict, fresh: In(1), and token_request, verdict_request, fresh_request: In(request_width)
        Offers that are not taken in this cycle: a draft token, a verdict, a new request.
    taken: In(requests)
        Numbers of requests that are in use.
    passes, steps: In(1)
        A pass, a draft step may begin.
    advance: In(1), following: In(request_width)
        Another request of a list is at hand from the next cycle on.
    done: In(1)
        The last cycle of an event.
    start: Out(event_starts)
    request: Out(request_width)
        The request at hand, from the cycle behind its start.
    waits: Out(1)
        Nothing is there to be done.
    """

    block = "event_sequencer"

    awake: Signal
    movable: Signal
    first: Signal
    room: Signal
    token: Signal
    verdict: Signal
    fresh: Signal
    token_request: Signal
    verdict_request: Signal
    fresh_request: Signal
    taken: Signal
    passes: Signal
    steps: Signal
    advance: Signal
    following: Signal
    done: Signal
    start: Any
    request: Signal
    waits: Signal

    def __init__(self, params: ManagerParams | None = None) -> None:
        p = params or ManagerParams()
        self.p = p
        bits = ("awake", "movable", "room", "token", "verdict", "fresh", "passes", "steps", "advance", "done")
        requests = ("first", "token_request", "verdict_request", "fresh_request", "following")
        super().__init__(p, {
            **dict.fromkeys(bits, In(1)), **dict.fromkeys(requests, In(p.request_width)), "taken": In(p.requests),
            "start": Out(event_starts), "request": Out(p.request_width), "waits": Out(1),
        })

    def body(self, platform: Any) -> Module:
        m = Module()
        token, verdict, fresh = (Signal(name=f"{name}_seen") for name in ("token", "verdict", "fresh"))
        m.d.sync += [token.eq(self.token), verdict.eq(self.verdict),
                     fresh.eq(self.fresh & ~self.taken.bit_select(self.fresh_request, 1))]
        # settles in the cycle behind an event, then decides; `steady`: what may begin is known
        settles, decides, steady, awake = Signal(init=1), Signal(), Signal(2), Signal()
        m.d.sync += [steady.eq(Cat(1, steady)), awake.eq(awake | self.awake), settles.eq(self.done)]
        with m.If(settles):
            m.d.sync += [decides.eq(1), steady.eq(0)]
        start = self.start
        with m.If(decides & awake):
            # in the first cycle or never, since nothing but an event makes a token movable
            with m.If(~steady[0] & self.movable & self.room):
                m.d.comb += start.migrate.eq(1)
                m.d.sync += self.request.eq(self.first)
            with m.Elif(token):
                m.d.comb += start.token.eq(1)
                m.d.sync += self.request.eq(self.token_request)
            with m.Elif(verdict):
                m.d.comb += start.verdict.eq(1)
                m.d.sync += self.request.eq(self.verdict_request)
            with m.Elif(fresh):
                m.d.comb += start.request.eq(1)
                m.d.sync += self.request.eq(self.fresh_request)
        with m.If(decides & awake & steady[1] & ~token & ~verdict & ~fresh):
            m.d.comb += [start.verify.eq(self.passes), start.step.eq(self.steps & ~self.passes),
                         self.waits.eq(~self.passes & ~self.steps)]
        with m.If(start.as_value().any()):
            m.d.sync += decides.eq(0)
        with m.If(self.advance):
            m.d.sync += self.request.eq(self.following)
        return m
