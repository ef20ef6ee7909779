"""Responses of a pseudo-channel, in the order of the commands, which its units complete in any order.

Room for the response is reserved when a command is dispatched, so no unit has to wait.

Latency: 1 cycle from completion to response. Throughput: a response a cycle.
"""

from typing import Any

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from rtl.memory.fifo import Fifo
from rtl.pim.channel.layouts import PimUnit, pim_response
from rtl.unit import Unit
from sim_models.params.memory.fifo import FifoParams
from sim_models.params.pim.channel.pseudo_channel import PseudoChannelParams
from sim_models.spec.channel import PimStatus

__all__ = ["PimResponder"]

#: commands that were dispatched and whose response was not taken
IN_FLIGHT = 8


class PimResponder(Unit):
    """Response queue.

    Members
    -------
    dispatch: In(1), unit: In(PimUnit), status: In(PimStatus)
        A command goes to a unit, or is refused.
    room: Out(1)
        One more may be dispatched.
    <unit>_done: In(1), <unit>_cycles: In(32)
        A unit completes its first command that it has not completed; units: sequencer, loader, reader.
    hits, misses: In(24)
        With ``sequencer_done``.
    o_response: Out(stream of pim_response)
    """

    block = "pim_responder"

    dispatch: Signal
    unit: Any
    status: Any
    room: Signal
    sequencer_done: Signal
    sequencer_cycles: Signal
    hits: Signal
    misses: Signal
    loader_done: Signal
    loader_cycles: Signal
    reader_done: Signal
    reader_cycles: Signal
    o_response: Any

    def __init__(self, params: PseudoChannelParams | None = None) -> None:
        super().__init__(params or PseudoChannelParams(), {
            "dispatch": In(1), "unit": In(PimUnit), "status": In(PimStatus), "room": Out(1),
            "sequencer_done": In(1), "sequencer_cycles": In(32), "hits": In(24), "misses": In(24),
            "loader_done": In(1), "loader_cycles": In(32), "reader_done": In(1), "reader_cycles": In(32),
            "o_response": Out(stream.Signature(pim_response)),
        })

    def body(self, platform: Any) -> Module:
        m = Module()
        in_flight, moved = Signal(range(IN_FLIGHT + 1)), Signal()
        m.d.comb += [self.room.eq(in_flight != IN_FLIGHT), moved.eq(self.o_response.valid & self.o_response.ready)]
        m.d.sync += in_flight.eq(in_flight + self.dispatch - moved)

        m.submodules.order = order = Fifo(FifoParams(width=5, depth=IN_FLIGHT))
        unit, status = Signal(PimUnit), Signal(PimStatus)
        m.d.comb += [
            order.i.valid.eq(self.dispatch), order.i.payload.eq(Cat(self.unit, self.status)),
            Cat(unit, status).eq(order.o.payload), order.o.ready.eq(moved),
        ]
        response = self.o_response.payload
        with m.If(unit == PimUnit.NONE):
            m.d.comb += self.o_response.valid.eq(order.o.valid)
        for name, kind in (("sequencer", PimUnit.SEQUENCER), ("loader", PimUnit.LOADER), ("reader", PimUnit.READER)):
            counts = [getattr(self, f"{name}_cycles")] + [self.hits, self.misses] * (name == "sequencer")
            m.submodules[name] = queue = Fifo(FifoParams(width=len(Cat(counts)), depth=IN_FLIGHT))
            m.d.comb += [queue.i.valid.eq(getattr(self, f"{name}_done")), queue.i.payload.eq(Cat(counts)),
                         queue.o.ready.eq(moved & (unit == kind))]
            with m.If(unit == kind):
                m.d.comb += self.o_response.valid.eq(order.o.valid & queue.o.valid)
                with m.If(status == PimStatus.OK):
                    m.d.comb += Cat(response.cycles, response.hits, response.misses).eq(queue.o.payload)
        m.d.comb += response.status.eq(status)
        return m
