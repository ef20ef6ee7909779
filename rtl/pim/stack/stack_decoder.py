"""Checks the commands of a stack, so that its pseudo-channels refuse none.

The rules of a pseudo-channel are checked by a decoder like its own; what concerns the stack alone is added.

Latency: 3 cycles. Throughput: a command a cycle.
"""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from rtl.memory.fifo import Fifo
from rtl.pim.channel.pim_decoder import PimDecoder
from rtl.pim.stack.layouts import checked_command, stack_command
from rtl.unit import Unit, in_reset
from sim_models.params.memory.fifo import FifoParams
from sim_models.params.pim.stack.pim_stack import PimStackParams
from sim_models.spec.bank import ResultFormat
from sim_models.spec.channel import PimOp
from sim_models.spec.stack import StackStatus, StackUnit

__all__ = ["StackDecoder"]

#: commands beside the decoder; it holds fewer
QUEUE = 16


class StackDecoder(Unit):
    """Checker.

    Members
    -------
    i_command: In(stream of stack_command)
    o_command: Out(stream of checked_command)
        One for each, in order.
    """

    block = "stack_decoder"

    i_command: Any
    o_command: Any

    def __init__(self, params: PimStackParams | None = None) -> None:
        p = params or PimStackParams()
        self.p = p
        super().__init__(p, {"i_command": In(stream.Signature(stack_command(p))),
                             "o_command": Out(stream.Signature(checked_command(p)))})

    def body(self, platform: Any) -> Module:
        m = Module()
        p, layout = self.p, stack_command(self.p)
        m.submodules.queue = queue = Fifo(FifoParams(width=layout.size, depth=QUEUE))
        m.submodules.decoder = decoder = PimDecoder(p.channel)
        m.d.comb += [
            self.i_command.ready.eq(queue.i.ready & decoder.i_command.ready & ~in_reset()),
            queue.i.payload.eq(self.i_command.payload.as_value()),
            queue.i.valid.eq(self.i_command.valid & decoder.i_command.ready),
            decoder.i_command.payload.eq(self.i_command.payload.pim),
            decoder.i_command.valid.eq(self.i_command.valid & queue.i.ready),
            self.o_command.valid.eq(queue.o.valid & decoder.o_job.valid),
            queue.o.ready.eq(self.o_command.ready & decoder.o_job.valid),
            decoder.o_job.ready.eq(self.o_command.ready & queue.o.valid),
        ]

        command, job = Signal(layout), decoder.o_job.payload
        m.d.comb += command.eq(queue.o.payload)
        words = (command.pim.op == PimOp.LOAD) | (command.pim.op == PimOp.WRITE)
        mixed = (command.pim.op == PimOp.READ) & (command.pim.int8 ^ (command.format == ResultFormat.INT32))
        status = Signal(StackStatus)
        with m.If(command.unit == StackUnit.CHANNELS):
            for code, fault in ((StackStatus.CHANNELS, command.channels == 0),
                                *((code, job.status == code.value) for code in (
                                    StackStatus.ACCUMULATOR, StackStatus.BUFFER, StackStatus.ADDRESS)),
                                (StackStatus.FORMAT, mixed | (job.status == StackStatus.FORMAT.value)),
                                (StackStatus.COUNT, job.status == StackStatus.COUNT.value)):
                with m.If(fault):
                    m.d.comb += status.eq(code)
        m.d.comb += [
            self.o_command.payload.command.eq(command), self.o_command.payload.status.eq(status),
            self.o_command.payload.drop.eq((status != StackStatus.OK) & words & (command.pim.count != 0)),
        ]
        return m
