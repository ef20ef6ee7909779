"""The adders behind the lanes of the special function unit: a tree over the lanes, or a sum in each lane.

::

    term 0 -+- + --+          across: the sum of all terms that are kept, (t0 + t1) + (t2 + t3) and so on
    term 1 -'      + - total  else:   term + other in each lane, for which the tree's adders
    term 2 -+- + --'                  and one more are used
    term 3 -'

Latency: a cycle and ``adder.stages`` in each lane, or that times ``levels`` across. Throughput: a word a cycle.
Everything holds without ``enable``.
"""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from rtl.arith.float_adder import FloatAdder
from rtl.parts.pipeline import delay
from rtl.unit import Unit
from sim_models.params.sfu.buffer_die_sfu import BufferDieSfuParams

__all__ = ["SfuTree"]


class SfuTree(Unit):
    """Sums of a word, or over it.

    Members
    -------
    enable: In(1)
    across: In(1)
        Constant while words are inside.
    terms, addends: In(ArrayLayout(32, lanes))
    keep: In(lanes)
        Terms that count; those that do not are +0.
    sums: Out(ArrayLayout(32, lanes))
        Not across.
    total: Out(32)
        Across alone.
    """

    block = "sfu_tree"

    enable: Signal
    across: Signal
    terms: Any
    addends: Any
    keep: Signal
    sums: Any
    total: Signal

    def __init__(self, params: BufferDieSfuParams | None = None) -> None:
        p = params or BufferDieSfuParams()
        self.p = p
        word = data.ArrayLayout(32, p.lanes)
        super().__init__(p, {
            "enable": In(1), "across": In(1), "terms": In(word), "addends": In(word), "keep": In(p.lanes),
            "sums": Out(word), "total": Out(32),
        })

    def body(self, platform: Any) -> Module:
        m = Module()
        lanes = self.p.lanes
        kept: list[Any] = [delay(m, Mux(self.keep[k], self.terms[k], 0), 1, f"kept{k}", enable=self.enable)
                           for k in range(lanes)]
        added = [delay(m, self.addends[k], 1, f"added{k}", enable=self.enable) for k in range(lanes)]
        nodes, adders = kept, []
        for k in range(lanes):
            m.submodules[f"adder{k}"] = adder = FloatAdder(self.p.adder)
            m.d.comb += [adder.enable.eq(self.enable), self.sums[k].eq(adder.result)]
            adders.append(adder)
        free = iter(adders)
        pairs: list[tuple[Any, Any]] = []
        while len(nodes) > 1:
            level = list(zip(nodes[::2], nodes[1::2], strict=True))
            pairs += level
            nodes = [next(free).result for _ in level]
        m.d.comb += self.total.eq(nodes[0])
        # the last adder is none of the tree's
        pairs.append((kept[lanes - 1], added[lanes - 1]))
        for k, (left, right) in enumerate(pairs):
            m.d.comb += [adders[k].a.eq(Mux(self.across, left, kept[k])),
                         adders[k].b.eq(Mux(self.across, right, added[k]))]
        return m
