"""A PIM stack joins pseudo-channels with the special function unit of the buffer die.

::

    i_command -> decoder -> dispatcher -> pseudo-channel 0 ... P - 1 -> response collector -> o_response
                                           ^ words          | exact sums
    i_data -> word dealer -----------------+                v
                  ^                                   sum collector -> row rounder -+-> o_result
              word packer                                                           |
                  ^ FP16                                                            | rows
    i_row ----> sfu port (buffer_die_sfu) <-----------------------------------------+
    i_operands -> |
                  +-> o_row, o_sfu_response

Commands (:func:`rtl.pim.stack.layouts.stack_command`) go to any set of pseudo-channels, or to the special function
unit. Those to one pseudo-channel take effect in their order. Sums stay exact over banks, groups and pseudo-channels
and are rounded once. docs/pim_stack.md has the rules that a program must keep, and what happens to wrong commands.

Latency: 3 cycles before a pseudo-channel to check a command, 2 behind it to collect sums and 4 to round them.
Throughput: that of `pseudo_channel`; sums leave at a beat of four a cycle for the whole stack.
Reference: SADDLE III.
"""

from typing import Any

from amaranth.hdl import Module
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from rtl.memory.fifo import Fifo
from rtl.parts.streams import joined
from rtl.pim.channel.pseudo_channel import PseudoChannel
from rtl.pim.stack.layouts import collect_job, deal_job, respond_job, stack_command, stack_response
from rtl.pim.stack.response_collector import ResponseCollector
from rtl.pim.stack.row_rounder import RowRounder
from rtl.pim.stack.sfu_port import SfuPort
from rtl.pim.stack.stack_decoder import StackDecoder
from rtl.pim.stack.stack_dispatcher import StackDispatcher
from rtl.pim.stack.sum_collector import SumCollector
from rtl.pim.stack.word_dealer import WordDealer
from rtl.pim.stack.word_packer import WordPacker
from rtl.sfu.layouts import sfu_beat, sfu_operands, sfu_response
from rtl.unit import Unit
from sim_models.params.memory.fifo import FifoParams
from sim_models.params.pim.stack.pim_stack import PimStackParams
from sim_models.spec.bank import DramError

__all__ = ["PimStack"]

#: commands whose words are still to be passed on, whose sums are still to come, and which are still to be answered
DEALS, COLLECTS, RESPONSES = 8, 16, 32


class PimStack(Unit):
    """Stack.

    Members
    -------
    i_command: In(stream of stack_command)
        Commands, which are checked in order.
    o_response: Out(stream of stack_response)
        One response for each command, in order.
    i_data: In(stream of words)
        Words for LOAD and WRITE, in the order of commands.
    i_row: In(stream of sfu_beat)
        Rows for the special function unit, in the order of its commands.
    i_operands: In(stream of sfu_operands)
        Weights and biases for the special function unit, in the order of its commands.
    o_result: Out(stream of sfu_beat)
        Results of READs.
    o_row: Out(stream of sfu_beat)
        Rows of results of the special function unit.
    o_sfu_response: Out(stream of sfu_response)
        Outcomes of commands to the special function unit.
    error: Out(DramError)
        A rule of DRAM that a pseudo-channel broke, which must not happen.
    """

    block = "pim_stack"

    i_command: Any
    i_data: Any
    i_row: Any
    i_operands: Any
    o_result: Any
    o_row: Any
    o_response: Any
    o_sfu_response: Any
    error: Any

    def __init__(self, params: PimStackParams | None = None) -> None:
        p = params or PimStackParams()
        self.p = p
        beat = stream.Signature(sfu_beat(p.sfu))
        super().__init__(p, {
            "i_command": In(stream.Signature(stack_command(p))), "i_data": In(stream.Signature(p.word_width)),
            "i_row": In(beat), "i_operands": In(stream.Signature(sfu_operands(p.sfu))),
            "o_result": Out(beat), "o_row": Out(beat), "o_response": Out(stream.Signature(stack_response)),
            "o_sfu_response": Out(stream.Signature(sfu_response(p.sfu))), "error": Out(DramError)})

    def body(self, platform: Any) -> Module:
        m = Module()
        p = self.p
        m.submodules.decoder = decoder = StackDecoder(p)
        m.submodules.dispatcher = dispatcher = StackDispatcher(p)
        m.submodules.dealer = dealer = WordDealer(p)
        m.submodules.packer = packer = WordPacker(p)
        m.submodules.collector = collector = SumCollector(p)
        m.submodules.rounder = rounder = RowRounder(p)
        m.submodules.responses = responses = ResponseCollector(p)
        m.submodules.sfu = sfu = SfuPort(p)
        links = [
            (self.i_command, decoder.i_command), (decoder.o_command, dispatcher.i_command),
            (self.i_data, dealer.i_host), (packer.o, dealer.i_sfu), (sfu.o_words, packer.i),
            (collector.o, rounder.i), (rounder.o_host, self.o_result), (rounder.o_sfu, sfu.i_sums),
            (dispatcher.o_sfu, sfu.i_command), (dispatcher.o_route, sfu.i_route), (self.i_row, sfu.i_host),
            (self.i_operands, sfu.i_operands), (sfu.o_host, self.o_row), (sfu.o_response, self.o_sfu_response),
            (responses.o, self.o_response),
        ]
        for i in range(p.pseudo_channels):
            m.submodules[f"channel_{i}"] = channel = PseudoChannel(p.channel)
            links += [(getattr(dispatcher, f"o_channel_{i}"), channel.i_command),
                      (getattr(dealer, f"o_{i}"), channel.i_data), (channel.o_sums, getattr(collector, f"i_{i}")),
                      (channel.o_response, getattr(responses, f"i_{i}"))]
            with m.If(channel.error != DramError.NONE):
                m.d.comb += self.error.eq(channel.error)
        for source, target in links:
            m.d.comb += joined(source, target)
        for name, source, target, layout, depth in (
                ("deals", dispatcher.o_deal, dealer.i_job, deal_job(p), DEALS),
                ("collects", dispatcher.o_collect, collector.i_job, collect_job(p), COLLECTS),
                ("responds", dispatcher.o_respond, responses.i_job, respond_job(p), RESPONSES)):
            m.submodules[name] = queue = Fifo(FifoParams(width=layout.size, depth=depth))
            m.d.comb += [*joined(source, queue.i), *joined(queue.o, target)]
        return m
