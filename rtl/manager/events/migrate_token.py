"""A migration: the first eager token of a request moves to the Shared Pool, which must have room.

Latency: 3 cycles from ``start`` to ``done``: read the row, read the token, insert it.
"""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from rtl.manager.events.layouts import text_read, text_word
from rtl.manager.pools.layouts import pool_entry
from rtl.manager.requests.layouts import flag_changes, request_row, row_update
from rtl.unit import Unit
from sim_models.params.manager.manager import ManagerParams

__all__ = ["MigrateToken"]


class MigrateToken(Unit):
    """The event of a migration.

    Members
    -------
    start: In(1), done: Out(1)
    request: In(request_width), row: In(request_row), length: In(length_width)
        The request, its numbers and the length of its draft, from the second cycle behind ``start`` on.
    text: Out(text_read), word: In(text_word)
        Unverified tokens, a cycle later.
    insert: Out(stream of pool_entry)
        To the Shared Pool.
    remove: Out(1)
        A token leaves its micro-batch's Eager Pool.
    update, changes: Out
        See :mod:`rtl.manager.requests.layouts`; 0 outside of the event.
    """

    block = "migrate_token"

    start: Signal
    done: Signal
    request: Signal
    row: Any
    length: Signal
    text: Any
    word: Any
    insert: Any
    remove: Signal
    update: Any
    changes: Any

    def __init__(self, params: ManagerParams | None = None) -> None:
        p = params or ManagerParams()
        self.p = p
        super().__init__(p, {
            "start": In(1), "done": Out(1), "request": In(p.request_width), "row": In(request_row(p)),
            "length": In(p.length_width), "text": Out(text_read(p)), "word": In(text_word(p)),
            "insert": Out(stream.Signature(pool_entry(p))), "remove": Out(1), "update": Out(row_update(p)),
            "changes": Out(flag_changes),
        })

    def body(self, platform: Any) -> Module:
        m = Module()
        p, row, entry = self.p, self.row, self.insert.payload
        reads, fetches, moves = (Signal(name=name) for name in ("reads", "fetches", "moves"))
        position, held = Signal(p.position_width), Signal(p.position_width)
        m.d.comb += position.eq(row.base + (self.length - row.eager)[:p.length_width])
        m.d.sync += [reads.eq(self.start), fetches.eq(reads), moves.eq(fetches), held.eq(position)]
        with m.If(fetches):
            m.d.comb += [self.text.enable.eq(1), self.text.position.eq(position[:p.draft_width])]
        with m.If(moves):
            m.d.comb += [
                self.insert.valid.eq(1), entry.request.eq(self.request), entry.position.eq(held),
                entry.token.eq(self.word.token), entry.h.eq(self.word.h), self.remove.eq(1),
                self.update.write.eager.eq(1), self.update.row.eager.eq(row.eager - 1),
                self.changes.clear.eager.eq(row.eager == 1), self.done.eq(1),
            ]
        return m
