"""The decorator of every bench: a test that forgot something fails."""

import functools
import gc
import inspect
import json
import warnings
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import cocotb
from cocotb.task import current_task
from cocotb.triggers import SimTimeoutError, with_timeout

from tb.common import bench_info
from tb.common.ledger import Ledger

__all__ = ["BenchFault", "background", "bench_test"]


class BenchFault(AssertionError):
    """The test itself is at fault: something is left over, pending, lost or never compared."""


def background(coro: Coroutine[Any, Any, Any], name: str | None = None) -> Any:
    """Start a task that runs until the test ends; every other task must have finished by then."""
    task = cocotb.start_soon(coro, name=name)
    if Ledger._current is not None:
        Ledger._current.endless.add(task)
    return task


def bench_test(*, timeout_us: float, idle_cycles: int = 16) -> Callable[[Any], Any]:
    """Make a cocotb test of an async function.

    Parameters
    ----------
    timeout_us:
        Simulated time after which the test fails, in microseconds (100 cycles each).
    idle_cycles:
        Cycles run after the function returned, so that an extra output has time to show.

    Notes
    -----
    The test fails when, at its end: it compared nothing; a task that was not started by
    :func:`background` is still waiting; a task raised and nobody noticed; a source has beats left; a sink has
    beats nobody took; an output stream offers a beat; a scoreboard waits for an item; a coroutine was never
    awaited.
    """
    def decorate(function: Any) -> Any:
        @functools.wraps(function)
        async def test(dut: Any, **arguments: Any) -> None:
            task = current_task()
            ledger = Ledger(task.get_name().removeprefix("Test "))
            try:
                with ledger, _unawaited(ledger), _watched_tasks(ledger):
                    await _in_time(ledger, function(dut, **arguments), timeout_us)
                    if ledger.engine is not None:
                        end = ledger.engine.cycle + idle_cycles
                        await ledger.engine.until(lambda: ledger.engine.cycle >= end)
                    _find_forgotten(ledger)
                    owed = ledger.owed()
                    if owed:
                        raise BenchFault("; ".join(owed))
            finally:
                _write_counts(ledger)
        # cocotb's own limit is for a test that hangs in its idle cycles
        return cocotb.test(timeout_time=2 * timeout_us, timeout_unit="us")(test)
    return decorate


async def _in_time(ledger: Ledger, work: Coroutine[Any, Any, None], timeout_us: float) -> None:
    """Await the test; when it takes too long, say what everybody was waiting for."""
    try:
        await with_timeout(work, timeout_us, "us")
    except SimTimeoutError:
        state = [m.state_text() for m in ledger.engine.monitors.values()] if ledger.engine else []
        reasons = "; ".join([*ledger.owed(), *state])
        raise BenchFault(f"not done after {timeout_us:g} us: {reasons}") from None


def _find_forgotten(ledger: Ledger) -> None:
    """Coroutines that never started: unreachable ones warn when collected, the others are looked up."""
    gc.collect()
    ledger.faults += [f"coroutine '{o.__qualname__}' was never awaited" for o in gc.get_objects()
                      if inspect.iscoroutine(o) and inspect.getcoroutinestate(o) == inspect.CORO_CREATED]


@contextmanager
def _unawaited(ledger: Ledger) -> Iterator[None]:
    """Turn "coroutine was never awaited", which Python only warns of, into a fault."""
    shown = warnings.showwarning

    def show(message: Any, category: Any, *rest: Any, **more: Any) -> None:
        if "was never awaited" in str(message):
            ledger.faults.append(str(message))
        shown(message, category, *rest, **more)

    # what is there already cannot be a forgotten coroutine of this test; the search at the end skips it
    gc.freeze()
    with warnings.catch_warnings():
        warnings.filterwarnings("always", message=".*was never awaited", category=RuntimeWarning)
        warnings.showwarning = show
        yield
    gc.unfreeze()


@contextmanager
def _watched_tasks(ledger: Ledger) -> Iterator[None]:
    """Keep every task that starts during the test; cocotb forgets finished ones with their exceptions."""
    from cocotb import _test_manager

    manager: Any = _test_manager._current_test
    add = manager.add_task

    def add_task(task: Any) -> None:
        ledger.tasks.append(task)
        add(task)

    manager.add_task = add_task
    try:
        yield
    finally:
        del manager.add_task


def _write_counts(ledger: Ledger) -> None:
    monitors = ledger.engine.monitors if ledger.engine is not None else {}
    line = {"test": ledger.test, "compared": ledger.compared, "difference": ledger.difference,
            "cycles": ledger.engine.cycle if ledger.engine is not None else 0,
            "transfers": {name: m.rules.transfers for name, m in monitors.items()}}
    with open(bench_info().counts, "a") as f:
        f.write(json.dumps(line) + "\n")
