"""What a running test has done so far and what it still owes.

Comparisons, drivers, scoreboards and background tasks all report here, so that a test that forgot something
cannot pass. Outside a simulator a ledger exists as well (``with Ledger("name")``), for native benches.
"""

import collections
from collections.abc import Callable
from typing import Any, Self

__all__ = ["Ledger", "current_ledger", "note_compared"]


class Ledger:
    """The account of one test.

    Parameters
    ----------
    test:
        Name of the test.
    """

    _current: "Ledger | None" = None

    def __init__(self, test: str) -> None:
        self.test = test
        #: elements compared
        self.compared = 0
        #: rule violations and other faults that somebody might have swallowed
        self.faults: list[str] = []
        #: each returns what it still waits for, or None; asked when the test returns
        self.debts: list[Callable[[], str | None]] = []
        #: tasks that run until the test ends; all others must have finished by then
        self.endless: set[Any] = set()
        #: every task that was started during the test
        self.tasks: list[Any] = []
        #: the per-cycle machinery of the device under test, once it is started
        self.engine: Any = None
        #: where the first difference was: cycle of the test, nanoseconds of the simulation
        self.difference: dict[str, Any] | None = None
        self._taken: collections.deque[tuple[Any, Any]] = collections.deque(maxlen=64)

    def __enter__(self) -> Self:
        if Ledger._current is not None:
            raise RuntimeError(f"test {Ledger._current.test} is still running")
        Ledger._current = self
        return self

    def __exit__(self, *exc: object) -> None:
        Ledger._current = None

    def came(self, values: Any, stamps: Any) -> None:
        """Remember in which cycle each element of an array came from the device (its first axis)."""
        self._taken.append((values, stamps))

    def moment(self, values: Any, index: int) -> str:
        """The cycle and time of a difference in ``values[index]``, in words: when it came, else now."""
        if self.engine is None or not self.engine.cycle:
            return ""
        stamps = next((stamps for known, stamps in self._taken if known is values), None)
        cycle = self.engine.cycle if stamps is None else int(stamps[index])
        time_ns = self.engine.time_ns(cycle)
        if self.difference is None:
            self.difference = {"cycle": cycle, "ns": time_ns}
        return f"; {'compared' if stamps is None else 'came'} in cycle {cycle} of the test, at {time_ns:g} ns"

    def owed(self) -> list[str]:
        """Everything that keeps the test from passing, in words."""
        found = list(dict.fromkeys(self.faults))
        found += [text for debt in self.debts if (text := debt())]
        for task in self.tasks:
            if not task.done():
                if task not in self.endless:
                    found.append(f"task {task.get_name()} is still waiting at the end of the test")
            elif not task.cancelled() and (error := task.exception()) is not None:
                found.append(f"task {task.get_name()} raised {type(error).__name__}: {error}")
        if self.compared == 0:
            found.append("the test compared nothing")
        return found


def current_ledger() -> Ledger | None:
    """The running test's ledger, or None outside of tests."""
    return Ledger._current


def note_compared(elements: int) -> None:
    """Add to the running test's count of compared elements."""
    if Ledger._current is not None:
        Ledger._current.compared += elements
