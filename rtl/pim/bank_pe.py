"""Processing element of a bank: dot products of word pairs, exact, into one of several accumulators (SADDLE IV-C).

::

    row, other -> lanes: shift, multiply, place -> adder tree -> (+) -> accumulators -> fold -> sum
                                                                  ^          |
                                                                  +----------+

A word is 16 FP16 or 32 int8 numbers (by default). FP16: products, those of subnormals too, are added in fixed point
over the whole range of products, so a sum is exact, independent of the order, and rounded once: by `sum_rounder`,
after the sums of all banks were added up. Infinite products and NaNs are counted apart, as flags. Int8: integers.

No sum can overflow while at most 2^terms_width - 1 words go into it. All steps of a sum have the same format. An
accumulator has no value until a step with ``first``, also after a reset, which takes away all steps on their way.

With both formats, products of lower and upper int8 numbers are added apart, in two parts of each adder; the parts
are added up on reading.

Latency: `BankPEParams.latency` (8 cycles for 16 FP16 lanes) from a step to a read that finds it, which takes
`BankPEParams.read_latency` (2) cycles. Throughput: a step and a read a cycle, in any order of accumulators, also the
same one again and again. Cost (xcup, 16 FP16 lanes): see docs/pim.md. No back-pressure.
"""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from rtl.arith.pipeline import wire
from rtl.memory.ram import Ram
from rtl.pim.pe_lane import SPLIT, PELane
from rtl.pim_layouts import exact_sum, pe_step
from rtl.unit import Unit
from sim_models.params.memory import RamParams
from sim_models.params.pim import BankPEParams

__all__ = ["BankPE"]


class BankPE(Unit):
    """Processing element.

    Members
    -------
    step: In(pe_step)
    read_en: In(1)
    read_index: In(range(accumulators))
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

    def body(self, platform: Any) -> Module:
        m = Module()
        p, step = self.p, self.step
        int8 = step.int8 if p.both else Const(int(p.int8))

        # what travels beside the data: valid, and of a valid step also first, index and int8
        valids: list[Value] = [step.valid]
        marks: list[Value] = [Cat(step.first, step.index, int8)]
        for k in range(1, p.latency):
            valid, mark = Signal(name=f"valid_{k}"), Signal(len(marks[0]), name=f"mark_{k}", reset_less=True)
            m.d.sync += [valid.eq(valids[-1]), mark.eq(marks[-1])]
            valids.append(valid)
            marks.append(mark)
        m.d.comb += self.busy.eq(Cat(*valids[1:]).any())

        terms, flags = self._lanes(m)
        age = p.lane.latency
        while len(terms) > 1:
            # two levels of adders between registers
            for _ in range(2):
                if len(terms) > 1:
                    apart = marks[age][-1] if p.both else Const(0)
                    terms = [self._add(m, *terms[k:k + 2], apart, f"sum_{len(terms) // 2}_{k // 2}")
                             for k in range(0, len(terms), 2)]
            age += 1
            terms = [_registered(m, term, f"held_{len(terms)}_{k}") for k, term in enumerate(terms)]
            before, flags = flags, Signal(3, name=f"flags_{age}", reset_less=True)
            m.d.sync += flags.eq(before)
        self._accumulate(m, terms[0], flags, valids[age - 1:], marks[age - 1:])
        return m

    def _lanes(self, m: Module) -> tuple[list["_Term"], Value]:
        """The lanes' terms, and which flags (positive, negative, nan) some lane raises."""
        p, step = self.p, self.step
        lanes = [PELane(p.lane) for _ in range(p.lanes)]
        for k, lane in enumerate(lanes):
            m.submodules[f"lane_{k}"] = lane
            m.d.comb += [lane.a.eq(step.row[16 * k:16 * k + 16]), lane.b.eq(step.other[16 * k:16 * k + 16])]
            if p.both:
                m.d.comb += lane.int8.eq(step.int8)
        if not p.fp16:
            return [_Term(lane.term, []) for lane in lanes], Const(0, 3)
        flags = Cat(Cat(getattr(lane, name) for lane in lanes).any() for name in ("positive", "negative", "nan"))
        return [_Term(lane.term, [lane.carry]) for lane in lanes], flags

    def _add(self, m: Module, a: "_Term", b: "_Term", apart: Value, name: str) -> "_Term":
        """Sum of two terms and one of their carries."""
        carries = [*a.carries, *b.carries]
        carry, *rest = carries or [Const(0)]
        width = max(len(a.value), len(b.value)) + 1
        return _Term(wire(m, _sum(a.value, b.value, carry, width, apart, self.p.both), name), rest)

    def _accumulate(self, m: Module, term: "_Term", flags: Value, valids: list[Value], marks: list[Value]) -> None:
        """Add the term of step ``valids[1]`` to its accumulator; ``valids[0]`` is the step behind it."""
        p = self.p
        width = p.acc_width
        word = RamParams(width=width + (3 if p.fp16 else 0) + (1 if p.both else 0), depth=p.accumulators)
        m.submodules.sums = sums = Ram(word)
        m.submodules.read_sums = read_sums = Ram(word)
        index = marks[1][1:1 + p.index_width]
        next_index = marks[0][1:1 + p.index_width]

        # the sum of the step just before is not in the memory yet
        again = Signal(reset_less=True)
        m.d.sync += again.eq(valids[1] & (index == next_index))
        newest = Signal(word.width, reset_less=True)
        start = marks[1][0]
        old = wire(m, Mux(start, 0, Mux(again, newest, sums.read_data)), "old")
        apart = marks[1][-1] if p.both else Const(0)
        carry = term.carries[0] if term.carries else Const(0)
        new = [_sum(old[:width].as_signed(), term.value, carry, width, apart, p.both)]
        if p.fp16:
            new.append(old[width:width + 3] | flags)
        if p.both:
            new.append(apart)
        m.d.sync += newest.eq(Cat(*new))
        for ram in (sums, read_sums):
            m.d.comb += [ram.write_en.eq(valids[1]), ram.write_addr.eq(index), ram.write_data.eq(Cat(*new))]
        m.d.comb += [sums.read_en.eq(1), sums.read_addr.eq(next_index),
                     read_sums.read_en.eq(self.read_en), read_sums.read_addr.eq(self.read_index)]
        self._fold(m, read_sums.read_data)

    def _fold(self, m: Module, word: Value) -> None:
        """What a word of the memory says, into the output register."""
        p = self.p
        value = word[:p.acc_width].as_signed()
        if p.both:
            integers = p.integer_width
            total = word[:integers].as_signed() + word[SPLIT:SPLIT + integers].as_signed()
            value = Mux(word[-1], total[:integers].as_signed(), value)
        arrived = Signal()
        m.d.sync += arrived.eq(self.read_en)
        with m.If(arrived):
            m.d.sync += self.sum.value.eq(value)
            if p.fp16:
                flags = word[p.acc_width:p.acc_width + 3]
                m.d.sync += [self.sum.positive.eq(flags[0]), self.sum.negative.eq(flags[1]),
                             self.sum.nan.eq(flags[2])]


class _Term:
    """A number, and carries that are still to be added to it."""

    def __init__(self, value: Value, carries: list[Value]) -> None:
        self.value, self.carries = value, carries


def _registered(m: Module, term: _Term, name: str) -> _Term:
    moved: list[Value] = []
    for k, part in enumerate([term.value, *term.carries]):
        register = Signal(part.shape(), name=f"{name}_{k}", reset_less=True)
        m.d.sync += register.eq(part)
        moved.append(register)
    return _Term(moved[0], moved[1:])


def _sum(a: Value, b: Value, carry: Value, width: int, apart: Value, split: bool) -> Value:
    """``a + b + carry``, modulo 2^width; in two parts if ``split`` and ``apart``, else in one."""
    # the carry in is that of a bit below, and no carry gets past a bit that is 0 + 0
    a, b = _extend(a, width), _extend(b, width)
    if split:
        a = Cat(1, a[:SPLIT], ~apart, a[SPLIT:])
        b = Cat(carry, b[:SPLIT], 0, b[SPLIT:])
        total = (a + b)[:width + 2]
        return Cat(total[1:SPLIT + 1], total[SPLIT + 2:]).as_signed()
    if isinstance(carry, Const):
        return (a + b)[:width].as_signed()
    return (Cat(1, a) + Cat(carry, b))[1:width + 1].as_signed()


def _extend(value: Value, width: int) -> Value:
    return Cat(value, value[-1].replicate(width - len(value)))
