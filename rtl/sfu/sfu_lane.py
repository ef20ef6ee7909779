"""One lane of the special function unit: every operation's arithmetic on one number a cycle.

::

    x -+- x factor -+- + addend -+- x weight -+- x constant - 2^ -+- + bias -+- 1 / - x row -+-> result
       |  or x      |            |  or itself |                   |  or 1    |               |
       '------------+------------+------------+-------------------+----------+---------------'
                                 '-> store                        (in SfuTree: term + other = sum)

The pass (:mod:`rtl.sfu.sfu_passes`) says which of the places a number goes through; it is constant while numbers are
on their way. -inf is stored as the most negative finite number where it is to be multiplied by a sigmoid, which is
0 there, so that SiLU and GELU of -inf are 0.

Latency: see :func:`~rtl.sfu.sfu_passes.pass_times`, where x is there at time 2. Throughput: a number a cycle.
Everything holds without ``enable``.
"""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from rtl.arith.exp2 import Exp2
from rtl.arith.float_adder import FloatAdder
from rtl.arith.float_multiplier import FloatMultiplier
from rtl.arith.reciprocal import Reciprocal
from rtl.parts.pipeline import delay
from rtl.sfu.sfu_passes import SfuPass
from rtl.unit import Unit
from sim_models.params.sfu.buffer_die_sfu import GELU_CUBIC, LOG2_E, ONE, BufferDieSfuParams

__all__ = ["SfuLane"]

_SIGN, _MINUS_INFINITY, _MINUS_LARGEST = 1 << 31, 0xFF800000, 0xFF7FFFFF


class SfuLane(Unit):
    """Arithmetic of a lane.

    Members
    -------
    enable: In(1)
    kind: In(SfuPass)
    factor, addend: In(32)
        The same for all numbers of a pass.
    x, weight, bias: In(32)
        At time 2.
    row: In(32)
        The number as it was stored, two cycles behind ``fetch``.
    sum: In(32)
        ``term`` + ``other``, from the tree.
    term, other: Out(32)
    store: Out(32)
    result: Out(32)
    """

    block = "sfu_lane"

    enable: Signal
    kind: Any
    factor: Signal
    addend: Signal
    x: Signal
    weight: Signal
    bias: Signal
    row: Signal
    sum: Signal
    term: Signal
    other: Signal
    store: Signal
    result: Signal

    def __init__(self, params: BufferDieSfuParams | None = None) -> None:
        p = params or BufferDieSfuParams()
        self.p = p
        numbers = ("factor", "addend", "x", "weight", "bias", "row", "sum")
        super().__init__(p, {
            "enable": In(1), "kind": In(SfuPass), **{name: In(32) for name in numbers},
            "term": Out(32), "other": Out(32), "store": Out(32), "result": Out(32),
        })

    def body(self, platform: Any) -> Module:
        m = Module()
        p, x = self.p, self.x

        def when(*kinds: SfuPass) -> Signal:
            # a cycle late: at time 1, before the first number of a pass comes
            signal = Signal(name="in_" + "_".join(kind.name.lower() for kind in kinds), reset_less=True)
            m.d.sync += signal.eq(Cat(self.kind == kind for kind in kinds).any())
            return signal
        relu, finish, gelu = when(SfuPass.RELU), when(SfuPass.FINISH), when(SfuPass.GELU)
        silu, exp, centre = when(SfuPass.SILU), when(SfuPass.EXP), when(SfuPass.CENTRE)
        gated, scaled = when(SfuPass.SILU, SfuPass.GELU), when(SfuPass.SCALE, SfuPass.GELU)
        plain, power = when(SfuPass.COPY, SfuPass.RELU), when(SfuPass.EXP, SfuPass.SILU, SfuPass.GELU)

        m.submodules.by_factor = scale = FloatMultiplier(p.multiplier)
        m.d.comb += [scale.a.eq(x), scale.b.eq(Mux(gelu, x, self.factor))]

        m.submodules.plus_addend = shift = FloatAdder(p.adder)
        m.d.comb += [shift.a.eq(Mux(scaled, scale.result, x)), shift.b.eq(self.addend)]

        # the weight meets the scaled number, or x the sum that was made of its square
        m.submodules.by_weight = weigh = FloatMultiplier(p.multiplier)
        weight = delay(m, Mux(gelu, x, self.weight), p.multiplier.stages, "weight", enable=self.enable)
        cubed = delay(m, weight, p.adder.stages, "cubed", enable=self.enable)
        m.d.comb += [weigh.a.eq(Mux(finish, scale.result, shift.result)),
                     weigh.b.eq(Mux(finish, weight, Mux(gelu, cubed, shift.result)))]

        m.submodules.by_constant = exponent = FloatMultiplier(p.multiplier)
        m.submodules.exp2 = exp2 = Exp2(p.exp2)
        m.d.comb += [exponent.a.eq(Mux(gelu, weigh.result, Mux(silu, x, shift.result))),
                     exponent.b.eq(Mux(gelu, GELU_CUBIC, Mux(silu, LOG2_E | _SIGN, LOG2_E))),
                     exp2.x.eq(exponent.result)]

        bias = delay(m, self.bias, 2 * p.multiplier.stages, "bias", enable=self.enable)
        m.d.comb += [self.term.eq(Mux(power, exp2.result, Mux(centre, shift.result, weigh.result))),
                     self.other.eq(Mux(gated, ONE, bias))]

        m.submodules.reciprocal = reciprocal = Reciprocal(p.reciprocal)
        m.submodules.by_row = gate = FloatMultiplier(p.multiplier)
        m.d.comb += [reciprocal.x.eq(self.sum), gate.b.eq(self.row),
                     gate.a.eq(delay(m, reciprocal.result, 2, "sigmoid", enable=self.enable))]

        bounded = Mux(x == _MINUS_INFINITY, _MINUS_LARGEST, x)
        is_nan = (x[23:31] == 255) & (x[:23] != 0)
        rectified = Mux(relu & x[31] & ~is_nan, 0, x)
        chosen = Mux(plain, rectified, Mux(gated, gate.result, self.sum))
        m.d.comb += [
            self.store.eq(Mux(gated, bounded, Mux(exp, exp2.result, shift.result))),
            self.result.eq(delay(m, chosen, 1, "chosen", enable=self.enable)),
            *(unit.enable.eq(self.enable) for unit in (scale, shift, weigh, exponent, exp2, reciprocal, gate)),
        ]
        return m
