"""Running maximum of a row in the special function unit.

::

    values, keep -> FloatMaximum -> compare with the maximum so far -> negated

NaNs are passed over, for a row with one is all NaN anyway. A row of nothing but -inf, of NaNs or of nothing has the
maximum 0: nothing is ever subtracted from itself that is infinite.

Latency: ``maximum.stages`` + 1 cycles from the last word to ``done``. Throughput: a word a cycle. Everything holds
without ``enable``.
"""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from rtl.arith.float_maximum import FloatMaximum
from rtl.parts.float import order_key
from rtl.parts.pipeline import delay
from rtl.unit import Unit
from sim_models.params.sfu.buffer_die_sfu import BufferDieSfuParams

__all__ = ["SfuMaximum"]

#: key of -inf; no number is below it
_MINUS_INFINITY = 0x007FFFFF


class SfuMaximum(Unit):
    """Maximum over words.

    Members
    -------
    enable: In(1)
    fresh: In(1)
        Strobe, with or without ``enable``: a row begins.
    i_valid, last: In(1), values: In(ArrayLayout(32, lanes)), keep: In(lanes)
        A word.
    done: Out(1)
        The last word has counted.
    negated: Out(32)
        The maximum so far with its sign inverted.
    """

    block = "sfu_maximum"

    enable: Signal
    fresh: Signal
    i_valid: Signal
    last: Signal
    values: Any
    keep: Signal
    done: Signal
    negated: Signal

    def __init__(self, params: BufferDieSfuParams | None = None) -> None:
        p = params or BufferDieSfuParams()
        self.p = p
        super().__init__(p, {
            "enable": In(1), "fresh": In(1), "i_valid": In(1), "last": In(1),
            "values": In(data.ArrayLayout(32, p.lanes)), "keep": In(p.lanes), "done": Out(1), "negated": Out(32),
        })

    def body(self, platform: Any) -> Module:
        m = Module()
        m.submodules.word = word = FloatMaximum(self.p.maximum)
        m.d.comb += [word.enable.eq(self.enable), word.i_valid.eq(self.i_valid), word.values.eq(self.values),
                     word.present.eq(self.keep)]
        last = delay(m, self.last, self.p.maximum.stages, "last", enable=self.enable)
        key = order_key(m, word.number, "word")
        # as a key, so that the loop is a comparison and nothing else
        best = Signal(32, init=_MINUS_INFINITY)
        with m.If(self.fresh):
            m.d.sync += [best.eq(_MINUS_INFINITY), self.done.eq(0)]
        with m.Elif(self.enable):
            m.d.sync += self.done.eq(word.o_valid & last)
            with m.If(word.o_valid & word.found & (key > best)):
                m.d.sync += best.eq(key)
        negated = Cat(best[:31] ^ (~best[31]).replicate(31), best[31])
        m.d.comb += self.negated.eq(Mux(best == _MINUS_INFINITY, 0, negated))
        return m
