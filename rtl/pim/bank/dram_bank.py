"""A DRAM bank: words, rows that must be opened first, and a checker of every timing rule.

For simulation: the array of words is as large as a bank and its row buffers are not modelled as storage, so this is
not meant for synthesis. It stands where the memory is, and says whether what stands around it treats it well.

A row command and a column command may come in the same cycle (HBM has a bus for each); the column command counts as
the earlier one. With ``open_rows`` = 2 the bank has two subarrays with a row buffer each, even rows in one and odd
rows in the other, which open and close independently (subarray-level parallelism); both share the column path. A
command that breaks a rule is not carried out; it is counted, and the first one's rule stays in ``error``.

Read data comes ``cl`` cycles after READ. Throughput: a word every ``ccd`` cycles, words need not follow each other.
A read or write is a miss if it is the first of its row since the row was activated, otherwise a hit.
"""

from typing import Any

from amaranth.hdl import Array, Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from rtl.parts.logic import all_of, any_of
from rtl.pim.bank.layouts import dram_column, dram_row
from rtl.unit import Unit
from sim_models.params.pim.bank.dram_bank import DramBankParams
from sim_models.spec.bank import DramColumnOp, DramError, DramRowOp

__all__ = ["DramBank"]


class DramBank(Unit):
    """Behavioural bank.

    Members
    -------
    row: In(dram_row)
        ACTIVATE opens, PRECHARGE closes ``row``; REFRESH needs all rows closed.
    column: In(dram_column)
        READ or WRITE of a word of an open row.
    write_data: In(word)
        The word of a WRITE.
    read_data: Out(word)
        The word of the READ ``cl`` cycles before.
    read_valid: Out(1)
        There was a READ ``cl`` cycles before.
    error: Out(DramError)
        Rule that was broken first since reset.
    errors: Out(16)
        Commands that broke a rule, and refreshes that did not come.
    hits: Out(32)
        Reads and writes of a row that was accessed since it was opened.
    misses: Out(32)
        Reads and writes that are the first of their row since it was opened.
    """

    block = "dram_bank"

    row: data.View
    column: data.View
    write_data: Signal
    read_data: Signal
    read_valid: Signal
    error: Any
    errors: Signal
    hits: Signal
    misses: Signal

    def __init__(self, params: DramBankParams | None = None) -> None:
        p = params or DramBankParams()
        self.p = p
        super().__init__(p, {
            "row": In(dram_row(p)), "column": In(dram_column(p)), "write_data": In(p.word_width),
            "read_data": Out(p.word_width), "read_valid": Out(1),
            "error": Out(DramError), "errors": Out(16), "hits": Out(32), "misses": Out(32),
        })

    def answers(self) -> tuple[tuple[str, str, int], ...]:
        return (("column", "read_data", self.p.cl),)

    def body(self, platform: Any) -> Module:
        m = Module()
        p = self.p
        slots = p.open_rows
        op, column_op = self.row.op, self.column.op
        read, write = column_op == DramColumnOp.READ, column_op == DramColumnOp.WRITE
        row_slot = self.row.row[:slots - 1] if slots > 1 else 0
        column_slot = self.column.row[:slots - 1] if slots > 1 else 0

        # What is open, and whether it was read or written since.
        is_open = Array(Signal(name=f"open_{s}") for s in range(slots))
        open_row = Array(Signal(range(p.rows), name=f"row_{s}") for s in range(slots))
        used = Array(Signal(name=f"used_{s}") for s in range(slots))

        # Commands that are carried out, by slot.
        row_good, column_good = Signal(), Signal()
        events: dict[str, list[Signal]] = {}
        for name, slot, condition in (
                ("activate", row_slot, row_good & (op == DramRowOp.ACTIVATE)),
                ("precharge", row_slot, row_good & (op == DramRowOp.PRECHARGE)),
                ("read", column_slot, column_good & read), ("write", column_slot, column_good & write)):
            events[name] = [Signal(name=f"{name}_{s}") for s in range(slots)]
            m.d.comb += [events[name][s].eq(condition & (slot == s)) for s in range(slots)]
        refresh = Signal()
        m.d.comb += refresh.eq(row_good & (op == DramRowOp.REFRESH))

        waited = {name: Array(_waited(m, event, cycles, f"{rule}_{s}") for s, event in enumerate(events[name]))
                  for rule, name, cycles in (("rcd", "activate", p.rcd), ("rp", "precharge", p.rp),
                                             ("rtp", "read", p.rtp), ("wr", "write", p.wr))}
        ras = Array(_waited(m, event, p.ras, f"ras_{s}") for s, event in enumerate(events["activate"]))
        ccd = _waited(m, column_good, p.ccd, "ccd")
        wtr = _waited(m, column_good & write, p.wtr, "wtr")
        rfc = _waited(m, refresh, p.rfc, "rfc")

        # A READ or WRITE of this cycle counts as earlier than a PRECHARGE.
        touched = (column_op != DramColumnOp.NONE) & (column_slot == row_slot)
        row_open = is_open[row_slot] & (open_row[row_slot] == self.row.row)
        column_open = is_open[column_slot] & (open_row[column_slot] == self.column.row)
        row_error, column_error = Signal(DramError), Signal(DramError)
        with m.Switch(op):
            with m.Case(DramRowOp.ACTIVATE):
                _first(m, row_error, ((is_open[row_slot], DramError.OPEN),
                                      (~waited["precharge"][row_slot], DramError.RP), (~rfc, DramError.RFC)))
            with m.Case(DramRowOp.PRECHARGE):
                _first(m, row_error, ((~row_open, DramError.CLOSED), (~ras[row_slot], DramError.RAS),
                                      (~waited["read"][row_slot] | (touched & read), DramError.RTP),
                                      (~waited["write"][row_slot] | (touched & write), DramError.WR)))
            with m.Case(DramRowOp.REFRESH):
                _first(m, row_error, ((any_of(is_open), DramError.OPEN),
                                      (~all_of(waited["precharge"]), DramError.RP), (~rfc, DramError.RFC)))
        with m.If(read | write):
            _first(m, column_error, ((~column_open, DramError.CLOSED),
                                     (~waited["activate"][column_slot], DramError.RCD),
                                     (~ccd, DramError.CCD), (read & ~wtr, DramError.WTR)))
        m.d.comb += [row_good.eq((op != DramRowOp.NONE) & (row_error == DramError.NONE)),
                     column_good.eq((read | write) & (column_error == DramError.NONE))]

        for s in range(slots):
            with m.If(events["activate"][s]):
                m.d.sync += [is_open[s].eq(1), open_row[s].eq(self.row.row), used[s].eq(0)]
            with m.If(events["precharge"][s]):
                m.d.sync += is_open[s].eq(0)
            with m.If(events["read"][s] | events["write"][s]):
                m.d.sync += used[s].eq(1)
        with m.If(column_good):
            m.d.sync += [self.hits.eq(self.hits + used[column_slot]),
                         self.misses.eq(self.misses + ~used[column_slot])]

        self._words(m, events)
        self._report(m, refresh, row_error, column_error)
        return m

    def _words(self, m: Module, events: dict[str, list[Signal]]) -> None:
        """The array, and the way of a word out of it."""
        p = self.p
        m.submodules.array = array = Memory(shape=p.word_width, depth=p.words, init=[])
        write, read = array.write_port(), array.read_port()
        address = Signal(range(p.words))
        m.d.comb += [
            address.eq(self.column.row * p.columns + self.column.column),
            write.addr.eq(address), write.data.eq(self.write_data), write.en.eq(any_of(events["write"])),
            read.addr.eq(address), read.en.eq(any_of(events["read"])),
        ]
        valid: Any = Signal()
        m.d.sync += valid.eq(read.en)
        word: Any = read.data
        for stage in range(2, p.cl + 1):
            next_valid, next_word = Signal(name=f"valid_{stage}"), Signal(p.word_width, name=f"word_{stage}")
            m.d.sync += [next_valid.eq(valid), next_word.eq(word)]
            valid, word = next_valid, next_word
        m.d.comb += [self.read_valid.eq(valid), self.read_data.eq(word)]

    def _report(self, m: Module, refresh: Signal, row_error: Any, column_error: Any) -> None:
        """Errors of this cycle; the rows lose their charge when no refresh comes for two intervals."""
        p = self.p
        unrefreshed = Signal(range(2 * p.refi + 1))
        late = Signal()
        m.d.comb += late.eq(unrefreshed == 2 * p.refi - 1)
        with m.If(refresh):
            m.d.sync += unrefreshed.eq(0)
        with m.Elif(unrefreshed != 2 * p.refi):
            m.d.sync += unrefreshed.eq(unrefreshed + 1)
        found = Signal(range(4))
        m.d.comb += found.eq((row_error != DramError.NONE) + (column_error != DramError.NONE) + (late & ~refresh))
        with m.If(found != 0):
            m.d.sync += self.errors.eq(Mux(self.errors > 0xFFFF - 3, self.errors, self.errors + found))
            with m.If(self.error == DramError.NONE):
                m.d.sync += self.error.eq(Mux(column_error != DramError.NONE, column_error,
                                              Mux(row_error != DramError.NONE, row_error, DramError.REFI)))


def _waited(m: Module, event: Any, cycles: int, name: str) -> Signal:
    """Whether at least ``cycles`` cycles passed since ``event``, or it was never."""
    since = Signal(range(cycles + 1), init=cycles, name=f"since_{name}")
    waited = Signal(name=f"waited_{name}")
    m.d.comb += waited.eq(since == cycles)
    with m.If(event):
        m.d.sync += since.eq(1)
    with m.Elif(~waited):
        m.d.sync += since.eq(since + 1)
    return waited


def _first(m: Module, error: Any, rules: Any) -> None:
    """The first rule of those that are broken."""
    for broken, rule in reversed(rules):
        with m.If(broken):
            m.d.comb += error.eq(rule)
