"""A new request: its numbers are written, or, if it wants no token, an empty beat is its answer.

Latency: 2 cycles from ``start``, and for an empty beat those until it is taken. The draft controller has left off
with an empty draft of the request before that had the number.
"""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from rtl.manager.events.layouts import manager_events
from rtl.manager.layouts import emitted, new_request
from rtl.manager.requests.layouts import flag_changes, row_update, verdict_on_draft
from rtl.unit import Unit, in_reset
from sim_models.params.manager.manager import ManagerParams

__all__ = ["TakeRequest"]


class TakeRequest(Unit):
    """The event of a new request.

    Members
    -------
    start: In(1), done: Out(1)
    requests: In(stream of new_request)
        Offers it from the cycle before ``start`` on.
    emitted: Out(stream of emitted)
    update, changes, draft, events: Out
        See :mod:`rtl.manager.requests.layouts` and :mod:`rtl.manager.events.layouts`; 0 outside of the event.
    """

    block = "take_request"

    start: Signal
    done: Signal
    requests: Any
    emitted: Any
    update: Any
    changes: Any
    draft: Any
    events: Any

    def __init__(self, params: ManagerParams | None = None) -> None:
        p = params or ManagerParams()
        self.p = p
        super().__init__(p, {
            "start": In(1), "done": Out(1), "requests": In(stream.Signature(new_request(p))),
            "emitted": Out(stream.Signature(emitted(p))), "update": Out(row_update(p)), "changes": Out(flag_changes),
            "draft": Out(verdict_on_draft), "events": Out(manager_events),
        })

    def body(self, platform: Any) -> Module:
        m = Module()
        given, answer = self.requests.payload, self.emitted.payload
        compares, writes, answers = (Signal(name=name) for name in ("compares", "writes", "answers"))
        wanted, several = Signal(), Signal()        # tokens
        m.d.sync += [compares.eq(self.start), writes.eq(compares)]
        with m.If(compares):
            m.d.sync += [wanted.eq(given.position < given.stop), several.eq(given.position + 1 < given.stop)]
        takes = writes & wanted
        with m.If(takes):
            row, write = self.update.row, self.update.write
            m.d.comb += [
                row.base.eq(given.position), row.stop.eq(given.stop), row.last.eq(given.token),
                *(flag.eq(1) for flag in (write.base, write.stop, write.last, write.eager)),
                self.changes.set.alive.eq(1), self.draft.judge.eq(1), self.draft.more.eq(several),
            ]
        with m.If(writes & ~wanted):
            m.d.sync += answers.eq(1)
        refuses = answers & self.emitted.ready
        with m.If(answers):
            m.d.comb += [answer.request.eq(given.request), answer.position.eq(given.position), answer.last.eq(1),
                         answer.empty.eq(1)]
        with m.If(refuses):
            m.d.sync += answers.eq(0)
        m.d.comb += [
            self.emitted.valid.eq(answers), self.done.eq(takes | refuses),
            self.requests.ready.eq((takes | refuses) & ~in_reset()),
            self.events.refused.eq(refuses), self.events.completed.eq(refuses),
        ]
        return m
