"""Checks the commands of a pseudo-channel, and works out what the units behind it need.

Latency: 3 cycles from command to job. Throughput: a command a cycle. Cost: a multiplier of 16 x 8 bits.
"""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from rtl.memory.fifo import Fifo
from rtl.parts.streams import joined
from rtl.pim.channel.layouts import pim_command, pim_job
from rtl.unit import Unit
from sim_models.params.memory.fifo import FifoParams
from sim_models.params.pim.channel.pseudo_channel import PseudoChannelParams
from sim_models.spec.channel import PimOp, PimSpread, PimStatus

__all__ = ["PimDecoder"]

#: commands that wait; look-ahead needs few
QUEUE = 8


class PimDecoder(Unit):
    """Command queue and checker.

    Members
    -------
    i_command: In(stream of pim_command)
    o_job: Out(stream of pim_job)
        One per command, in order, with a status.
    """

    block = "pim_decoder"

    i_command: Any
    o_job: Any

    def __init__(self, params: PseudoChannelParams | None = None) -> None:
        p = params or PseudoChannelParams()
        self.p = p
        super().__init__(p, {"i_command": In(stream.Signature(pim_command)),
                             "o_job": Out(stream.Signature(pim_job(p)))})

    def body(self, platform: Any) -> Module:
        m = Module()
        m.submodules.queue = queue = Fifo(FifoParams(width=pim_command.size, depth=QUEUE))
        head, command = Signal(pim_command), Signal(pim_command)
        waiting, full = Signal(), Signal()
        m.d.comb += [
            *joined(self.i_command, queue.i), head.eq(queue.o.payload),
            queue.o.ready.eq(~waiting | ~full | self.o_job.ready), self.o_job.valid.eq(full),
        ]

        # The words that a command covers in a bank: the product has a stage of its own.
        words = Signal(24)
        with m.If(queue.o.ready):
            m.d.sync += [waiting.eq(queue.o.valid), command.eq(head),
                         words.eq(head.count * Mux(head.op == PimOp.MAC, head.outputs, 1))]
        with m.If(~full | self.o_job.ready):
            m.d.sync += full.eq(waiting)
            self._job(m, command, words)
        return m

    def _job(self, m: Module, command: Any, words: Signal) -> None:
        """Everything that follows from a command and its words; assignments belong to the caller's condition."""
        p, job = self.p, self.o_job.payload
        load, write, mac, read = (command.op == op for op in (PimOp.LOAD, PimOp.WRITE, PimOp.MAC, PimOp.READ))
        column_bits = p.columns.bit_length() - 1
        end, last = Signal(25), Signal(25)
        buffer_end = Signal(19)
        by_four = mac & (command.spread != PimSpread.ALL)
        place = Signal(range(p.half))
        m.d.comb += [
            end.eq(command.address + words), last.eq(end - 1),
            buffer_end.eq(command.base + Mux(by_four, command.count << 2, command.count)),
            place.eq(command.first),
        ]

        status, middle = Signal(PimStatus), p.buffer_words // 2
        faults = (
            (PimStatus.COUNT, Mux(read, 0, command.count == 0) | ((mac | read) & (command.outputs == 0))),
            (PimStatus.FORMAT, ((mac | read) & Mux(command.int8, not p.int8, not p.fp16))
             | (mac & command.spread.all())),
            (PimStatus.ADDRESS, (write | mac) & (end > p.words)),
            (PimStatus.BUFFER, (load | mac) & ((buffer_end > p.buffer_words) | (by_four & command.base[:2].any()))),
            (PimStatus.ACCUMULATOR, (mac | read) & ((command.first >= p.accumulators)
                                                    | (place + command.outputs > p.half))),
        )
        for code, fault in reversed(faults):
            with m.If(fault):
                m.d.comb += status.eq(code)
        m.d.sync += [
            job.status.eq(status),
            job.drop.eq((status != PimStatus.OK) & (load | write) & (command.count != 0)),
            job.row.eq(command.address >> column_bits), job.column.eq(command.address),
            job.last_row.eq(last >> column_bits),
            job.buffer_halves.eq(Cat(command.base < middle, buffer_end > middle)),
            # a WRITE is one long output
            job.outputs.eq(Mux(write, 1, command.outputs)),
        ]
        m.d.sync += [job[name].eq(command[name]) for name in (
            "op", "count", "base", "first", "spread", "clear", "int8", "group", "bank", "reduce")]
