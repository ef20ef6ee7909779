"""Makes one response to each command of a stack out of those of the pseudo-channels that took part.

Latency: a cycle for each pseudo-channel that took part, and 1. Throughput: a response in a cycle more than that.
"""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from rtl.pim_layouts import pim_response, respond_job, stack_response
from rtl.unit import Unit
from sim_models.params.pim import PimStackParams

__all__ = ["ResponseCollector"]


class ResponseCollector(Unit):
    """Collector of responses.

    Members
    -------
    i_job: In(stream of respond_job)
    i_0, ...: In(stream of pim_response)
        From each pseudo-channel; its status is OK, since the stack has checked the command.
    o: Out(stream of stack_response)
    """

    block = "response_collector"

    i_job: Any
    o: Any

    def __init__(self, params: PimStackParams | None = None) -> None:
        p = params or PimStackParams()
        self.p = p
        super().__init__(p, {
            "i_job": In(stream.Signature(respond_job(p))), "o": Out(stream.Signature(stack_response)),
            **{f"i_{i}": In(stream.Signature(pim_response)) for i in range(p.pseudo_channels)}})

    def body(self, platform: Any) -> Module:
        m = Module()
        p, job, out = self.p, self.i_job.payload, self.o.payload
        busy, rest, current = Signal(), Signal(p.pseudo_channels), Signal(p.pseudo_channels)
        response, available = Signal(pim_response), Signal()
        m.d.comb += [current.eq(rest & -rest), self.o.valid.eq(busy & (rest == 0)),
                     self.i_job.ready.eq(~busy | (self.o.valid & self.o.ready))]
        for i in range(p.pseudo_channels):
            source = getattr(self, f"i_{i}")
            m.d.comb += source.ready.eq(busy & current[i])
            with m.If(current[i]):
                m.d.comb += [response.eq(source.payload), available.eq(busy & source.valid)]
        with m.If(self.i_job.ready):
            m.d.sync += [busy.eq(self.i_job.valid), rest.eq(job.channels), out.status.eq(job.status),
                         out.cycles.eq(0), out.hits.eq(0), out.misses.eq(0)]
        with m.Elif(available):
            m.d.sync += [rest.eq(rest & ~current), out.hits.eq(out.hits + response.hits),
                         out.misses.eq(out.misses + response.misses),
                         out.cycles.eq(Mux(response.cycles > out.cycles, response.cycles, out.cycles))]
        return m
