"""The softmax unit: from a stream of logits to a probability, in one pass and with one division.

::

    i -> SoftmaxScan -------> SoftmaxSum --------> SoftmaxFinish -> queue -> o
         largest, its band    powers by bands      power / sum                ^
               '-------------------------------------------------> queue -----'

A vector is any number of beats with ``last`` in its last one. Its result is the token of the largest logit (the
lowest of equal ones, compared exactly) and a probability in UQ1.15: of that token, or of one that was given with the
vector; of a token that is masked or not in the vector it is 0. Never above 1.0, never higher for a lower logit.

Error: below 2^-15 for every vector of up to 2^token_width float32 logits, 2^-16 of which is the rounding to UQ1.15
(measured: 2^-15.8). Sums are exact, so a result depends on neither pauses, nor ``lanes``, nor the order of logits.

Logits: -inf counts as masked, so does NaN, which sets a flag; +inf as the largest finite number; subnormals as zero.
A vector of nothing but masked logits has the flag ``masked``, and ``largest`` and ``p`` are 0.

Nothing in the pipeline waits: a beat is taken while less than ``results`` vectors are between their last beat and
their result, for which there is room in the queues. ``i.ready`` and ``o.valid`` come from registers.

Latency: ``latency`` cycles from the last beat. Throughput: a beat a cycle; at most ``results`` vectors in
``latency`` + 1 cycles.
Reference: SADDLE IV-A (softmax unit of the Controller); online softmax as in FlashAttention.
"""

from typing import Any

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from rtl.manager.softmax.layouts import logits_beat, softmax_result
from rtl.manager.softmax.softmax_finish import SoftmaxFinish
from rtl.manager.softmax.softmax_scan import SoftmaxScan
from rtl.manager.softmax.softmax_sum import SoftmaxSum
from rtl.memory.fifo import Fifo
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
        p = self.p
        m.submodules.scan = scan = SoftmaxScan(p)
        m.submodules.sum = total = SoftmaxSum(p)
        m.submodules.finish = finish = SoftmaxFinish(p)
        m.submodules.results = results = Fifo(p.result_queue)
        m.submodules.vectors = vectors = Fifo(p.vector_queue)

        # Vectors whose last beat was taken and whose result was not
        count = Signal(range(p.results + 1))
        enters = self.i.valid & self.i.ready & self.i.payload.last
        leaves = self.o.valid & self.o.ready
        m.d.sync += count.eq(count + enters - leaves)
        m.d.comb += self.i.ready.eq((count != p.results) & ~in_reset())

        m.d.comb += [
            scan.i_valid.eq(self.i.valid & self.i.ready), scan.beat.eq(self.i.payload),
            total.values.eq(scan.values), total.present.eq(scan.present), total.bands_valid.eq(scan.bands_valid),
            total.bands.eq(scan.bands),
            finish.chosen.eq(scan.vector.chosen), finish.counts.eq(scan.vector.counts),
            finish.top.eq(scan.bands.top), finish.i_valid.eq(total.o_valid), finish.sums.eq(total.sums),
        ]
        vector, out = scan.vector, self.o.payload
        held = vectors.o.payload
        m.d.comb += [
            vectors.i.valid.eq(scan.o_valid & scan.o_last),
            vectors.i.payload.eq(Cat(vector.token, vector.largest, vector.masked, vector.nan)),
            results.i.valid.eq(finish.o_valid), results.i.payload.eq(finish.probability),
            Cat(out.token, out.largest, out.masked, out.nan).eq(held), out.p.eq(results.o.payload),
            # the rest of a vector is there long before its probability
            self.o.valid.eq(results.o.valid), results.o.ready.eq(self.o.ready), vectors.o.ready.eq(leaves),
        ]
        return m
