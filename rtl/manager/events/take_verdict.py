"""A verdict: is it legal? does the draft stay? then tokens are emitted, and the pools hear of it.

::

    start, read the row, check --> compare --> fetch --> emit, token by token --> unlock --> close
                            '--> dropped: not in the pass, or more accepted than was in it

The first token behind those of the pass is compared with the verdict's; emitted are the accepted ones and the
verdict's own, up to an end token or the request's limit. A verdict that is not legal is dropped and counted; the
request stays in the pass.

Latency from ``start`` to ``done``: 7 cycles, one for each emitted token, and those that the Shared Pool takes beyond
2; 2 for a verdict that is dropped.
"""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from rtl.manager.events.layouts import manager_events, text_read, text_word
from rtl.manager.layouts import draft_update, emitted, request_verdict
from rtl.manager.pools.layouts import verdict
from rtl.manager.requests.layouts import flag_changes, request_here, request_row, row_update, verdict_on_draft
from rtl.unit import Unit, in_reset
from sim_models.params.manager.manager import ManagerParams

__all__ = ["TakeVerdict"]


class TakeVerdict(Unit):
    """The event of a verdict.

    Members
    -------
    start: In(1), done: Out(1)
    verdicts: In(stream of request_verdict)
        Offers it from the cycle before ``start`` on.
    stop_at_end: In(1), end_token: In(token_width)
    row: In(request_row), here: In(request_here), length: In(length_width)
        Numbers and flags of its request, from the second cycle behind ``start`` on; the length of its draft.
    locked: In(count_width)
        Tokens of it in the pass, in the cycle behind ``start``.
    text: Out(text_read), word: In(text_word)
        Unverified tokens, a cycle later and until the next is read.
    emitted: Out(stream of emitted)
    pool: Out(stream of verdict)
        To the Shared Pool.
    update_draft: Out(stream of draft_update)
        To the draft controller, which must be ready.
    remove: Out(length_width)
        So many leave its micro-batch's Eager Pool.
    update, changes, draft, events: Out
        See :mod:`rtl.manager.requests.layouts` and :mod:`rtl.manager.events.layouts`; 0 outside of the event.
    """

    block = "take_verdict"

    start: Signal
    done: Signal
    verdicts: Any
    stop_at_end: Signal
    end_token: Signal
    row: Any
    here: Any
    length: Signal
    locked: Signal
    text: Any
    word: Any
    emitted: Any
    pool: Any
    update_draft: Any
    remove: Signal
    update: Any
    changes: Any
    draft: Any
    events: Any

    def __init__(self, params: ManagerParams | None = None) -> None:
        p = params or ManagerParams()
        self.p = p
        super().__init__(p, {
            "start": In(1), "done": Out(1), "verdicts": In(stream.Signature(request_verdict(p))),
            "stop_at_end": In(1), "end_token": In(p.token_width), "row": In(request_row(p)),
            "here": In(request_here), "length": In(p.length_width), "locked": In(p.count_width),
            "text": Out(text_read(p)), "word": In(text_word(p)), "emitted": Out(stream.Signature(emitted(p))),
            "pool": Out(stream.Signature(verdict(p.shared_pool))),
            "update_draft": Out(stream.Signature(draft_update(p.controller))), "remove": Out(p.length_width),
            "update": Out(row_update(p)), "changes": Out(flag_changes), "draft": Out(verdict_on_draft),
            "events": Out(manager_events),
        })

    def body(self, platform: Any) -> Module:
        m = Module()
        p = self.p
        steps = ("reads", "checks", "compares", "fetches", "emits", "unlocks", "closes")
        self._at = {name: Signal(name=name) for name in steps}
        # of the request: tokens in the pass; those behind them that are not eager
        self._locked, self._pending = Signal(p.length_width), Signal(p.length_width)
        self._left = Signal(p.position_width, name="remaining")  # tokens that are wanted yet
        self._index = Signal(p.length_width + 1, name="index")  # tokens that were emitted or are about to be
        self._keep = Signal(name="keeps")  # the draft stays valid beyond the verdict's token
        self._single = Signal(name="single")  # one token waits behind those of the pass
        self._ended, self._one_left = Signal(), Signal()
        self._check(m)
        self._emit(m)
        self._unlock(m)
        self._close(m)
        return m

    def _check(self, m: Module) -> None:
        """Whether the verdict is legal, and whether the token that it gives was drafted."""
        at, told, row, here = self._at, self.verdicts.payload, self.row, self.here
        legal, whole, locked = Signal(), Signal(), self._locked
        waits, behind = Signal(), Signal(self.p.token_width)    # a token waits behind those of the pass; that token
        m.d.comb += [
            waits.eq(locked < self.length),
            legal.eq(here.verifying & ~(locked < told.accepted)),
            self.events.illegal.eq(at["checks"] & ~legal),
        ]
        m.d.sync += [at["reads"].eq(self.start), at["checks"].eq(at["reads"]),
                     at["compares"].eq(at["checks"] & legal), at["fetches"].eq(at["compares"])]
        with m.If(at["reads"]):
            m.d.sync += [locked.eq(self.locked), self._index.eq(0)]
        with m.If(at["checks"]):
            m.d.sync += [whole.eq(told.bonus & (told.accepted == locked) & waits), self._left.eq(row.stop - row.base),
                         self._pending.eq(self.length - locked - row.eager)]
        with m.If(at["compares"]):
            m.d.sync += behind.eq(self.word.token)
        with m.If(at["fetches"]):
            m.d.sync += [self._keep.eq(whole & (behind == told.token)), self._single.eq(self.length == locked + 1)]

    def _emit(self, m: Module) -> None:
        """Tokens, each read while the one before is offered."""
        p, at, told, row = self.p, self._at, self.verdicts.payload, self.row
        out, index, final = self.emitted.payload, self._index, Signal()
        of_draft, position = Signal(), Signal(p.position_width)
        m.d.comb += [
            position.eq(row.base + index), self.emitted.valid.eq(at["emits"]),
            out.last.eq(final | (self.stop_at_end & (out.token == self.end_token))),
        ]
        taken = at["emits"] & self.emitted.ready
        ends = taken & (out.last | ~of_draft)
        loads = at["fetches"] | (taken & ~ends)
        with m.If(loads):
            m.d.sync += [
                index.eq(index + 1), of_draft.eq(index < told.accepted), out.position.eq(position),
                out.request.eq(told.request), out.token.eq(Mux(index < told.accepted, self.word.token, told.token)),
                final.eq(index + 1 == self._left), self._one_left.eq(index + 2 == self._left),
            ]
        m.d.sync += at["emits"].eq(loads | (at["emits"] & ~taken))
        with m.If(ends):
            m.d.sync += self._ended.eq(out.last)
        # the first token behind those of the pass, then from the first one on
        low = p.draft_width
        with m.If(at["checks"] | at["compares"] | loads):
            m.d.comb += [self.text.enable.eq(1), self.text.position.eq(
                row.base[:low] + Mux(at["checks"], self._locked, Mux(at["compares"], 0, index + 1)))]
        m.d.sync += at["unlocks"].eq(ends | (at["unlocks"] & ~self.pool.ready))
        m.d.comb += [self.events.emitted.eq(taken), self.events.accepted.eq(taken & (of_draft | self._keep)),
                     self.events.completed.eq(taken & out.last)]

    def _unlock(self, m: Module) -> None:
        """The Shared Pool and the draft controller hear of it, the latter in the first cycle."""
        at, told, begun = self._at, self.update_draft.payload, Signal()
        stays = self._keep & ~self._ended
        judged = self.pool.payload
        m.d.sync += begun.eq(at["unlocks"])
        m.d.comb += [
            self.pool.valid.eq(at["unlocks"]), judged.request.eq(self.verdicts.payload.request),
            judged.accepted.eq(self._locked), judged.bonus.eq(stays),
            self.update_draft.valid.eq(at["unlocks"] & ~begun), told.gone.eq(self._locked + 1),
            # the next token begins another draft also where none of this one is left
            told.restart.eq(~stays | self._single),
        ]
        m.d.sync += at["closes"].eq(at["unlocks"] & self.pool.ready)

    def _close(self, m: Module) -> None:
        """What it leaves behind; where the draft stays, the first token that waited leaves."""
        at, row, here = self._at, self.row, self.here
        drops = at["checks"] & self.events.illegal
        stays = self._keep & ~self._ended
        left, gone = Signal.like(row.eager), Signal.like(row.eager)
        m.d.comb += [gone.eq(Mux(stays, self._pending == 0, row.eager)), left.eq(row.eager - gone),
                     self.done.eq(at["closes"] | drops), self.verdicts.ready.eq((at["closes"] | drops) & ~in_reset())]
        with m.If(at["closes"]):
            new, write = self.update.row, self.update.write
            m.d.comb += [
                write.base.eq(1), new.base.eq(row.base + self._index), write.eager.eq(1), new.eager.eq(left),
                self.remove.eq(gone), self.changes.clear.eager.eq(left == 0), self.changes.clear.verifying.eq(1),
                self.changes.clear.alive.eq(self._ended), self.draft.judge.eq(1),
                self.draft.more.eq(~self._ended & ~self._one_left),
            ]
            with m.If(~stays):
                m.d.comb += [write.last.eq(1), new.last.eq(self.verdicts.payload.token),
                             self.changes.set.stale.eq(here.drafting)]
