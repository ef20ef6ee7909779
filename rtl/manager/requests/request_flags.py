"""A bit a request for each of its states, counts of those, and the ones of the request at hand.

::

    request --> decoder --> set, clear --> flags --> all of them, counts
                                             '-----> register --> here

Whether a draft goes on is found out in the cycle behind the event that changed it: by then the draft controller shows
what the event has left of it.

Latency: 1 cycle from a change to flags and counts, 2 to ``wants``; 1 from ``request`` to ``here``, which shows all
changes of the cycles before ``request``. Throughput: a change of each flag a cycle.
"""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from rtl.manager.requests.layouts import flag_changes, request_flags, request_here, verdict_on_draft
from rtl.unit import Unit
from sim_models.params.manager.manager import ManagerParams

__all__ = ["RequestFlags"]


class RequestFlags(Unit):
    """Flags of all requests.

    Members
    -------
    request: In(request_width)
        The request at hand.
    changes: In(flag_changes)
        Flags of it that are set and cleared; a flag that is counted must have the other value before.
    draft: In(verdict_on_draft), may_draft: In(1)
        Its draft has changed; what the draft controller says of it in the cycle behind.
    flags: Out(request_flags)
    alive, drafting, verifying: Out(request_width + 1)
        Requests with such a flag.
    here: Out(request_here)
        Flags of the request that was at hand in the cycle before.
    """

    block = "request_flags"

    request: Signal
    changes: Any
    draft: Any
    may_draft: Signal
    flags: Any
    alive: Signal
    drafting: Signal
    verifying: Signal
    here: Any

    def __init__(self, params: ManagerParams | None = None) -> None:
        p = params or ManagerParams()
        self.p = p
        super().__init__(p, {
            "request": In(p.request_width), "changes": In(flag_changes), "draft": In(verdict_on_draft),
            "may_draft": In(1), "flags": Out(request_flags(p)), "here": Out(request_here),
            **{name: Out(p.request_width + 1) for name in ("alive", "drafting", "verifying")},
        })

    def body(self, platform: Any) -> Module:
        m = Module()
        one = Signal(self.p.requests)
        m.d.comb += one.eq(1 << self.request)
        for name, _ in request_here:
            flags, on, off = self.flags[name], self.changes.set[name], self.changes.clear[name]
            m.d.sync += [flags.eq((flags | Mux(on, one, 0)) & ~Mux(off, one, 0)),
                         self.here[name].eq(flags.bit_select(self.request, 1))]
        for name, count in (("alive", self.alive), ("drafting", self.drafting), ("verifying", self.verifying)):
            m.d.sync += count.eq(count + self.changes.set[name] - self.changes.clear[name])
        # one behind the event
        judge, more, wants = Signal(), Signal(), self.flags.wants
        m.d.sync += [judge.eq(self.draft.judge), more.eq(self.draft.more)]
        with m.If(judge):
            m.d.sync += wants.eq(Mux(more & self.may_draft, wants | one, wants & ~one))
        return m
