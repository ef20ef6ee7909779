"""The DRAM controller breaks no rule of the banks, whatever it is asked for: proven for all cycles.

Timings are smaller here than in hardware; the text is the same.
"""

import inspect
from typing import Any

import pytest
from amaranth.hdl import Assert, Assume, Elaboratable, Module

from rtl.parts import logic
from rtl.pim.bank.dram_bank import DramBank
from rtl.pim.channel import dram_rows
from sim_models.params.pim.bank.dram_bank import DramBankParams
from sim_models.spec.bank import DramColumnOp, DramError
from tests.formal_tools import Proven, Violated, check

TIMING = {"rcd": 2, "rp": 2, "ras": 3, "ccd": 2, "cl": 3, "rtp": 2, "wr": 5, "wtr": 2, "rfc": 2, "refi": 30}


class Specification(Elaboratable):
    """The row side with a column side that wants any rows, and reads and writes at any time that it may."""

    def __init__(self, rows: Any, bank: DramBank) -> None:
        self.rows, self.bank = rows, bank
        self.inputs = [rows.current_valid, rows.current, rows.ahead_valid, rows.ahead, rows.read, rows.write]

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.rows, m.submodules.bank = rows, bank = self.rows, self.bank
        p = bank.p
        access = rows.read | rows.write
        may_access = logic.countdown(m, "access", (access, p.ccd))
        may_read = logic.countdown(m, "read", (rows.write, p.wtr))
        m.d.comb += [
            Assume(~(rows.read & rows.write)), Assume(~access | (rows.current_valid & rows.is_open & may_access)),
            Assume(~rows.read | may_read), bank.row.eq(rows.row),
        ]
        m.d.sync += bank.column.op.eq(DramColumnOp.NONE)
        with m.If(access):
            m.d.sync += [bank.column.op.eq(DramColumnOp.READ), bank.column.row.eq(rows.current)]
        with m.If(rows.write):
            m.d.sync += bank.column.op.eq(DramColumnOp.WRITE)
        m.d.comb += Assert(bank.error == DramError.NONE)
        return m


def controller(open_rows: int, *changes: tuple[str, str]) -> Specification:
    """A controller and a bank; ``changes`` are made in the text of the row side and of its waits."""
    p = DramBankParams(**TIMING, lanes=1, rows=4, columns=2, open_rows=open_rows)
    text = inspect.getsource(dram_rows) + "\n\n" + inspect.getsource(logic.countdown)   # instead of the one imported
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    scope: dict[str, Any] = {"__name__": "changed"}
    exec(compile(text, "dram_rows.py", "exec"), scope)
    return Specification(scope["DramRows"](p), DramBank(p))


@pytest.mark.parametrize("open_rows", [1, 2])
def test_no_rule_is_ever_broken(open_rows: int) -> None:
    """Not even that of refreshes in time."""
    specification = controller(open_rows)
    found = check(specification, specification.inputs)
    assert isinstance(found, Proven), found


@pytest.mark.parametrize(("old", "new"), [
    ("(activate[s], p.rcd)", "(activate[s], p.rcd - 1)"), ("(activate[s], p.ras)", "(activate[s], p.ras - 1)"),
    ("(write, p.wr)", "(write, p.wr - 1)"), ("(read, p.rtp)", "(read, p.rtp - 1)"),
    ("(refresh, p.rfc)", "(refresh, p.rfc - 1)"), ("(precharge[s], p.rp)", "(precharge[s], p.rp - 1)"),
    ("event & (after < cycles - 1)", "event"), ("may_use[current_slot] & ~due", "may_use[current_slot]"),
    (" & ~(self.current_valid & (ahead_slot == current_slot))", ""),
    ("refresh.eq(closed & ready)", "refresh.eq(closed)"), ("refresh.eq(closed & ready)", "refresh.eq(ready)"),
    ("opened[s] & may_close[s]):", "opened[s]):"), ("wrong & may_close[slot]", "wrong"),
    ("wrong & may_close[slot]", "may_close[slot]"), ("due.eq(1)", "due.eq(0)")])
def test_a_cycle_too_early_is_found(old: str, new: str) -> None:
    """The proof notices a rule that is not kept; the last rule to show is that of refreshes."""
    specification = controller(1, (old, new))
    found = check(specification, specification.inputs, frames=2 * TIMING["refi"] + 4)
    assert isinstance(found, Violated), found
