"""Makes one response to each command of a stack out of those of the pseudo-channels that took part.

All of these are taken in the same cycle, so that the pseudo-channels stay in step, and then added up one by one.

Latency: a cycle for each pseudo-channel that took part, and 2. Throughput: a response in as many cycles.
"""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from rtl.pim.channel.layouts import pim_response
from rtl.pim.stack.layouts import respond_job, stack_response
from rtl.unit import Unit
from sim_models.params.pim.stack.pim_stack import PimStackParams

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
        inputs = [getattr(self, f"i_{i}") for i in range(p.pseudo_channels)]
        busy, taken, take = Signal(), Signal(), Signal()
        rest, current = Signal(p.pseudo_channels), Signal(p.pseudo_channels)
        m.d.comb += [
            take.eq(busy & ~taken & (~job.channels | Cat(source.valid for source in inputs)).all()),
            current.eq(rest & -rest), self.o.valid.eq(taken & (rest == 0)),
            self.i_job.ready.eq(self.o.valid & self.o.ready),
        ]
        held = [Signal(pim_response, name=f"held_{i}") for i in range(p.pseudo_channels)]
        for i, source in enumerate(inputs):
            m.d.comb += source.ready.eq(take & job.channels[i])
            with m.If(take):
                m.d.sync += held[i].eq(source.payload)
        response = Signal(pim_response)
        for i in range(p.pseudo_channels):
            with m.If(current[i]):
                m.d.comb += response.eq(held[i])

        m.d.sync += busy.eq(self.i_job.valid & ~self.i_job.ready)
        with m.If(take):
            m.d.sync += [taken.eq(1), rest.eq(job.channels), out.status.eq(job.status), out.cycles.eq(0),
                         out.hits.eq(0), out.misses.eq(0)]
        with m.Elif(self.i_job.ready):
            m.d.sync += taken.eq(0)
        with m.Elif(rest != 0):
            m.d.sync += [rest.eq(rest & ~current), out.hits.eq(out.hits + response.hits),
                         out.misses.eq(out.misses + response.misses),
                         out.cycles.eq(Mux(response.cycles > out.cycles, response.cycles, out.cycles))]
        return m
