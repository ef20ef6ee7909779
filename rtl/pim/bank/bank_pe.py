"""The processing element of a bank adds exact dot products of word pairs into accumulators (SADDLE IV-C).

::

    row, other -> lanes: shift, multiply, place -> adder tree -> (+) -> accumulators -> fold -> sum
                                                                  ^          |
                                                                  +----------+

A word is 16 FP16 or 32 int8 numbers (by default). FP16: products, those of subnormals too, are added in fixed point
over the whole range of products, so a sum is exact, independent of the order, and rounded once: by `sum_rounder`,
after the sums of all banks were added up. Infinite products and NaNs are counted apart, as flags. Int8: integers.

No sum can overflow while at most 2^terms_width - 1 words go into it. All steps of a sum have the same format. An
accumulator has no value until a step with ``first``, also after a reset, which takes away all steps on their way.

With both formats, products of lower and upper int8 numbers are added side by side in the low and the high bits of
the same adders; the two sums are added up on reading.

Latency: `BankPEParams.latency` (7 cycles with 16 FP16 lanes) from a step to a read that finds it, which takes
`BankPEParams.read_latency` (2) cycles. Throughput: a step and a read a cycle, in any order of accumulators, also the
same one again and again. No back-pressure. docs/pim.md has its area.
"""

from typing import Any

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib.wiring import In, Out

from rtl.pim.bank.layouts import exact_sum, pe_step
from rtl.pim.bank.pe_accumulators import PEAccumulators
from rtl.pim.bank.pe_lane import PELane
from rtl.pim.bank.pe_tree import PETree
from rtl.unit import Unit
from sim_models.params.pim.bank.bank_pe import BankPEParams

__all__ = ["BankPE"]

_FLAGS = ("positive", "negative", "nan")


class BankPE(Unit):
    """Processing element.

    Members
    -------
    step: In(pe_step)
        A pair of words that is multiplied and added to an accumulator.
    read_en: In(1)
        An accumulator is read.
    read_index: In(range(accumulators))
        Number of the accumulator that is read.
    sum: Out(exact_sum)
        What the accumulator was when ``read_en`` was 1, two cycles before; holds until the next read arrives.
    busy: Out(1)
        Steps of earlier cycles are on their way: a read now may miss them.
    """

    block = "bank_pe"

    step: Any
    read_en: Signal
    read_index: Signal
    sum: Any
    busy: Signal

    def __init__(self, params: BankPEParams | None = None) -> None:
        p = params or BankPEParams()
        self.p = p
        super().__init__(p, {
            "step": In(pe_step(p)), "read_en": In(1), "read_index": In(range(p.accumulators)),
            "sum": Out(exact_sum(p)), "busy": Out(1),
        })

    def answers(self) -> tuple[tuple[str, str, int], ...]:
        return (("read_index", "sum", self.p.read_latency),)

    def body(self, platform: Any) -> Module:
        m = Module()
        p, step = self.p, self.step

        # what travels beside the data: valid, and of a valid step also index, first and int8
        mark = [step.index, step.first, *([step.int8] if p.both else [])]
        valids: list[Value] = [step.valid]
        marks: list[Value] = [Cat(*mark)]
        for k in range(1, p.latency):
            valid, mark = Signal(name=f"valid_{k}"), Signal(len(marks[0]), name=f"mark_{k}", reset_less=True)
            m.d.sync += [valid.eq(valids[-1]), mark.eq(marks[-1])]
            valids.append(valid)
            marks.append(mark)
        m.d.comb += self.busy.eq(Cat(*valids[1:]).any())

        m.submodules.tree = tree = PETree(p.tree)
        for k in range(p.lanes):
            m.submodules[f"lane_{k}"] = lane = PELane(p.lane)
            m.d.comb += [lane.a.eq(step.row[16 * k:16 * k + 16]), lane.b.eq(step.other[16 * k:16 * k + 16]),
                         tree.terms[k].eq(lane.term)]
            if p.both:
                m.d.comb += lane.int8.eq(step.int8)
            if p.fp16:
                m.d.comb += tree.carries[k].eq(lane.carry)
                m.d.comb += [getattr(tree, name)[k].eq(getattr(lane, name)) for name in _FLAGS]

        m.submodules.accumulators = sums = PEAccumulators(p)
        m.d.comb += [
            sums.next_index.eq(marks[-2][:p.index_width]), sums.valid.eq(valids[-1]),
            sums.first.eq(marks[-1][p.index_width]), sums.total.eq(tree.total),
            sums.read_en.eq(self.read_en), sums.read_index.eq(self.read_index), self.sum.eq(sums.sum),
        ]
        if p.fp16:
            m.d.comb += sums.carry.eq(tree.carry)
            m.d.comb += [getattr(sums, name).eq(getattr(tree, f"any_{name}")) for name in _FLAGS]
        if p.both:
            m.d.comb += sums.int8.eq(marks[-1][-1])
        return m
