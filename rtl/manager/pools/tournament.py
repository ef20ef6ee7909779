"""Keeps the request with the highest key, among all requests, while keys change.

A binary tree whose leaves are the requests' keys; a node holds the better of its two children. A new key is
written to its leaf and travels up a level a cycle, compared with the sibling on each, so a change can follow every
cycle::

    key -> level 0: leaf, sibling -> better -> level 1: node, sibling -> better -> ... -> best

The nodes of a level are a distributed memory with the two children of a node in one word. Equal keys: the lowest
request wins. After reset, change the key of every request once, in ascending order.

Latency: ``request_width`` cycles from ``change`` to ``best``. Throughput: a change a cycle.
"""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from rtl.unit import Unit
from sim_models.params.manager.pools.tournament import TournamentParams

__all__ = ["Tournament"]


class Tournament(Unit):
    """Maximum over the keys of all requests.

    Members
    -------
    change: In(1)
        A request's key is another from now on.
    request: In(request_width)
    key: In(key_width)
    settled: Out(1)
        No change is on its way: ``best`` is the highest of all keys.
    best: Out(request_width)
    best_key: Out(key_width)
    upcoming: Out(request_width)
        What ``best`` is in the next cycle.
    deciding: Out(1), finalist: Out(request_width), beaten: Out(1)
        The best of one half of the requests changes or may have changed, and meets that of the other half in this
        cycle; which request it is; and whether it loses.
    """

    block = "tournament"

    change: Signal
    request: Signal
    key: Signal
    settled: Signal
    best: Signal
    best_key: Signal
    upcoming: Signal
    deciding: Signal
    finalist: Signal
    beaten: Signal

    def __init__(self, params: TournamentParams | None = None) -> None:
        p = params or TournamentParams()
        self.p = p
        super().__init__(p, {
            "change": In(1), "request": In(p.request_width), "key": In(p.key_width), "settled": Out(1),
            "best": Out(p.request_width), "best_key": Out(p.key_width),
            "upcoming": Out(p.request_width), "deciding": Out(1), "finalist": Out(p.request_width), "beaten": Out(1),
        })

    def body(self, platform: Any) -> Module:
        m = Module()
        p = self.p
        change, path, key = self.change, self.request, self.key
        name: Any = Signal(0)                    # bits of the request below this level
        moving = []
        for level in range(p.request_width):
            node, odd = Cat(key, name), path[0]
            sibling = self._sibling(m, level, change, path, node)
            # an even sibling wins a tie
            lost = Cat(0, key) < Cat(odd, sibling[:p.key_width])
            better = Mux(lost, sibling, node)
            last = level == p.request_width - 1
            key = self.best_key if last else Signal(p.key_width, name=f"key_{level + 1}")
            name = self.best if last else Signal(level + 1, name=f"name_{level + 1}")
            winner = Cat(better[p.key_width:], odd ^ lost)
            with m.If(change):
                m.d.sync += [key.eq(better[:p.key_width]), name.eq(winner)]
            if last:
                m.d.comb += [self.upcoming.eq(Mux(change, winner, self.best)), self.deciding.eq(change),
                             self.finalist.eq(Cat(node[p.key_width:], odd)), self.beaten.eq(lost)]
            change_next = Signal(name=f"change_{level + 1}")
            m.d.sync += change_next.eq(change)
            if not last:
                path_next = Signal(p.request_width - level - 1, name=f"path_{level + 1}")
                m.d.sync += path_next.eq(path[1:])
                path = path_next
                moving.append(change_next)
            change = change_next
        # known in a register, as of the cycle before
        settled = Signal(init=1)
        m.d.sync += settled.eq(~Cat(self.change, *moving[:-1]).any())
        m.d.comb += self.settled.eq(settled if moving else 1)
        return m

    def _sibling(self, m: Module, level: int, change: Any, path: Any, node: Any) -> Any:
        """Store a node of a level; the node beside it."""
        pairs = 1 << (len(path) - 1)
        if pairs == 1:
            stored = [Signal(len(node), name=f"node_{level}_{n}") for n in range(2)]
            for n, register in enumerate(stored):
                with m.If(change & (path[0] == n)):
                    m.d.sync += register.eq(node)
            return Mux(path[0], stored[0], stored[1])
        memory = Memory(shape=2 * len(node), depth=pairs, init=[], attrs={"ram_style": "distributed"})
        m.submodules[f"level_{level}"] = memory
        write, read = memory.write_port(granularity=len(node)), memory.read_port(domain="comb")
        m.d.comb += [
            write.addr.eq(path[1:]), write.data.eq(Cat(node, node)), read.addr.eq(path[1:]),
            write.en.eq(Cat(change & ~path[0], change & path[0])),
        ]
        return Mux(path[0], read.data[:len(node)], read.data[len(node):])
