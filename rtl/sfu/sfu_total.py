"""Sum over the words of a row, and what an operation makes of it, in the special function unit.

::

    word -> + ---> six partial sums, of the words with one number modulo 6
            ^-- 6 cycles --'
    ((q0 + q1) + (q2 + q3)) + (q4 + q5) -+-> 1 / sum                                    DIVIDE
                                         +-> x 1 / length -+-> mean                     MEAN
                                                           +-> + epsilon -> 1 / sqrt    ROOT

q0 is the partial sum of the words whose number is the count of words modulo 6, q1 of those with one more, and so on;
of no words it is +0. The adder and its six stages serve for all sums, and hold while no word comes; so a sum depends
on the numbers and their places alone. What divides by zero, or by its root, is 0 and sets ``zero``.

Latency: from the last word to ``done`` 28 cycles for DIVIDE, 25 for MEAN, 39 for ROOT. Throughput: a word a cycle.
Everything holds without ``enable``.
"""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import enum
from amaranth.lib.wiring import In, Out

from rtl.arith.float_adder import FloatAdder
from rtl.arith.float_multiplier import FloatMultiplier
from rtl.arith.int_to_float import IntToFloat
from rtl.arith.reciprocal import Reciprocal
from rtl.arith.reciprocal_sqrt import ReciprocalSqrt
from rtl.parts.pipeline import wire
from rtl.unit import Unit
from sim_models.params.sfu.buffer_die_sfu import BufferDieSfuParams

__all__ = ["SfuTotal", "TotalUse"]


class TotalUse(enum.Enum, shape=2):
    """What becomes of the sum."""

    DIVIDE = 0
    MEAN = 1
    ROOT = 2


class SfuTotal(Unit):
    """Sum, and a quotient.

    Members
    -------
    enable: In(1)
    fresh: In(1)
        Strobe, with or without ``enable``: a sum begins.
    i_valid, last: In(1), word: In(32)
        Sum of a word; no more until ``done`` behind the last.
    purpose: In(TotalUse), length: In(range(max_length + 1)), epsilon: In(32)
        Constant from the last word on; ``length`` a few cycles before it.
    done: Out(1)
        Strobe, with ``enable``: ``result`` and ``zero`` are there.
    result: Out(32)
    zero: Out(1)
    """

    block = "sfu_total"

    enable: Signal
    fresh: Signal
    i_valid: Signal
    last: Signal
    word: Signal
    purpose: Any
    length: Signal
    epsilon: Signal
    done: Signal
    result: Signal
    zero: Signal

    def __init__(self, params: BufferDieSfuParams | None = None) -> None:
        p = params or BufferDieSfuParams()
        self.p = p
        super().__init__(p, {
            "enable": In(1), "fresh": In(1), "i_valid": In(1), "last": In(1), "word": In(32), "purpose": In(TotalUse),
            "length": In(range(p.max_length + 1)), "epsilon": In(32),
            "done": Out(1), "result": Out(32), "zero": Out(1),
        })

    def body(self, platform: Any) -> Module:
        m = Module()
        p = self.p
        m.submodules.adder = adder = FloatAdder(p.adder)
        m.submodules.mean = mean = FloatMultiplier(p.multiplier)
        m.submodules.to_float = to_float = IntToFloat(p.to_float)
        m.submodules.reciprocal = reciprocal = Reciprocal(p.reciprocal)
        m.submodules.root = root = ReciprocalSqrt(p.reciprocal_sqrt)
        m.d.comb += [unit.enable.eq(self.enable) for unit in (mean, to_float, reciprocal, root)]

        # Cycles behind the last word at which the steps' operands are there: partial sums from 0 to 5, in pairs at 1,
        # 3 and 5; the sums of pairs come at 7, 9 and 11
        stages = p.adder.stages
        first, second, third = 1 + stages, 3 + stages, 5 + stages
        total = second + 2 * stages
        averaged = total + p.multiplier.stages
        moved = averaged + stages
        ends = {TotalUse.DIVIDE: total + p.reciprocal.stages, TotalUse.MEAN: averaged,
                TotalUse.ROOT: moved + p.reciprocal_sqrt.stages}

        is_mean = self.purpose == TotalUse.MEAN
        end = Mux(is_mean, ends[TotalUse.MEAN], Mux(self.purpose == TotalUse.DIVIDE, ends[TotalUse.DIVIDE],
                                                   ends[TotalUse.ROOT]))

        running, now = Signal(), Signal(range(max(ends.values()) + 1))
        later = wire(m, Mux(running, now + 1, 0), "later")
        seen, full = Signal(range(stages)), Signal()    # words and steps, up to a full adder
        # decided a cycle ahead
        adds_epsilon, at_end = Signal(), Signal()
        moves = self.enable & (self.i_valid | running)
        with m.If(self.fresh):
            m.d.sync += [running.eq(0), seen.eq(0), full.eq(0), adds_epsilon.eq(0), at_end.eq(0)]
        with m.Elif(self.enable):
            m.d.sync += [now.eq(later), adds_epsilon.eq(running & (later == averaged)),
                         at_end.eq(running & (later == end))]
            with m.If(self.i_valid & self.last):
                m.d.sync += running.eq(1)
            with m.If(self.done):
                m.d.sync += running.eq(0)
            with m.If(moves & ~full):
                m.d.sync += [seen.eq(seen + 1), full.eq(seen == stages - 1)]

        # what comes out before the adder is full was in it before this row
        partial = Mux(full, adder.result, 0)
        held = Signal(32, reset_less=True)
        with m.If(self.enable & Cat(now == at for at in (0, 2, 4, first, third)).any()):
            m.d.sync += held.eq(partial)
        m.d.comb += [
            adder.enable.eq(moves),
            adder.a.eq(Mux(adds_epsilon, mean.result, Mux(running, held, self.word))),
            adder.b.eq(Mux(adds_epsilon, self.epsilon, partial)),
            to_float.value.eq(self.length), mean.a.eq(adder.result), mean.b.eq(reciprocal.result),
            reciprocal.x.eq(Mux(self.purpose == TotalUse.DIVIDE, adder.result, to_float.result)),
            root.x.eq(adder.result),
        ]

        # the divisor is at the adder's output in one cycle alone
        nothing = Signal(reset_less=True)
        divides = Mux(self.purpose == TotalUse.DIVIDE, now == total, now == moved)
        with m.If(self.enable & divides):
            m.d.sync += nothing.eq(adder.result[23:31] == 0)
        quotient = Mux(self.purpose == TotalUse.DIVIDE, reciprocal.result, root.result)
        m.d.comb += [
            self.done.eq(self.enable & at_end), self.zero.eq(nothing & ~is_mean),
            self.result.eq(Mux(is_mean, mean.result, Mux(nothing, 0, quotient))),
        ]
        return m
