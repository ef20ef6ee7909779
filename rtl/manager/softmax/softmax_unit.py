"""The softmax unit: from a stream of logits to a probability, in one pass and without dividing but once.

::

    i -> SoftmaxScan -------> SoftmaxSum --------------> SoftmaxFinish -> o
         maximum, anchor      powers of two, their sum   power / sum

A vector is any number of beats with ``last`` in its last one. Its result is the token of the largest logit (the
lowest of equal ones, compared exactly) and a probability in UQ1.15: of that token, or of one that was given with the
vector; of a token that is masked or not in the vector it is 0. Never above 1.0, never higher for a lower logit.

Error: below 2^-15 for every vector of up to 2^token_width float32 logits, 2^-16 of which is the rounding to UQ1.15
(measured: 2^-15.8). A term that counts is within 2^-16.5 of its value (float32 differences up to 32 and their powers
by linear segments), what is cut off of the sum is below 2^-18 of it, and both enter with p (1 - p) at most. The sum
is rescaled by shifts alone, so no error grows with the number of new maxima.

Logits: -inf counts as masked, so does NaN, which sets a flag; +inf as the largest finite number; subnormals as zero.
A vector of nothing but masked logits has the flag ``masked``, and ``largest`` and ``p`` are 0.

Order: all lanes of a beat are added exactly, then to the sum so far, beat by beat. A result does not depend on pauses
of any kind. ``i.ready`` and ``o.valid`` come from registers.

Latency: ``latency`` cycles from the last beat. Throughput: a beat a cycle as long as a vector has
at least ``finish_cycles`` + 1 beats; shorter ones come one in so many cycles.
Reference: SADDLE IV-A (softmax unit of the Controller); online softmax as in FlashAttention.
"""

from typing import Any

from amaranth.hdl import Module
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from rtl.manager.softmax.layouts import logits_beat, softmax_result
from rtl.manager.softmax.softmax_finish import SoftmaxFinish
from rtl.manager.softmax.softmax_scan import SoftmaxScan
from rtl.manager.softmax.softmax_sum import SoftmaxSum
from rtl.unit import Unit, in_reset
from sim_models.params.manager.softmax.softmax_unit import SoftmaxUnitParams

__all__ = ["SoftmaxUnit"]


class SoftmaxUnit(Unit):
    """Probability of the most likely or of a given token.

    Members
    -------
    i: In(stream of logits_beat)
        Vectors of logits.
    o: Out(stream of softmax_result)
        One result for each vector, in order.
    """

    block = "softmax_unit"

    i: Any
    o: Any

    def __init__(self, params: SoftmaxUnitParams | None = None) -> None:
        p = params or SoftmaxUnitParams()
        self.p = p
        super().__init__(p, {
            "i": In(stream.Signature(logits_beat(p))), "o": Out(stream.Signature(softmax_result(p))),
        })

    def body(self, platform: Any) -> Module:
        m = Module()
        m.submodules.scan = scan = SoftmaxScan(self.p)
        m.submodules.sum = total = SoftmaxSum(self.p)
        m.submodules.finish = finish = SoftmaxFinish(self.p)
        # everything stands while a vector is complete and the one before is not
        enable = ~total.o_valid | finish.i.ready
        m.d.comb += [
            scan.enable.eq(enable), total.enable.eq(enable), self.i.ready.eq(enable & ~in_reset()),
            scan.i_valid.eq(self.i.valid), scan.beat.eq(self.i.payload),
            total.i_valid.eq(scan.o_valid), total.values.eq(scan.values), total.step.eq(scan.step),
            total.vector.eq(scan.vector),
            finish.i.valid.eq(total.o_valid), finish.i.payload.eq(total.sums),
            self.o.valid.eq(finish.o.valid), self.o.payload.eq(finish.o.payload), finish.o.ready.eq(self.o.ready),
        ]
        return m
