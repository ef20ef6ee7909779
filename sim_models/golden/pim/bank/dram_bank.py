"""Golden model of a DRAM bank: commands, the rules that they may break, and what it counts.

Every rule is a look at when something last happened, in absolute cycles.
"""

import dataclasses

import numpy as np

from sim_models.params.pim.bank.dram_bank import DramBankParams
from sim_models.spec.bank import DramColumnOp, DramError, DramRowOp

__all__ = ["COLUMN_OPS", "ERRORS", "ROW_OPS", "BankInputs", "DramBank"]

#: names by their codes
ROW_OPS, COLUMN_OPS, ERRORS = (tuple(c.name.lower() for c in codes) for codes in (DramRowOp, DramColumnOp, DramError))
_LONG_AGO = -(1 << 40)


@dataclasses.dataclass(frozen=True, kw_only=True)
class BankInputs:
    """What stands at the bank in a cycle; ``word`` is uint16 (lanes,)."""

    row_op: str = "none"
    row: int = 0
    column_op: str = "none"
    column_row: int = 0
    column: int = 0
    word: np.ndarray | None = None


class DramBank:
    """A bank, cycle by cycle.

    Parameters
    ----------
    p:
        Its parameters.

    Attributes
    ----------
    words: list of uint16 (lanes,), or None while nothing was written
    error: str
        Rule that was broken first.
    errors, hits, misses: int
    """

    def __init__(self, p: DramBankParams) -> None:
        self.p = p
        self.words: list[np.ndarray | None] = [None] * p.words
        self.reset()

    def reset(self) -> None:
        """Rows are closed and nothing has happened; words stay."""
        n = self.p.open_rows
        self.cycle = 0
        self.error, self.errors, self.hits, self.misses = "none", 0, 0, 0
        self._open: list[int | None] = [None] * n
        self._used = [False] * n
        #: when each of these was last, in each subarray
        self._last = {name: [_LONG_AGO] * n for name in ("activate", "precharge", "read", "write")}
        self._refreshed, self._since = _LONG_AGO, -1
        self._reads: dict[int, np.ndarray | None] = {}

    @property
    def read_valid(self) -> bool:
        """Whether a word comes out in this cycle."""
        return self.cycle in self._reads

    @property
    def read_data(self) -> np.ndarray | None:
        """The word that comes out in this cycle, None if none does or it was never written."""
        return self._reads.get(self.cycle)

    def fault(self, i: BankInputs) -> tuple[str, str]:
        """Rules that the row command and the column command would break in this cycle."""
        return self._row_fault(i), self._column_fault(i)

    def step(self, i: BankInputs) -> None:
        """One clock edge with these inputs."""
        row_fault, column_fault = self.fault(i)
        late = self.cycle - self._since == 2 * self.p.refi and not (i.row_op == "refresh" and row_fault == "none")
        for fault in (column_fault, row_fault, "refi" if late else "none"):
            if fault != "none":
                self.errors += 1
                self.error = fault if self.error == "none" else self.error
        self._reads.pop(self.cycle, None)
        if i.column_op != "none" and column_fault == "none":
            self._access(i)
        if i.row_op != "none" and row_fault == "none":
            self._move(i)
        self.cycle += 1

    def _ago(self, name: str, subarray: int) -> int:
        return self.cycle - self._last[name][subarray]

    def _row_fault(self, i: BankInputs) -> str:
        p, s = self.p, i.row % self.p.open_rows
        column_op = i.column_op if i.column_row % p.open_rows == s else "none"
        rules: list[tuple[str, bool]] = []
        if i.row_op == "activate":
            rules = [("open", self._open[s] is not None), ("rp", self._ago("precharge", s) < p.rp),
                     ("rfc", self.cycle - self._refreshed < p.rfc)]
        elif i.row_op == "precharge":
            rules = [("closed", self._open[s] != i.row), ("ras", self._ago("activate", s) < p.ras),
                     ("rtp", column_op == "read" or self._ago("read", s) < p.rtp),
                     ("wr", column_op == "write" or self._ago("write", s) < p.wr)]
        elif i.row_op == "refresh":
            rules = [("open", any(row is not None for row in self._open)),
                     ("rp", any(self._ago("precharge", k) < p.rp for k in range(p.open_rows))),
                     ("rfc", self.cycle - self._refreshed < p.rfc)]
        return next((rule for rule, broken in rules if broken), "none")

    def _column_fault(self, i: BankInputs) -> str:
        p, s = self.p, i.column_row % self.p.open_rows
        if i.column_op == "none":
            return "none"
        accessed = max(self._last["read"] + self._last["write"])
        rules = [("closed", self._open[s] != i.column_row), ("rcd", self._ago("activate", s) < p.rcd),
                 ("ccd", self.cycle - accessed < p.ccd),
                 ("wtr", i.column_op == "read" and self.cycle - max(self._last["write"]) < p.wtr)]
        return next((rule for rule, broken in rules if broken), "none")

    def _access(self, i: BankInputs) -> None:
        s, at = i.column_row % self.p.open_rows, i.column_row * self.p.columns + i.column
        if i.column_op == "read":
            self._reads[self.cycle + self.p.cl] = self.words[at]
        else:
            self.words[at] = i.word
        self._last[i.column_op][s] = self.cycle
        self.hits, self.misses = self.hits + self._used[s], self.misses + (not self._used[s])
        self._used[s] = True

    def _move(self, i: BankInputs) -> None:
        s = i.row % self.p.open_rows
        if i.row_op == "refresh":
            self._refreshed = self._since = self.cycle
            return
        self._last[i.row_op][s] = self.cycle
        self._open[s] = i.row if i.row_op == "activate" else None
        if i.row_op == "activate":
            self._used[s] = False
