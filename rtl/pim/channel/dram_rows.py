"""Opens and closes the rows of banks in lockstep, ahead of their use where that is possible, and refreshes them.

The column side says which row it works on (``current``) and which one comes next (``ahead``). The current row is
opened first; the next one is opened meanwhile if it has a row buffer of its own (``open_rows`` = 2, and one of the
rows is even, the other odd). Rows stay open until another one wants their place, or a refresh is due.

A refresh becomes due every ``refi`` cycles from reset on. From then on no word is read or written and no row opened;
rows are closed as soon as their timing allows, then comes REFRESH.

Every command is issued in the first cycle in which the timing rules allow it. Latency: a command leaves one cycle
after the state that it follows from, like the column commands it goes with.
"""

from typing import Any

from amaranth.hdl import Array, Const, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from rtl.parts.logic import all_of, any_of, countdown
from rtl.pim.bank.layouts import dram_row
from rtl.unit import Unit
from sim_models.params.pim.bank.dram_bank import DramBankParams
from sim_models.spec.bank import DramRowOp

__all__ = ["DramRows"]


class DramRows(Unit):
    """Row side of a DRAM controller.

    Members
    -------
    current_valid: In(1), current: In(row), ahead_valid: In(1), ahead: In(row)
        Rows that are wanted.
    read, write: In(1)
        A word of the current row is read or written in this cycle; only while ``is_open``.
    is_open: Out(1)
        A word of the current row may be read or written.
    fresh: Out(1)
        None was since it was opened.
    row: Out(dram_row)
        To the banks.
    """

    block = "dram_rows"

    current_valid: Signal
    current: Signal
    ahead_valid: Signal
    ahead: Signal
    read: Signal
    write: Signal
    is_open: Signal
    fresh: Signal
    row: Any

    def __init__(self, params: DramBankParams | None = None) -> None:
        p = params or DramBankParams()
        self.p = p
        super().__init__(p, {
            "current_valid": In(1), "current": In(range(p.rows)), "ahead_valid": In(1), "ahead": In(range(p.rows)),
            "read": In(1), "write": In(1), "is_open": Out(1), "fresh": Out(1), "row": Out(dram_row(p)),
        })

    def body(self, platform: Any) -> Module:
        m = Module()
        p, slots = self.p, range(self.p.open_rows)
        current_slot, ahead_slot = (row[0] if p.open_rows > 1 else Const(0) for row in (self.current, self.ahead))

        # A refresh that is due.
        timer, due, refresh = Signal(range(p.refi), init=p.refi - 1), Signal(), Signal()
        m.d.sync += timer.eq(Mux(timer == 0, p.refi - 1, timer - 1))
        with m.If(timer == 0):
            m.d.sync += due.eq(1)
        with m.Elif(refresh):
            m.d.sync += due.eq(0)

        # What is open, and when it may be closed, opened and used.
        opened = Array(Signal(name=f"opened_{s}") for s in slots)
        rows = Array(Signal(range(p.rows), name=f"row_{s}") for s in slots)
        used = Array(Signal(name=f"used_{s}") for s in slots)
        activate = Array(Signal(name=f"activate_{s}") for s in slots)
        precharge = Array(Signal(name=f"precharge_{s}") for s in slots)
        wanted_rows = [Mux(self.current_valid & (current_slot == s), self.current, self.ahead) for s in slots]
        may_use, may_close, may_open = ([] for _ in range(3))
        for s in slots:
            read, write = (event & (current_slot == s) for event in (self.read, self.write))
            may_use.append(countdown(m, f"use_{s}", (activate[s], p.rcd)))
            may_close.append(countdown(m, f"close_{s}", (activate[s], p.ras), (write, p.wr), (read, p.rtp)))
            may_open.append(countdown(m, f"open_{s}", (refresh, p.rfc), (precharge[s], p.rp)))
            with m.If(precharge[s]):
                m.d.sync += opened[s].eq(0)
            with m.If(activate[s]):
                m.d.sync += [opened[s].eq(1), used[s].eq(0), rows[s].eq(wanted_rows[s])]
            with m.If(read | write):
                m.d.sync += used[s].eq(1)
        may_use, may_close, may_open = (Array(may) for may in (may_use, may_close, may_open))
        there = opened[current_slot] & (rows[current_slot] == self.current)
        m.d.comb += [self.is_open.eq(there & may_use[current_slot] & ~due), self.fresh.eq(~used[current_slot])]

        # One row command a cycle: those of a refresh, else for the current row, else for the next one.
        ahead = self.ahead_valid & ~(self.current_valid & (ahead_slot == current_slot))
        closed, ready = ~any_of(opened), all_of(may_open)
        with m.If(due):
            for s in reversed(slots):
                with m.If(opened[s] & may_close[s]):
                    m.d.comb += [precharge[k].eq(k == s) for k in slots]
            m.d.comb += refresh.eq(closed & ready)
        with m.Else():
            for wanted, row, slot in ((ahead, self.ahead, ahead_slot),
                                      (self.current_valid, self.current, current_slot)):
                wrong = opened[slot] & (rows[slot] != row)
                acts = wanted & Mux(opened[slot], wrong & may_close[slot], may_open[slot])
                with m.If(acts):
                    m.d.comb += [precharge[k].eq(opened[k] & (slot == k)) for k in slots]
                    m.d.comb += [activate[k].eq(~opened[k] & (slot == k)) for k in slots]

        # It leaves in the next cycle.
        m.d.sync += self.row.op.eq(Mux(refresh, DramRowOp.REFRESH, DramRowOp.NONE))
        for s in slots:
            with m.If(precharge[s]):
                m.d.sync += [self.row.op.eq(DramRowOp.PRECHARGE), self.row.row.eq(rows[s])]
            with m.If(activate[s]):
                m.d.sync += [self.row.op.eq(DramRowOp.ACTIVATE), self.row.row.eq(wanted_rows[s])]
        return m
