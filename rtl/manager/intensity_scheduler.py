"""Decides where the two movable operators run: the draft model's FC layers and the target's attention.

Their arithmetic intensity follows from counts. Weights that are loaded once serve all requests that draft on, so
the intensity of the FC layers is proportional to their number, the effective micro-batch. The KV cache of a request
is loaded once for all of its draft tokens, so that of attention is proportional to tokens per request. Estimates
are compared with thresholds in those units, measured in advance (SADDLE: about 9 drafting requests; about 9 tokens
per request, divided by the size of a group of heads that share their keys)::

    drafting ------------------> at or above high: TILES    +-- dlm_fc
                                 below low:        PIM -----|
    tokens / requests ---------> between:          stays    +-- tlm_attention

The gap between low and high keeps an operator from moving to and fro. Thresholds are multiplied by the number of
requests; nothing is divided. While ``dynamic`` is low both operators are where the initial mapping has them.

Latency: 2 cycles from ``step`` or ``round`` to the mapping. Throughput: an estimate of each kind a cycle.
Reference: SADDLE IV-D.
"""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from rtl.unit import Unit
from sim_models.params.manager.intensity_scheduler import IntensitySchedulerParams
from sim_models.spec.manager import Place

__all__ = ["IntensityScheduler"]


class IntensityScheduler(Unit):
    """Thresholds with hysteresis on two estimates.

    Members
    -------
    step: In(1)
        A draft step is over.
    drafting: In(requests_width)
        With ``step``: requests that draft on; none says nothing.
    round: In(1)
        A verification is about to begin.
    tokens: In(count_width)
        With ``round``: draft tokens in it.
    requests: In(requests_width)
        With ``round``: requests in it; none says nothing.
    dynamic: In(1)
        Operators may move.
    initial_dlm_fc: In(Place)
        Where the draft model's FC layers run until they move.
    initial_tlm_attention: In(Place)
        Where the target's attention runs until it moves.
    dlm_fc_low: In(requests_width)
        Drafting requests below which the draft model's FC layers go to the PIM; must not exceed ``dlm_fc_high``.
    dlm_fc_high: In(requests_width)
        Drafting requests from which they go to the tiles.
    tlm_attention_low: In(threshold_width)
        Tokens per request, with fraction_width bits behind the point, below which the target's attention goes to
        the PIM; must not exceed ``tlm_attention_high``.
    tlm_attention_high: In(threshold_width)
        Tokens per request, with fraction_width bits behind the point, from which it goes to the tiles.
    dlm_fc: Out(Place)
        Where the draft model's FC layers run.
    tlm_attention: Out(Place)
        Where the target's attention runs.
    moved: Out(2)
        In the cycle of a new mapping while ``dynamic``: {tlm_attention, dlm_fc} came from the other side.
    """

    block = "intensity_scheduler"

    step: Signal
    drafting: Signal
    round: Signal
    tokens: Signal
    requests: Signal
    dynamic: Signal
    initial_dlm_fc: Any
    initial_tlm_attention: Any
    dlm_fc_low: Signal
    dlm_fc_high: Signal
    tlm_attention_low: Signal
    tlm_attention_high: Signal
    dlm_fc: Any
    tlm_attention: Any
    moved: Signal

    def __init__(self, params: IntensitySchedulerParams | None = None) -> None:
        p = params or IntensitySchedulerParams()
        self.p = p
        super().__init__(p, {
            "step": In(1), "drafting": In(p.requests_width),
            "round": In(1), "tokens": In(p.count_width), "requests": In(p.requests_width),
            "dynamic": In(1), "initial_dlm_fc": In(Place), "initial_tlm_attention": In(Place),
            "dlm_fc_low": In(p.requests_width), "dlm_fc_high": In(p.requests_width),
            "tlm_attention_low": In(p.threshold_width), "tlm_attention_high": In(p.threshold_width),
            "dlm_fc": Out(Place), "tlm_attention": Out(Place), "moved": Out(2),
        })

    def answers(self) -> tuple[tuple[str, str, int], ...]:
        return (("step", "dlm_fc", 2), ("round", "tlm_attention", 2))

    def body(self, platform: Any) -> Module:
        m = Module()
        p = self.p
        scaled = Cat(Const(0, p.fraction_width), self.tokens)
        operators = (
            (self.dlm_fc, self.initial_dlm_fc, self.step & (self.drafting != 0), self.drafting, 1,
             self.dlm_fc_low, self.dlm_fc_high),
            (self.tlm_attention, self.initial_tlm_attention, self.round & (self.requests != 0), scaled,
             self.requests, self.tlm_attention_low, self.tlm_attention_high),
        )
        for n, (place, initial, given, estimate, weight, low, high) in enumerate(operators):
            # first the products with both thresholds, then the comparison with that beyond which the operator moves
            size = max(len(estimate), len(low * weight))
            fresh, held = Signal(name=f"fresh_{n}"), Signal(size, name=f"estimate_{n}")
            bounds = [Signal(size, name=f"{name}_{n}") for name in ("low", "high")]
            new = Signal(Place, name=f"new_{n}")
            m.d.comb += new.eq(place)
            with m.If(~self.dynamic):
                m.d.comb += new.eq(initial)
            with m.Elif(fresh):
                m.d.comb += new.eq(held >= Mux(place == Place.TILES, *bounds))
            m.d.sync += [fresh.eq(given), held.eq(estimate), bounds[0].eq(low * weight), bounds[1].eq(high * weight),
                         place.eq(new), self.moved[n].eq(self.dynamic & (new != place))]
        return m
