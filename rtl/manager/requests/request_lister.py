"""Shows the requests of a set one after the other, in ring order; and the lowest request of another set meanwhile.

::

    set, ring --> from the ring on, before it --+--> 8 requests each: any? first? --> register --> lowest --> next
                          search (at rest) -----'                                                      '--> found

The next request is sought while one is shown. A request becomes the one at hand (``advance``), its row is read in the
cycle behind, and it is shown from the one after until it is taken.

Latency: 5 cycles from ``start`` to the first request shown; 2 from ``search`` to ``found``. Throughput: a request in
2 cycles, 2 more where the ring is at its end.
"""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from rtl.manager.requests.layouts import request_list
from rtl.parts.pick import lowest, pick
from rtl.unit import Unit
from sim_models.params.manager.manager import ManagerParams

__all__ = ["RequestLister"]

#: requests that are looked at together
_GROUP = 8


class RequestLister(Unit):
    """Lists the requests of a set.

    Members
    -------
    search: In(requests)
        A set whose lowest request is sought while nothing is listed.
    found: Out(1), first: Out(request_width)
        Whether there was one in the cycle before, and which.
    wanted: In(request_list)
        A set to be listed, from ``ring`` on and then from 0 on; and how the list goes on.
    advance: Out(1), following: Out(request_width)
        Another request is at hand from the next cycle on.
    shown: Out(1)
        Its row is there, until ``take``.
    finished: Out(1)
        The last request is taken in this cycle, or the set has no more. A set must not be empty.
    """

    block = "request_lister"

    search: Signal
    found: Signal
    first: Signal
    wanted: Any
    advance: Signal
    following: Signal
    shown: Signal
    finished: Signal

    def __init__(self, params: ManagerParams | None = None) -> None:
        p = params or ManagerParams()
        self.p = p
        super().__init__(p, {
            "search": In(p.requests), "found": Out(1), "first": Out(p.request_width), "wanted": In(request_list(p)),
            "advance": Out(1), "following": Out(p.request_width), "shown": Out(1), "finished": Out(1),
        })

    def body(self, platform: Any) -> Module:
        m = Module()
        p = self.p
        upper, lower = Signal(p.requests), Signal(p.requests)
        listing, picks, picked = Signal(), Signal(), Signal()
        searched = Signal(p.requests)
        # what was picked leaves the set in the cycle behind
        left = upper & ~Mux(picked, 1 << self.following, 0)
        m.d.comb += searched.eq(Mux(listing, left, self.search))
        self._lowest(m, searched)

        # Looks for the next request every other cycle
        found, wraps, waits, reads = Signal(), Signal(), Signal(), Signal()
        known, empty = Signal(), Signal()           # the next request; that there is none
        begun, more = Signal(), Signal()            # in the cycle behind the start; whether the ring goes on from 0
        m.d.comb += [found.eq(picks & self.found & (~known | self.advance)), wraps.eq(picks & ~self.found & more)]
        m.d.sync += [picked.eq(found), picks.eq(listing & (~picks | (self.found & known & ~self.advance)))]
        with m.If(self.advance):
            m.d.sync += known.eq(0)
        with m.If(listing):
            m.d.sync += upper.eq(left)
        with m.If(found):
            m.d.sync += [self.following.eq(self.first), known.eq(1)]
        with m.If(wraps):
            m.d.sync += [upper.eq(lower), more.eq(0)]
        with m.If(picks & ~self.found & ~more):
            m.d.sync += empty.eq(1)

        m.d.sync += begun.eq(self.wanted.start)
        with m.If(begun):
            m.d.sync += more.eq(lower.any())

        # Shows one
        took = self.shown & self.wanted.take
        m.d.comb += [
            self.advance.eq(known & (waits | (took & ~self.wanted.stop))),
            self.finished.eq((took & (self.wanted.stop | (empty & ~known))) | (waits & empty & ~known)),
        ]
        m.d.sync += [reads.eq(self.advance), self.shown.eq(reads | (self.shown & ~took))]
        with m.If(self.advance):
            m.d.sync += waits.eq(0)
        with m.Elif(took):
            m.d.sync += waits.eq(1)
        with m.If(self.finished):
            m.d.sync += [listing.eq(0), picks.eq(0), known.eq(0), waits.eq(0)]
        with m.If(self.wanted.start):
            from_ring = Cat(self.wanted.ring < k + 1 for k in range(p.requests))
            m.d.sync += [upper.eq(self.wanted.todo & from_ring), lower.eq(self.wanted.todo & ~from_ring),
                         listing.eq(1), picks.eq(0), empty.eq(0), waits.eq(1)]
        return m

    def _lowest(self, m: Module, searched: Signal) -> None:
        """The lowest request, in two steps."""
        size = min(_GROUP, self.p.requests)
        some, firsts = [], []
        for n in range(0, self.p.requests, size):
            any_here, first = lowest(list(searched[n:n + size]))
            held_any, held_first = Signal(name=f"any_{n}"), Signal(len(first), name=f"first_{n}")
            m.d.sync += [held_any.eq(any_here), held_first.eq(first)]
            some.append(held_any)
            firsts.append(held_first)
        found, group = lowest(some)
        m.d.comb += [self.found.eq(found), self.first.eq(Cat(pick(firsts, group), group) if len(some) > 1
                                                         else firsts[0])]
