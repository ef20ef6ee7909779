"""A draft token: the draft controller takes it and decides, then its pool gets it.

::

    start, read the row, take --> draft controller --> store --> Shared Pool, or Eager Pool (a count)
                           '--> dropped: too late, or not asked for

A token that comes too late, since its draft was broken meanwhile, is dropped and counted; so is one for a request
that is in no draft step, which breaks the protocol.

Latency: 4 cycles from ``start`` to ``done``, 2 for a token that is dropped.
"""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from rtl.manager.events.layouts import manager_events, text_write
from rtl.manager.layouts import draft_token, drafted
from rtl.manager.pools.layouts import pool_entry
from rtl.manager.requests.layouts import flag_changes, request_here, request_row, row_update, verdict_on_draft
from rtl.unit import Unit, in_reset
from sim_models.params.manager.manager import ManagerParams

__all__ = ["TakeToken"]


class TakeToken(Unit):
    """The event of a draft token.

    Members
    -------
    start: In(1), done: Out(1)
    drafted: In(stream of drafted)
        Offers it from the cycle before ``start`` on.
    row: In(request_row), here: In(request_here), length: In(length_width)
        Numbers and flags of its request, from the second cycle behind ``start`` on; the length of its draft.
    controller: Out(stream of draft_token)
        To the draft controller, which must be ready.
    entry: In(pool_entry), to_eager: In(1)
        What the draft controller makes of it 2 cycles later, and whether it is for the Eager Pool.
    text: Out(text_write)
    add: Out(1)
        Its micro-batch's Eager Pool gets it.
    update, changes, draft, events: Out
        See :mod:`rtl.manager.requests.layouts` and :mod:`rtl.manager.events.layouts`; 0 outside of the event.
    """

    block = "take_token"

    start: Signal
    done: Signal
    drafted: Any
    row: Any
    here: Any
    length: Signal
    controller: Any
    entry: Any
    to_eager: Signal
    text: Any
    add: Signal
    update: Any
    changes: Any
    draft: Any
    events: Any

    def __init__(self, params: ManagerParams | None = None) -> None:
        p = params or ManagerParams()
        self.p = p
        super().__init__(p, {
            "start": In(1), "done": Out(1), "drafted": In(stream.Signature(drafted(p))), "row": In(request_row(p)),
            "here": In(request_here), "length": In(p.length_width),
            "controller": Out(stream.Signature(draft_token(p.controller))), "entry": In(pool_entry(p)),
            "to_eager": In(1), "text": Out(text_write(p)), "add": Out(1), "update": Out(row_update(p)),
            "changes": Out(flag_changes), "draft": Out(verdict_on_draft), "events": Out(manager_events),
        })

    def body(self, platform: Any) -> Module:
        m = Module()
        p, given, row, here, entry = self.p, self.drafted.payload, self.row, self.here, self.entry
        reads, takes, rates, stores, drop = (
            Signal(name=name) for name in ("reads", "takes", "rates", "stores", "drop"))
        offered, at = self.controller.payload, Signal(p.position_width)
        m.d.comb += [
            drop.eq(here.stale | ~here.drafting), at.eq(row.base + self.length),
            self.drafted.ready.eq(takes & ~in_reset()), self.controller.valid.eq(takes & ~drop),
            offered.position.eq(at), offered.token.eq(given.token), offered.p.eq(given.probability),
            # the last token of a text is the target's in any case, so the one before it is the last to be drafted
            offered.final.eq((at + 2)[:p.position_width] == row.stop),
            self.done.eq((takes & drop) | stores),
        ]
        m.d.sync += [reads.eq(self.start), takes.eq(reads), rates.eq(takes & ~drop), stores.eq(rates)]
        with m.If(takes):
            m.d.comb += [
                self.events.drafted.eq(here.drafting), self.events.stale.eq(here.stale),
                self.events.illegal.eq(~here.drafting),
                self.changes.clear.drafting.eq(here.stale), self.changes.clear.stale.eq(here.stale),
            ]
        with m.If(stores):
            m.d.comb += [
                self.text.enable.eq(1), self.text.position.eq(entry.position[:p.draft_width]),
                self.text.word.token.eq(entry.token), self.text.word.h.eq(entry.h),
                self.update.write.last.eq(1), self.update.row.last.eq(entry.token),
                self.changes.clear.drafting.eq(1), self.draft.judge.eq(1), self.draft.more.eq(1),
            ]
            with m.If(self.to_eager):
                m.d.comb += [
                    self.add.eq(1), self.changes.set.eager.eq(1), self.events.eager.eq(1),
                    self.update.write.eager.eq(1), self.update.row.eager.eq(row.eager + 1),
                ]
        return m
