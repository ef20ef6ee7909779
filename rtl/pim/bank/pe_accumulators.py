"""The accumulators of a bank's processing element: a memory of exact sums, an adder in front, a reader behind.

::

    total --> (+) --+--> memory --> fold --> sum
               ^    |
               +----+--> memory (the same words, for the adder)

A sum that was written a cycle ago is not read from the memory but taken from a register, so steps of one accumulator
may follow each other in any distance. Two parts of an int8 sum become one on reading.

Latency: 1 cycle from a total to a read that finds it, 2 from a read to ``sum``. Throughput: a total and a read a
cycle.
"""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib.wiring import In, Out

from rtl.memory.ram import Ram
from rtl.parts.pipeline import wire
from rtl.pim.bank.layouts import exact_sum
from rtl.pim.bank.pe_lane import SPLIT
from rtl.pim.bank.pe_tree import add
from rtl.unit import Unit
from sim_models.params.memory.ram import RamParams
from sim_models.params.pim.bank.bank_pe import BankPEParams

__all__ = ["PEAccumulators"]


class PEAccumulators(Unit):
    """Accumulators.

    Members
    -------
    next_index: In(range(accumulators))
        Which accumulator the total of the next cycle is for, if one comes.
    valid: In(1)
        A total is here.
    first: In(1)
        It starts from 0.
    total: In(signed)
    carry, positive, negative, nan: In(1)
        To be added to the total, and to be marked in the sum; not with int8 alone.
    int8: In(1)
        The total is in two parts; only where the format is chosen at run time.
    read_en: In(1)
    read_index: In(range(accumulators))
    sum: Out(exact_sum)
    """

    block = "pe_accumulators"

    next_index: Signal
    valid: Signal
    first: Signal
    total: Signal
    carry: Signal
    positive: Signal
    negative: Signal
    nan: Signal
    int8: Signal
    read_en: Signal
    read_index: Signal
    sum: Any

    def __init__(self, params: BankPEParams | None = None) -> None:
        p = params or BankPEParams()
        self.p = p
        ports: dict[str, Any] = {
            "next_index": In(range(p.accumulators)), "valid": In(1), "first": In(1),
            "total": In(signed(p.tree.lane.term_width + p.tree.levels)),
            "read_en": In(1), "read_index": In(range(p.accumulators)), "sum": Out(exact_sum(p))}
        if p.fp16:
            ports |= dict.fromkeys(("carry", "positive", "negative", "nan"), In(1))
        if p.both:
            ports["int8"] = In(1)
        super().__init__(p, ports)

    def body(self, platform: Any) -> Module:
        m = Module()
        p, width = self.p, self.p.acc_width
        word = RamParams(width=width + (3 if p.fp16 else 0), depth=p.accumulators)
        m.submodules.sums = sums = Ram(word)
        # only the reader asks for the format
        m.submodules.read_sums = read_sums = Ram(word.replace(width=word.width + 1) if p.both else word)

        # the sum of the step just before is not in the memory yet
        index, again = Signal(p.index_width, reset_less=True), Signal(reset_less=True)
        newest = Signal(word.width, reset_less=True)
        m.d.sync += [index.eq(self.next_index), again.eq(self.valid & (index == self.next_index))]
        old = wire(m, Mux(self.first, 0, Mux(again, newest, sums.read_data)), "old")

        new = [add(old[:width].as_signed(), self.total, self.carry if p.fp16 else Const(0), width)]
        if p.fp16:
            new.append(old[width:width + 3] | Cat(self.positive, self.negative, self.nan))
        m.d.sync += newest.eq(Cat(*new))
        for ram, data in ((sums, Cat(*new)), (read_sums, Cat(*new, *([self.int8] if p.both else [])))):
            m.d.comb += [ram.write_en.eq(self.valid), ram.write_addr.eq(index), ram.write_data.eq(data)]
        m.d.comb += [sums.read_en.eq(1), sums.read_addr.eq(self.next_index),
                     read_sums.read_en.eq(self.read_en), read_sums.read_addr.eq(self.read_index)]
        self._fold(m, read_sums.read_data)
        return m

    def _fold(self, m: Module, word: Value) -> None:
        """What a word of the memory says, into the output register."""
        p = self.p
        value = word[:p.acc_width].as_signed()
        if p.both:
            integers = p.integer_width
            total = word[:integers].as_signed() + word[SPLIT:SPLIT + integers].as_signed()
            value = Mux(word[-1], total[:integers].as_signed(), value)
        # the memory's word holds until the next read, and so does this
        flags = word[p.acc_width:p.acc_width + 3] if p.fp16 else Const(0, 3)
        arrived = Signal(p.acc_width + 3, reset_less=True)
        m.d.sync += arrived.eq(Cat(value, flags))
        m.d.comb += self.sum.as_value().eq(arrived)
