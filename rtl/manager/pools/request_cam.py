"""Finds the entries of a request: a content-addressed memory turned on its side.

Row r has a bit for every entry that belongs to request r. The number of a request is cut into parts of up to 5
bits, each with rows of its own, and an entry belongs to the request when its bit is set for all parts: 7 bits take
8 + 16 rows instead of 128. Changing an entry reads its rows, changes its bit and writes them back::

    request ->  upper part -> rows -> \\
                                       and -> match
                lower part -> rows -> /

Rows are distributed memory; nothing is a flip-flop but a cycle's commands. After reset, put and remove every entry
of each request in turn (see ``every``).

Latency: 1 cycle from ``look`` to ``match``, which shows all commands up to the cycle of ``look``: the last one is
about to be written, so its entry is added to what the rows say, or taken off. Throughput: one command and one look a
cycle.
"""

from functools import reduce
from operator import and_
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from rtl.parts.memory import table
from rtl.unit import Unit
from sim_models.params.manager.pools.request_cam import RequestCamParams

__all__ = ["RequestCam"]


class RequestCam(Unit):
    """Rows of bits, one a request, one bit an entry.

    Members
    -------
    put, remove: In(1)
        The entry belongs to the request from now on; it does not any more. At most one a cycle. An entry must be
        removed before it is put for another request.
    every: In(1)
        With ``remove``: all entries of the request. With ``put``, after reset: fill the request's rows, whatever
        they hold; removing every entry afterwards leaves them empty.
    request: In(request_width)
    entry: In(index_width)
    look: In(request_width)
    match: Out(entries)
        Entries of the request that was looked for in the cycle before, as the command of that cycle left them.
    """

    block = "request_cam"

    put: Signal
    remove: Signal
    every: Signal
    request: Signal
    entry: Signal
    look: Signal
    match: Signal

    def __init__(self, params: RequestCamParams | None = None) -> None:
        p = params or RequestCamParams()
        self.p = p
        super().__init__(p, {
            "put": In(1), "remove": In(1), "every": In(1), "request": In(p.request_width),
            "entry": In(p.index_width), "look": In(p.request_width), "match": Out(p.entries),
        })

    def body(self, platform: Any) -> Module:
        m = Module()
        p = self.p
        write, put = Signal(), Signal()
        request, look = Signal(p.request_width), Signal(p.request_width)
        m.d.sync += [write.eq(self.put | self.remove), put.eq(self.put), request.eq(self.request),
                     look.eq(self.look)]
        chosen = self._decode(m)

        here, there, writes = [], [], []
        for n, part in enumerate(p.parts):
            m.submodules[f"rows_{n}"] = rows = table(p.entries, 1 << (part.stop - part.start))
            port, old, seen = rows.write_port(), rows.read_port(domain="comb"), rows.read_port(domain="comb")
            m.d.comb += [port.addr.eq(request[part]), port.en.eq(write), old.addr.eq(request[part]),
                         seen.addr.eq(look[part])]
            here.append(old.data)
            there.append(seen.data)
            writes.append(port.data)
        for n, data in enumerate(writes):
            # A bit is cleared where the other parts agree: an entry of the request, not of one that shares a row.
            gone = reduce(and_, (row for k, row in enumerate(here) if k != n), chosen)
            m.d.comb += data.eq(Mux(put, here[n] | chosen, here[n] & ~gone))
        same = Signal()
        m.d.comb += same.eq(write & (request == look))
        put_now, gone_now = (same & put).replicate(p.entries), (same & ~put).replicate(p.entries)
        m.d.comb += self.match.eq((reduce(and_, there) | (put_now & chosen)) & ~(gone_now & chosen))
        return m

    def _decode(self, m: Module) -> Any:
        """One bit an entry, set for the command's: groups of up to 3 bits are decoded before the register."""
        p = self.p
        groups = []
        for n, low in enumerate(range(0, p.index_width, 3)):
            bits = self.entry[low:low + 3]
            group = Signal(1 << len(bits), name=f"group_{n}")
            m.d.sync += group.eq((Const(1, len(group)) << bits) | self.every.replicate(len(group)))
            groups.append(group)
        return Cat(reduce(and_, (group[(e >> 3 * n) % len(group)] for n, group in enumerate(groups)))
                   for e in range(p.entries))
