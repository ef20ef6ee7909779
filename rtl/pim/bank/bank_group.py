"""A bank group: four banks with their processing elements, which all do the same at the same time.

::

    row, column, write_data --> bank 0..3 --> row word --+
    words (from the global buffer) ----------------------+--> processing element 0..3 --> select --> sum

A READ goes to all banks, and ``cl`` cycles later its word meets ``words`` in the processing element, as ``step``
says. A WRITE goes to the banks in ``write_banks``.

Latency: ``cl`` cycles from READ to step, then as for `bank_pe`. Throughput: a word of each bank every ``ccd`` cycles.
"""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from rtl.pim.bank.bank_pe import BankPE
from rtl.pim.bank.dram_bank import DramBank
from rtl.pim.bank.layouts import dram_column, dram_row, exact_sum, group_step
from rtl.unit import Unit
from sim_models.params.pim.bank.bank_group import BankGroupParams
from sim_models.spec.bank import DramColumnOp, DramError

__all__ = ["BANKS", "BankGroup"]

#: banks of a group
BANKS = 4


class BankGroup(Unit):
    """Four banks and their processing elements.

    Members
    -------
    row: In(dram_row)
        Command to the rows of all four banks; see `dram_bank`.
    column: In(dram_column)
        Command to a word of all four banks.
    write_data: In(word)
        The word of a WRITE.
    write_banks: In(4)
        The banks that a WRITE is for, a bit each.
    step: In(group_step)
        What the processing elements do, ``cl`` cycles after READ.
    words: In(4 words)
        Words of the global buffer, by bank, with ``step``.
    read_en: In(1)
        An accumulator is read in all processing elements.
    read_index: In(range(accumulators))
        Its number.
    which: In(range(4))
        The bank whose sum is wanted, at the time when the sums come.
    sum: Out(exact_sum)
        The sum of bank ``which``.
    error: Out(DramError)
        The first bank's that has one; never happens under a correct controller.
    """

    block = "bank_group"

    row: Any
    column: Any
    write_data: Signal
    write_banks: Signal
    step: Any
    words: Any
    read_en: Signal
    read_index: Signal
    which: Signal
    sum: Any
    error: Any

    def __init__(self, params: BankGroupParams | None = None) -> None:
        p = params or BankGroupParams()
        self.p = p
        super().__init__(p, {
            "row": In(dram_row(p)), "column": In(dram_column(p)), "write_data": In(p.word_width),
            "write_banks": In(BANKS), "step": In(group_step(p)),
            "words": In(data.ArrayLayout(p.word_width, BANKS)),
            "read_en": In(1), "read_index": In(range(p.accumulators)), "which": In(range(BANKS)),
            "sum": Out(exact_sum(p)), "error": Out(DramError),
        })

    def answers(self) -> tuple[tuple[str, str, int], ...]:
        return (("read_index", "sum", self.p.pe.read_latency),)

    def body(self, platform: Any) -> Module:
        m = Module()
        p = self.p
        sums = Signal(data.ArrayLayout(exact_sum(p), BANKS))
        errors = Signal(BANKS)
        for b in range(BANKS):
            m.submodules[f"bank_{b}"] = bank = DramBank(p.bank)
            m.submodules[f"pe_{b}"] = pe = BankPE(p.pe)
            meant = (self.column.op != DramColumnOp.WRITE) | self.write_banks[b]
            m.d.comb += [
                bank.row.eq(self.row), bank.write_data.eq(self.write_data),
                bank.column.eq(self.column), bank.column.op.eq(Mux(meant, self.column.op, DramColumnOp.NONE)),
                pe.step.valid.eq(self.step.valid), pe.step.first.eq(self.step.first),
                pe.step.index.eq(self.step.index), pe.step.row.eq(bank.read_data), pe.step.other.eq(self.words[b]),
                pe.read_en.eq(self.read_en), pe.read_index.eq(self.read_index), sums[b].eq(pe.sum),
            ]
            if p.both:
                m.d.comb += pe.step.int8.eq(self.step.int8)
            with m.If((bank.error != DramError.NONE) & ~errors[:b].any()):
                m.d.comb += self.error.eq(bank.error)
            m.d.comb += errors[b].eq(bank.error != DramError.NONE)
        m.d.comb += self.sum.eq(sums[self.which])
        return m
