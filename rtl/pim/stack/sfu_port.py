"""The special function unit in a stack: where its rows come from and where its results go to.

::

    o_sfu of the dispatcher -> queue -> i_command -+
    rows of READs -----+                           v
                       +--> i_row --> buffer_die_sfu --> o_row --+--> o_host
    rows of the host --+                                         +--> o_words, for LOADs

Both choices are made by command, so a row is never mixed with another. A queue of 4 commands stands in front: a
program must give the READs of a row before the fifth command after its own.

Latency: that of `buffer_die_sfu`, and 1 cycle for the command.
"""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from rtl.memory.fifo import Fifo
from rtl.parts.streams import joined
from rtl.pim.stack.layouts import sfu_route
from rtl.sfu.buffer_die_sfu import BufferDieSfu
from rtl.sfu.layouts import sfu_beat, sfu_command, sfu_operands, sfu_response
from rtl.unit import Unit, in_reset
from sim_models.params.memory.fifo import FifoParams
from sim_models.params.pim.stack.pim_stack import PimStackParams

__all__ = ["SfuPort"]

#: commands that wait, and rows whose source or destination is known
QUEUE = 4


class SfuPort(Unit):
    """Special function unit with its switches.

    Members
    -------
    i_command: In(stream of sfu_command), i_route: In(stream of sfu_route)
        One of each for every row.
    i_sums, i_host: In(stream of sfu_beat), i_operands: In(stream of sfu_operands)
    o_host, o_words: Out(stream of sfu_beat), o_response: Out(stream of sfu_response)
    """

    block = "sfu_port"

    i_command: Any
    i_route: Any
    i_sums: Any
    i_host: Any
    i_operands: Any
    o_host: Any
    o_words: Any
    o_response: Any

    def __init__(self, params: PimStackParams | None = None) -> None:
        p = params or PimStackParams()
        self.p = p
        beat = stream.Signature(sfu_beat(p.sfu))
        super().__init__(p, {
            "i_command": In(stream.Signature(sfu_command)), "i_route": In(stream.Signature(sfu_route)),
            "i_sums": In(beat), "i_host": In(beat), "i_operands": In(stream.Signature(sfu_operands(p.sfu))),
            "o_host": Out(beat), "o_words": Out(beat), "o_response": Out(stream.Signature(sfu_response(p.sfu)))})

    def body(self, platform: Any) -> Module:
        m = Module()
        m.submodules.sfu = sfu = BufferDieSfu(self.p.sfu)
        m.submodules.commands = commands = Fifo(FifoParams(width=sfu_command.size, depth=QUEUE))
        m.submodules.sources = sources = Fifo(FifoParams(width=1, depth=QUEUE))
        # a result's destination waits until the row has gone all the way
        m.submodules.targets = targets = Fifo(FifoParams(width=1, depth=2 * QUEUE))
        route = self.i_route.payload
        m.d.comb += [
            *joined(self.i_command, commands.i), *joined(commands.o, sfu.i_command),
            self.i_route.ready.eq(sources.i.ready & targets.i.ready),
            sources.i.valid.eq(self.i_route.valid & targets.i.ready), sources.i.payload.eq(route.from_host),
            targets.i.valid.eq(self.i_route.valid & sources.i.ready), targets.i.payload.eq(route.to_buffers),
        ]
        self._row(m, sfu, sources)
        self._result(m, sfu, targets)
        for inside, outside in ((sfu.o_response, self.o_response), (self.i_operands, sfu.i_operands)):
            m.d.comb += joined(inside, outside)
        return m

    def _row(self, m: Module, sfu: BufferDieSfu, sources: Fifo) -> None:
        host, there = Signal(), sources.o.valid
        m.d.comb += [
            host.eq(sources.o.payload), sfu.i_row.payload.eq(Mux(host, self.i_host.payload, self.i_sums.payload)),
            sfu.i_row.valid.eq(there & Mux(host, self.i_host.valid, self.i_sums.valid)),
            self.i_host.ready.eq(there & host & sfu.i_row.ready & ~in_reset()),
            self.i_sums.ready.eq(there & ~host & sfu.i_row.ready),
            sources.o.ready.eq(sfu.i_row.valid & sfu.i_row.ready & sfu.i_row.payload.last),
        ]

    def _result(self, m: Module, sfu: BufferDieSfu, targets: Fifo) -> None:
        words, there = Signal(), targets.o.valid
        m.d.comb += [
            words.eq(targets.o.payload), self.o_host.payload.eq(sfu.o_row.payload),
            self.o_words.payload.eq(sfu.o_row.payload), self.o_host.valid.eq(there & ~words & sfu.o_row.valid),
            self.o_words.valid.eq(there & words & sfu.o_row.valid),
            sfu.o_row.ready.eq(there & Mux(words, self.o_words.ready, self.o_host.ready)),
            targets.o.ready.eq(sfu.o_row.valid & sfu.o_row.ready & sfu.o_row.payload.last),
        ]
