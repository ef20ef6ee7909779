"""Hands each command of a stack to everybody who has a part in it.

::

    command --> pseudo-channels            what they do
            --> word dealer                LOAD, WRITE: words to be passed on
            --> sum collector              READ: sums that will come, or the end of a row
            --> special function unit      its command, and where its row comes from and goes to
            --> response collector         every command

Latency: none. Throughput: a command a cycle, when all of them take it at once; each takes it when it can.
"""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from rtl.pim.channel.layouts import pim_command
from rtl.pim.stack.layouts import checked_command, collect_job, deal_job, respond_job, sfu_route
from rtl.sfu.layouts import sfu_command
from rtl.unit import Unit
from sim_models.params.pim.stack.pim_stack import PimStackParams
from sim_models.spec.channel import PimOp
from sim_models.spec.stack import StackStatus, StackUnit

__all__ = ["StackDispatcher"]


class StackDispatcher(Unit):
    """Fork of commands.

    Members
    -------
    i_command: In(stream of checked_command)
    o_channel_0, ...: Out(stream of pim_command)
        To each pseudo-channel.
    o_deal: Out(stream of deal_job), o_collect: Out(stream of collect_job), o_respond: Out(stream of respond_job)
    o_sfu: Out(stream of sfu_command), o_route: Out(stream of sfu_route)
    """

    block = "stack_dispatcher"

    i_command: Any
    o_deal: Any
    o_collect: Any
    o_respond: Any
    o_sfu: Any
    o_route: Any

    def __init__(self, params: PimStackParams | None = None) -> None:
        p = params or PimStackParams()
        self.p = p
        super().__init__(p, {
            "i_command": In(stream.Signature(checked_command(p))),
            **{f"o_channel_{i}": Out(stream.Signature(pim_command)) for i in range(p.pseudo_channels)},
            "o_deal": Out(stream.Signature(deal_job(p))), "o_collect": Out(stream.Signature(collect_job(p))),
            "o_respond": Out(stream.Signature(respond_job(p))),
            "o_sfu": Out(stream.Signature(sfu_command)), "o_route": Out(stream.Signature(sfu_route)),
        })

    def body(self, platform: Any) -> Module:
        m = Module()
        command, status = self.i_command.payload.command, self.i_command.payload.status
        pim, drop = command.pim, self.i_command.payload.drop
        good = status == StackStatus.OK
        channels, sfu = good & (command.unit == StackUnit.CHANNELS), good & (command.unit == StackUnit.SFU)
        reads = (command.unit == StackUnit.CHANNELS) & (pim.op == PimOp.READ)
        words = (pim.op == PimOp.LOAD) | (pim.op == PimOp.WRITE)
        # nothing is dealt out to nobody
        dealt = (channels & words) | (drop & ~(command.deal & (command.channels == 0)))

        receivers = [(getattr(self, f"o_channel_{i}"), channels & command.channels[i])
                     for i in range(self.p.pseudo_channels)]
        receivers += [(self.o_deal, dealt), (self.o_collect, reads & (good | command.last)),
                      (self.o_sfu, sfu), (self.o_route, sfu), (self.o_respond, 1)]
        done, complete = Signal(len(receivers)), Signal(len(receivers))
        for i, (receiver, wanted) in enumerate(receivers):
            m.d.comb += [receiver.valid.eq(self.i_command.valid & wanted & ~done[i]),
                         complete[i].eq(~wanted | done[i] | receiver.ready)]
        m.d.comb += self.i_command.ready.eq(complete.all())
        with m.If(self.i_command.valid):
            m.d.sync += done.eq(Mux(complete.all(), 0, complete))
        self._payloads(m, command, pim, drop, status)
        return m

    def _payloads(self, m: Module, command: Any, pim: Any, drop: Any, status: Any) -> None:
        p = self.p
        m.d.comb += [getattr(self, f"o_channel_{i}").payload.eq(pim) for i in range(p.pseudo_channels)]
        deal, collect = self.o_deal.payload, self.o_collect.payload
        load = pim.op == PimOp.LOAD
        m.d.comb += [
            deal.channels.eq(command.channels), deal.count.eq(pim.count), deal.drop.eq(drop),
            collect.ends.eq(status != StackStatus.OK),
            deal.deal.eq(command.deal & load), deal.from_sfu.eq(command.from_sfu & load),
            collect.outputs.eq(pim.outputs), collect.reduce.eq(pim.reduce),
            *(collect[name].eq(command[name])
              for name in ("channels", "across", "values", "last", "format", "to_sfu")),
            self.o_sfu.payload.eq(command.sfu), self.o_route.payload.from_host.eq(command.from_host),
            self.o_route.payload.to_buffers.eq(command.to_buffers), self.o_respond.payload.status.eq(status),
        ]
        with m.If((command.unit == StackUnit.CHANNELS) & (status == StackStatus.OK)):
            m.d.comb += self.o_respond.payload.channels.eq(command.channels)
