"""The SADDLE Manager whole takes logits and gives decisions; it is set and read over AXI4-Lite.

::

    logits ---+--> softmax unit --> token, probability --+
              |                                          v
              '--> requests of complete vectors -----> drafted +-----------+--> draft    steps
                                       requests -------------->|  manager  |--> verify   passes
                                       verdicts -------------->|           |--> emitted  texts
                                                               +-----------+
                                    s_axil --> registers --> settings  |
                                       irq <------'------ counters <---'

The draft engine sends, for each request of a step, one vector of logits of any length, in any order of requests but
one vector behind the other. The draft token is that of the largest logit, or one that the engine has sampled and
gives with the vector; its probability is that in the vector's softmax. Where no logit counts (all masked, -inf or
NaN) it is token 0, or the given one, with probability 0: lossless, and counted (``count_masked``).

Latency: from the last beat to the decision ``SoftmaxUnitParams.latency`` and 3 cycles, if
the Manager waits for it; all else as of ``manager``. Throughput: ``logit_lanes`` logits a cycle. ``irq``: 2 cycles
after a request's last token was taken; see ``manager_registers``. ``logits.ready`` does not look at ``logits``.
Reference: SADDLE IV.
"""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.bus.axi_lite import AxiLiteSignature
from rtl.bus.registers import Register
from rtl.manager.layouts import draft_beat, emitted, new_request, request_logits, request_verdict, verify_beat
from rtl.manager.manager import Manager
from rtl.manager.manager_registers import ManagerRegisters
from rtl.manager.registers import registers as register_table
from rtl.manager.softmax.softmax_unit import SoftmaxUnit
from rtl.memory.fifo import Fifo
from rtl.parts.streams import joined
from rtl.unit import Unit
from sim_models.params.bus.axi_lite import AxiLiteParams
from sim_models.params.manager.saddle_manager import SaddleManagerParams
from sim_models.spec.manager import Place

__all__ = ["SaddleManager"]


class SaddleManager(Unit):
    """Softmax unit, Manager and registers.

    Members
    -------
    s_axil: In(AxiLiteSignature)
        Bus of the registers, 8 bits of address.
    irq: See :class:`rtl.manager.manager_registers.ManagerRegisters`.
    requests, verdicts, draft, verify, emitted, dlm_fc, tlm_attention: See :class:`rtl.manager.manager.Manager`.
    logits: In(stream of request_logits)
        A vector for each request of a step, after the step's end.
    busy: Out(1)
        Something is being decided, or logits are on their way.
    """

    block = "saddle_manager"

    s_axil: Any
    irq: Signal
    requests: Any
    logits: Any
    verdicts: Any
    draft: Any
    verify: Any
    emitted: Any
    dlm_fc: Any
    tlm_attention: Any
    busy: Signal

    def __init__(self, params: SaddleManagerParams | None = None) -> None:
        p = params or SaddleManagerParams()
        self.p = p
        super().__init__(p, {
            "s_axil": In(AxiLiteSignature(AxiLiteParams().address_width)), "irq": Out(1),
            "requests": In(stream.Signature(new_request(p))), "logits": In(stream.Signature(request_logits(p))),
            "verdicts": In(stream.Signature(request_verdict(p))), "draft": Out(stream.Signature(draft_beat(p))),
            "verify": Out(stream.Signature(verify_beat(p))), "emitted": Out(stream.Signature(emitted(p))),
            "dlm_fc": Out(Place), "tlm_attention": Out(Place), "busy": Out(1),
        })

    def register_table(self) -> tuple[Register, ...]:
        return register_table(self.p)

    def body(self, platform: Any) -> Module:
        m = Module()
        p = self.p
        m.submodules.softmax = softmax = SoftmaxUnit(p.softmax)
        m.submodules.tags = tags = Fifo(p.tags)
        m.submodules.manager = manager = Manager(p.manager)
        m.submodules.registers = registers = ManagerRegisters(p.registers)

        # A beat goes to the softmax unit; the last of a vector also leaves its request in the queue, which has room
        # for as many as the unit takes
        given = self.logits.payload
        m.d.comb += [
            softmax.i.payload.eq(given.beat), softmax.i.valid.eq(self.logits.valid),
            self.logits.ready.eq(softmax.i.ready), tags.i.payload.eq(given.request),
            tags.i.valid.eq(self.logits.valid & given.beat.last & softmax.i.ready),
        ]
        began = Signal()
        with m.If(self.logits.valid & self.logits.ready):
            m.d.sync += began.eq(~given.beat.last)

        # A result and its request are a draft token
        result, drafted = softmax.o.payload, manager.drafted.payload
        m.d.comb += [
            manager.drafted.valid.eq(softmax.o.valid), drafted.request.eq(tags.o.payload),
            drafted.token.eq(result.token), drafted.probability.eq(result.p),
            softmax.o.ready.eq(manager.drafted.ready), tags.o.ready.eq(softmax.o.valid & manager.drafted.ready),
            manager.softmax.busy.eq(began | tags.o.valid),
            manager.softmax.masked.eq(softmax.o.valid & manager.drafted.ready & result.masked),
        ]

        for name in ("requests", "verdicts", "draft", "verify", "emitted"):
            here, there = getattr(self, name), getattr(manager, name)
            source, sink = (here, there) if name in ("requests", "verdicts") else (there, here)
            m.d.comb += joined(source, sink)
        connect(m, flipped(self.s_axil), registers.s_axil)
        m.d.comb += [
            manager.settings.eq(registers.settings), registers.counters.eq(manager.counters),
            registers.dlm_fc.eq(manager.dlm_fc), registers.tlm_attention.eq(manager.tlm_attention),
            registers.busy.eq(self.busy), self.busy.eq(manager.busy | manager.softmax.busy),
            self.dlm_fc.eq(manager.dlm_fc), self.tlm_attention.eq(manager.tlm_attention), self.irq.eq(registers.irq),
        ]
        return m
