"""A micro-batch's slice of the Eager Pool: tokens that were drafted while earlier ones of their request are verified.

Each request's tokens wait in order. When everything before them was accepted they move to the Shared Pool; when not,
all of a request's tokens leave in one cycle::

    insert --> lists of entries, one a request --> moved (register) --> Shared Pool
    command -------^          ^-- move, move_request

Of several operations in a cycle the first of this list goes ahead: command, insert, move. A token in the register
``moved`` has left the pool: a command does not reach it.

Latency: 1 cycle from ``move`` to ``moved``; a command 1; ``look`` to ``look_count`` and its companion 1, showing all
operations of the cycles before ``look``. Throughput: a command or a token in or out each cycle. After reset nothing
is taken for a cycle a request. Everything is in distributed memory.

Reference: SADDLE IV-B.
"""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from rtl.manager.pools.layouts import EagerAction, eager_command, pool_entry
from rtl.manager.pools.token_lists import TokenLists, table
from rtl.unit import Unit, in_reset
from sim_models.params.manager.pools.eager_pool import EagerPoolParams
from sim_models.params.manager.pools.pool import H_WIDTH

__all__ = ["EagerPool"]


class EagerPool(Unit):
    """Queues of tokens, one a request, in one store.

    Members
    -------
    insert: In(stream of pool_entry)
        A token behind the others of its request; not taken while the pool is full.
    command: In(stream of eager_command)
        All tokens of a request leave, or its first; nothing happens if there is none.
    move: In(1)
        Move a token of ``move_request`` in each cycle in which that is possible, the first one first.
    move_request: In(request_width)
        Whose tokens move.
    moving: Out(1)
        A token is moved in this cycle.
    moved: Out(stream of pool_entry)
        Tokens for the Shared Pool, in order.
    look: In(request_width)
        A request to look for.
    look_count: Out(count_width)
        Tokens of the request that was looked for in the cycle before.
    look_token: Out(token_width)
        The first of them, undefined without one.
    used: Out(count_width)
        Tokens in the pool.
    full: Out(1)
        No entry is free.
    """

    block = "eager_pool"

    insert: Any
    command: Any
    move: Signal
    move_request: Signal
    moving: Signal
    moved: Any
    look: Signal
    look_count: Signal
    look_token: Signal
    used: Signal
    full: Signal

    def __init__(self, params: EagerPoolParams | None = None) -> None:
        p = params or EagerPoolParams()
        self.p = p
        super().__init__(p, {
            "insert": In(stream.Signature(pool_entry(p))), "command": In(stream.Signature(eager_command(p))),
            "move": In(1), "move_request": In(p.request_width), "moving": Out(1),
            "moved": Out(stream.Signature(pool_entry(p))),
            "look": In(p.request_width), "look_count": Out(p.count_width), "look_token": Out(p.token_width),
            "used": Out(p.count_width), "full": Out(1),
        })

    def answers(self) -> tuple[tuple[str, str, int], ...]:
        return (("look", "look_count", 1),)

    def body(self, platform: Any) -> Module:
        m = Module()
        p = self.p
        m.submodules.lists = lists = TokenLists(p.lists)
        m.submodules.positions = positions = table(p.position_width, p.entries)
        m.submodules.tokens = tokens = table(p.token_width, p.entries)
        m.submodules.hs = hs = table(H_WIDTH, p.entries)

        # What is done in this cycle, and for whom
        initial = Signal(init=1)                 # not yet cleared since reset
        turn = Signal(p.request_width)
        command = self.command.payload
        m.d.comb += [
            self.command.ready.eq(~initial & ~in_reset()),
            self.insert.ready.eq(~initial & ~in_reset() & ~self.full & ~self.command.valid),
            self.used.eq(lists.used), self.full.eq(lists.full), lists.query.eq(lists.first),
        ]
        with m.If(initial):
            m.d.comb += [lists.request.eq(turn), lists.clear.eq(1)]
            m.d.sync += [turn.eq(turn + 1), initial.eq(~turn.all())]
        with m.Elif(self.command.valid):
            m.d.comb += [
                lists.request.eq(command.request), lists.drop.eq(command.action == EagerAction.FLUSH),
                lists.pop.eq((command.action == EagerAction.DROP_FIRST) & lists.some),
            ]
        with m.Elif(self.insert.valid & self.insert.ready):
            m.d.comb += [lists.request.eq(self.insert.payload.request), lists.append.eq(1)]
        with m.Else():
            m.d.comb += [
                lists.request.eq(self.move_request), lists.pop.eq(self.moving),
                self.moving.eq(self.move & lists.some & (~self.moved.valid | self.moved.ready)),
            ]

        # Payload
        given, out = self.insert.payload, self.moved.payload
        with m.If(self.moved.ready):
            m.d.sync += self.moved.valid.eq(0)
        with m.If(self.moving):
            m.d.sync += [self.moved.valid.eq(1), out.request.eq(self.move_request)]
        for memory, value, moved in ((positions, given.position, out.position), (tokens, given.token, out.token),
                                     (hs, given.h, out.h)):
            write, read = memory.write_port(), memory.read_port(domain="comb")
            m.d.comb += [write.addr.eq(lists.entry), write.data.eq(value), write.en.eq(lists.append),
                         read.addr.eq(lists.first)]
            with m.If(self.moving):
                m.d.sync += moved.eq(read.data)

        # The request that is looked for
        look_token = tokens.read_port(domain="comb")
        m.d.comb += [lists.look_request.eq(self.look), look_token.addr.eq(lists.look_first)]
        m.d.sync += [self.look_count.eq(lists.look_count), self.look_token.eq(look_token.data)]
        return m
