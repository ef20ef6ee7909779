"""Exact comparison that says where it differs, and a scoreboard that knows what is missing."""

import collections
from typing import Any

import numpy as np

from tb.common.ledger import current_ledger, note_compared

__all__ = ["Mismatch", "Scoreboard", "compare"]


class Mismatch(AssertionError):
    """The device and the reference differ."""


def compare(got: Any, want: Any, name: str) -> int:
    """Compare bit for bit.

    Parameters
    ----------
    got, want:
        Arrays, numbers or nested sequences of one shape. Integers are compared by value whatever their
        width; floats by bit pattern, so that NaN equals only the same NaN and +0 differs from -0.
    name:
        What is compared, for the message.

    Returns
    -------
    int
        Elements compared.

    Raises
    ------
    Mismatch
        Shapes, kinds or elements differ, or there is nothing to compare. The message has the first
        differing element's coordinates, both values and hex codes, how many differ, and in a simulation the cycle
        and time at which that element came, where a sink took it, else of the comparison.
    """
    g, w = np.asarray(got), np.asarray(want)
    if g.shape != w.shape:
        raise Mismatch(f"{name}: shape {g.shape} came, {w.shape} was wanted")
    if g.size == 0:
        raise Mismatch(f"{name}: nothing to compare (shape {g.shape})")
    if not (g.dtype.kind in "biufO" and w.dtype.kind in "biufO"):
        raise Mismatch(f"{name}: numbers were wanted, {g.dtype} came")
    if (g.dtype.kind == "f") != (w.dtype.kind == "f") or (g.dtype.kind == "f" and g.dtype != w.dtype):
        raise Mismatch(f"{name}: {g.dtype} came, {w.dtype} was wanted; float and integer codes are not "
                       "compared with each other")
    note_compared(g.size)
    wrong = _codes(g) != _codes(w)
    if wrong.any():
        ledger = current_ledger()
        first = np.argwhere(wrong)[0]
        moment = ledger.moment(got, int(first[0]) if first.size else 0) if ledger else ""
        raise Mismatch(_explain(g, w, wrong, name) + moment)
    return g.size


def _codes(a: np.ndarray) -> np.ndarray:
    if a.dtype.kind == "f":
        return np.ascontiguousarray(a).view(f"u{a.dtype.itemsize}")
    # int64 against uint64 would be compared as float64: go through Python integers there
    return a.astype(object) if a.dtype == np.uint64 else a


def _explain(g: np.ndarray, w: np.ndarray, wrong: np.ndarray, name: str) -> str:
    flat = int(np.flatnonzero(wrong)[0])
    at = ", ".join(str(int(i)) for i in np.unravel_index(flat, g.shape))
    where = f"[{at}]" + (f" (element {flat})" if g.ndim > 1 else "")
    return (f"{name}{where if g.ndim else ''}: got {_shown(g.flat[flat], g, w)}, "
            f"want {_shown(w.flat[flat], g, w)}; "
            f"{int(wrong.sum())} of {g.size} differ, shape {g.shape}")


def _shown(value: Any, g: np.ndarray, w: np.ndarray) -> str:
    if isinstance(value, np.floating):
        bits = np.asarray(value).view(f"u{value.dtype.itemsize}")
        return f"{value!s} (0x{int(bits):0{2 * value.dtype.itemsize}x})"
    number = int(value)
    largest = max(abs(int(a.flat[i])) for a in (g, w) for i in (a.argmin(), a.argmax()))
    digits = next(d for d in (2, 4, 8, 16, 32, 64, 1 << 16) if largest < 1 << (4 * d))
    return f"{number} (0x{number & ((1 << 4 * digits) - 1):0{digits}x})"


class Scoreboard:
    """Expected items in order; what comes is compared at once.

    Parameters
    ----------
    name:
        What is expected, for messages.

    Notes
    -----
    A missing item is a fault when the test returns, an extra one when it comes.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        #: items received
        self.received = 0
        self._pending: collections.deque[Any] = collections.deque()
        ledger = current_ledger()
        if ledger is not None:
            ledger.debts.append(self._debt)

    @property
    def pending(self) -> int:
        """Expected items that did not come yet."""
        return len(self._pending)

    def expect(self, *items: Any) -> None:
        """Append expected items: numbers, arrays, or dictionaries of them (only named fields compared)."""
        self._pending.extend(items)

    def got(self, item: Any) -> None:
        """Compare one received item with the oldest expected one.

        Raises
        ------
        Mismatch
            Nothing was expected, or the item differs.
        """
        try:
            if not self._pending:
                raise Mismatch(f"{self.name}: extra item {self.received}: {item}")
            want = self._pending.popleft()
            label = f"{self.name} item {self.received}"
            self.received += 1
            if isinstance(want, dict):
                for field, value in want.items():
                    compare(item[field], value, f"{label} {field}")
            else:
                compare(item, want, label)
        except Mismatch as error:
            ledger = current_ledger()
            if ledger is not None:
                ledger.faults.append(str(error))
            raise

    def forget(self) -> None:
        """Drop what is expected, after a reset of the device."""
        self._pending.clear()

    def _debt(self) -> str | None:
        if not self._pending:
            return None
        return f"{self.name}: {len(self._pending)} expected items never came, first: {self._pending[0]}"
