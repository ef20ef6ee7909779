"""How many tokens wait in each micro-batch's Eager Pool: tokens drafted while earlier ones of theirs are verified.

The tokens themselves are in the memory of unverified tokens, by request and position; where they stand follows from
the numbers of their request. So a token enters, moves on to the Shared Pool, or leaves with all others of its request
by a change of two numbers::

    request --> micro-batch --> count --> used
    add, remove ------------------^

Latency: 1 cycle. Throughput: a change a cycle. Reference: SADDLE IV-B.
"""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from rtl.unit import Unit
from sim_models.params.manager.manager import ManagerParams

__all__ = ["EagerCounts"]


class EagerCounts(Unit):
    """Tokens of each micro-batch.

    Members
    -------
    request: In(request_width)
        The request at hand.
    add: In(1), remove: In(length_width)
        Tokens of it that enter and leave.
    used: Out(ArrayLayout)
        Tokens in the Eager Pool of each micro-batch.
    """

    block = "eager_counts"

    request: Signal
    add: Signal
    remove: Signal
    used: Any

    def __init__(self, params: ManagerParams | None = None) -> None:
        p = params or ManagerParams()
        self.p = p
        super().__init__(p, {
            "request": In(p.request_width), "add": In(1), "remove": In(p.length_width),
            "used": Out(data.ArrayLayout(p.eager_entries.bit_length(), p.lanes)),
        })

    def body(self, platform: Any) -> Module:
        m = Module()
        lane = self.request[:self.p.lane_width]
        for k in range(self.p.lanes):
            used = Signal(self.p.eager_entries.bit_length(), name=f"used_{k}")
            m.d.comb += self.used[k].eq(used)
            with m.If(lane == k):
                m.d.sync += used.eq(used + self.add - self.remove)
        return m
