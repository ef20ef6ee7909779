"""A list of entries per request, all out of one store: appending, popping and dropping a whole list take a cycle.

Lists and the free entries are chained through one memory of successors, so a list of any length is freed by
hanging its last entry before the first free one::

    request -> first, last, count       entry -> next entry of the list
    free entries: those never used yet in order, then a chain that begins with the one freed last

Everything is in distributed memory, read in the cycle of the operation. After reset, clear every request once.
Who pops says which entry is the first, so that one that is known already need not be looked up on the way to the
entry behind it.

Latency: an operation is visible in the next cycle. Throughput: one operation and one look a cycle.
"""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from rtl.parts.memory import table
from rtl.unit import Unit
from sim_models.params.manager.pools.token_lists import TokenListsParams

__all__ = ["TokenLists"]


class TokenLists(Unit):
    """Lists of entries, one a request.

    Members
    -------
    clear, append, pop, drop: In(1)
        Forget what memory holds (after reset); add an entry at the end; remove the first; remove all. At most one
        a cycle; append only if not full, pop only from a list with entries, of which ``query`` must be the first.
    request: In(request_width)
        Whose list it is.
    query: In(index_width)
        An entry.
    some, count, first, last: Out
        Whether the request's list has entries before the operation, how many, its first and its last; undefined
        where there is none.
    next_entry: Out(index_width)
        The entry behind ``query``; undefined for the last of a list.
    entry: Out(index_width)
        The entry that append takes.
    look_request: In(request_width)
    look_count, look_first: Out
        Length and first entry of another list.
    """

    block = "token_lists"

    clear: Signal
    append: Signal
    pop: Signal
    drop: Signal
    request: Signal
    query: Signal
    some: Signal
    count: Signal
    first: Signal
    last: Signal
    next_entry: Signal
    entry: Signal
    look_request: Signal
    look_count: Signal
    look_first: Signal

    def __init__(self, params: TokenListsParams | None = None) -> None:
        p = params or TokenListsParams()
        self.p = p
        index, count = p.index_width, p.count_width
        super().__init__(p, {
            "clear": In(1), "append": In(1), "pop": In(1), "drop": In(1), "request": In(p.request_width),
            "query": In(index), "some": Out(1), "count": Out(count), "first": Out(index), "last": Out(index),
            "next_entry": Out(index), "entry": Out(index),
            "look_request": In(p.request_width), "look_count": Out(count), "look_first": Out(index),
        })

    def body(self, platform: Any) -> Module:
        m = Module()
        p = self.p
        # with a bit that says whether a list has entries, which is wanted sooner than the comparison would tell
        m.submodules.counts = counts = table(p.count_width + 1, p.requests)
        m.submodules.firsts = firsts = table(p.index_width, p.requests)
        m.submodules.lasts = lasts = table(p.index_width, p.requests)
        m.submodules.successors = successors = table(p.index_width, p.entries)
        count_write, first_write, last_write = counts.write_port(), firsts.write_port(), lasts.write_port()
        at_end = lasts.read_port(domain="comb")
        for memory, out, look in ((counts, Cat(self.count, self.some), self.look_count),
                                  (firsts, self.first, self.look_first)):
            here, there = memory.read_port(domain="comb"), memory.read_port(domain="comb")
            m.d.comb += [here.addr.eq(self.request), out.eq(here.data),
                         there.addr.eq(self.look_request), look.eq(there.data)]
        after, after_free = (successors.read_port(domain="comb") for _ in range(2))
        link = successors.write_port()

        # Entries never used yet come first, so that no chain has to be laid after reset.
        fresh = Signal(p.index_width)
        all_used_once = Signal()
        free = Signal(p.index_width)             # first of the chain of free entries
        m.d.comb += [
            self.entry.eq(Mux(all_used_once, free, fresh)),
            after.addr.eq(self.query), self.next_entry.eq(after.data), after_free.addr.eq(free),
            at_end.addr.eq(self.request), self.last.eq(at_end.data),
        ]

        # The request's list
        m.d.comb += [
            count_write.addr.eq(self.request), count_write.en.eq(self.clear | self.append | self.pop | self.drop),
            count_write.data.eq(Mux(self.clear | self.drop, 0, Cat(
                (self.count + Mux(self.pop, -1, 1))[:p.count_width], self.append | (self.count != 1)))),
            first_write.addr.eq(self.request), first_write.en.eq(self.pop | (self.append & ~self.some)),
            first_write.data.eq(Mux(self.pop, self.next_entry, self.entry)),
            last_write.addr.eq(self.request), last_write.en.eq(self.append), last_write.data.eq(self.entry),
        ]

        # The chain: behind the last entry comes the new one, or what was free
        m.d.comb += [
            link.addr.eq(Mux(self.pop, self.query, self.last)),
            link.data.eq(Mux(self.append, self.entry, free)),
            link.en.eq(self.pop | ((self.append | self.drop) & self.some)),
        ]
        with m.If(self.append):
            with m.If(all_used_once):
                m.d.sync += free.eq(after_free.data)
            with m.Else():
                m.d.sync += [fresh.eq(fresh + 1), all_used_once.eq(fresh == p.entries - 1)]
        with m.Elif(self.pop):
            m.d.sync += free.eq(self.query)
        with m.Elif(self.drop & self.some):
            m.d.sync += free.eq(self.first)
        return m
