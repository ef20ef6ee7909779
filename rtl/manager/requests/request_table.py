"""Numbers of each request in distributed memory, and those of the request at hand in a register.

::

    request --> memories, one a column --> register --> row
    update -------^

Latency: 1 cycle from ``request`` to ``row``, which shows all updates of the cycles before ``request``. Throughput: a
row and an update a cycle. What is read of a request before it was written is not defined.
"""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib.wiring import In, Out

from rtl.manager.requests.layouts import request_row, row_update
from rtl.parts.memory import table
from rtl.unit import Unit
from sim_models.params.manager.manager import ManagerParams

__all__ = ["RequestTable"]


class RequestTable(Unit):
    """A row a request.

    Members
    -------
    request: In(request_width)
        The request at hand.
    update: In(row_update)
        Columns of its row are written.
    row: Out(request_row)
        The row of the request that was at hand in the cycle before.
    """

    block = "request_table"

    request: Signal
    update: Any
    row: Any

    def __init__(self, params: ManagerParams | None = None) -> None:
        p = params or ManagerParams()
        self.p = p
        super().__init__(p, {"request": In(p.request_width), "update": In(row_update(p)), "row": Out(request_row(p))})

    def body(self, platform: Any) -> Module:
        m = Module()
        for name, field in request_row(self.p):
            m.submodules[f"{name}_rows"] = memory = table(field.width, self.p.requests)
            write, read = memory.write_port(), memory.read_port(domain="comb")
            m.d.comb += [write.addr.eq(self.request), read.addr.eq(self.request),
                         write.en.eq(self.update.write[name]), write.data.eq(self.update.row[name])]
            m.d.sync += self.row[name].eq(read.data)
        return m
