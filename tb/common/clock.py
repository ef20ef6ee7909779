"""Clock, reset and the one per-cycle loop that all stream drivers and monitors share.

Everything is sampled at the rising edge, before registers move, and driven right after it, so nothing
depends on the order of tasks. All inputs have a value before the first edge and reset is high from the
start; a driver looks at the level of reset each cycle and needs no edge of it.
"""

import ctypes
import random
from collections.abc import Callable
from typing import Any, Protocol

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import Event, FallingEdge, RisingEdge, Timer
from cocotb.utils import get_sim_time

from tb.common import bench_info
from tb.common.ledger import current_ledger
from tb.common.poison import poison_bits
from tb.common.rules import RuleViolation, StreamRules

__all__ = ["Engine", "Monitor", "cycles", "engine", "reset", "rng", "start"]

#: clock period
PERIOD_NS = 10
#: one cycle in so many is probed for valid following ready
PROBE_EVERY = 8


#: a step of the simulation, 1 ps
_STEP_NS = 1e-3


def _open_window(began: int) -> None:
    """Let a waveform with a window record those cycles of a test that begins now."""
    window = bench_info().window
    if window is not None:
        first, last = window
        step = round(PERIOD_NS / _STEP_NS)
        record = ctypes.CDLL(None).waves_window
        record.argtypes = [ctypes.c_uint64, ctypes.c_uint64]
        record(began + (first - 1) * step, min(began + last * step, (1 << 64) - 1))


class Agent(Protocol):
    """A driver that the engine calls once a cycle."""

    def update(self, in_reset: bool) -> None:
        """Drive the next cycle, after all streams were sampled."""
        ...

    def flush(self) -> None:
        """Forget everything, because the device is being reset."""
        ...


def rng() -> np.random.Generator:
    """A generator seeded from the run's seed and the test's name; ``random`` is seeded alike.

    Call it once per test: every call starts the same sequence.
    """
    random.seed(cocotb.RANDOM_SEED)
    return np.random.default_rng(cocotb.RANDOM_SEED)


def _resolved(handle: Any) -> int | None:
    try:
        return int(handle.value)
    except ValueError:
        return None


class Monitor:
    """Watches one stream of the device: rules, transfers and their cycles.

    Attributes
    ----------
    payloads: list[int]
        Transferred payloads, packed.
    stamps: list[int]
        Cycle of each transfer.
    """

    def __init__(self, dut: Any, name: str, direction: str, bits: int) -> None:
        self.name, self.direction, self.bits = name, direction, bits
        self.valid = getattr(dut, f"{name}__valid", None)
        self.ready = getattr(dut, f"{name}__ready", None)
        self.payload = getattr(dut, f"{name}__payload", None)
        self.rules = StreamRules(name, self.valid is None)
        self.payloads: list[int] = []
        self.stamps: list[int] = []
        #: whether the last edge saw valid, and a transfer
        self.offered = False
        self.moved = False

    def sample(self, cycle: int, in_reset: bool) -> None:
        """Look at the stream at a rising edge."""
        valid = 1 if self.valid is None else _resolved(self.valid)
        ready = 1 if self.ready is None else _resolved(self.ready)
        payload = 0
        if valid and self.payload is not None:
            payload = _resolved(self.payload)
        self.moved = self.rules.step(cycle, valid, ready, payload, in_reset)
        self.offered = bool(valid)
        if self.moved:
            assert payload is not None
            self.payloads.append(payload)
            self.stamps.append(cycle)

    def state(self) -> tuple[int, int]:
        """(valid, payload) now."""
        return (1 if self.valid is None else int(self.valid.value),
                0 if self.payload is None else int(self.payload.value))

    def state_text(self) -> str:
        """Where the stream stands, for a test that hangs."""
        last = f", the last in cycle {self.stamps[-1]}" if self.stamps else ""
        ready = 1 if self.ready is None else self.ready.value
        return (f"{self.name} made {self.rules.transfers} transfers{last}, "
                f"valid {self.state()[0]}, ready {int(ready)}")

    def debt(self) -> str | None:
        """A beat that the device still offers and nobody takes."""
        if self.direction == "out" and self.valid is not None and self.offered and not self.moved:
            return f"{self.name} still offers a beat that nobody took"
        return None


class Engine:
    """Clock, reset, monitors and drivers of one device under test."""

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        #: rising edges since the start
        self.cycle = 0
        self.in_reset = True
        self._began = get_sim_time("step")
        self.monitors: dict[str, Monitor] = {}
        self.agents: list[Agent] = []
        self._waiters: list[tuple[Callable[[], bool], Event]] = []
        self._gen = np.random.default_rng([cocotb.RANDOM_SEED, 1])
        self.inputs = [p for p in bench_info().ports if p.direction == "in"]
        widths = {p.name: p.width for p in bench_info().ports}
        for port in bench_info().ports:
            stem, _, kind = port.name.rpartition("__")
            if stem and stem not in self.monitors and kind in ("valid", "ready"):
                direction = port.direction if kind == "valid" else "out" if port.direction == "in" else "in"
                self.monitors[stem] = Monitor(dut, stem, direction, widths.get(f"{stem}__payload", 0))

    def begin(self, values: dict[str, int]) -> None:
        """Give every input a value, then start the clock and the loop."""
        unknown = set(values) - {p.name for p in self.inputs}
        if unknown:
            raise ValueError(f"inputs of the device were wanted ({', '.join(p.name for p in self.inputs)}), "
                             f"not {', '.join(sorted(unknown))}")
        for port in self.inputs:
            idle = poison_bits(port.width) if port.name.endswith("__payload") else 0
            getattr(self.dut, port.name).value = values.get(port.name, idle)
        self.dut.rst.value = 1
        _open_window(self._began)
        clock = Clock(self.dut.clk, PERIOD_NS, "ns").start(start_high=False)
        loop = cocotb.start_soon(self._loop(), name="engine")
        ledger = current_ledger()
        if ledger is not None:
            ledger.endless.update((clock, loop))
            ledger.debts += [m.debt for m in self.monitors.values()]

    def time_ns(self, cycle: int) -> float:
        """Simulated time of the rising edge that ends a cycle, as a waveform shows it."""
        return self._began * _STEP_NS + PERIOD_NS * cycle - PERIOD_NS / 2

    async def _loop(self) -> None:
        edge, fall = RisingEdge(self.dut.clk), FallingEdge(self.dut.clk)
        probed = [m for m in self.monitors.values() if m.direction == "out" and m.ready is not None]
        while True:
            await edge
            self.cycle += 1
            self.in_reset = bool(int(self.dut.rst.value))
            try:
                for monitor in self.monitors.values():
                    monitor.sample(self.cycle, self.in_reset)
                for agent in self.agents:
                    agent.update(self.in_reset)
            except AssertionError as error:
                self._fault(error)
                raise
            if self._waiters:
                self._wake()
            if probed and not self.in_reset and self._gen.integers(PROBE_EVERY) == 0:
                await fall
                await self._probe(probed[int(self._gen.integers(len(probed)))])

    async def _probe(self, monitor: Monitor) -> None:
        assert monitor.ready is not None
        settle = Timer(PERIOD_NS / 5, "ns")
        ready = int(monitor.ready.value)
        before = monitor.state()
        monitor.ready.value = 1 - ready
        await settle
        after = monitor.state()
        monitor.ready.value = ready
        try:
            monitor.rules.probe(self.cycle, before, after)
        except RuleViolation as error:
            self._fault(error)
            raise

    def _fault(self, error: BaseException) -> None:
        ledger = current_ledger()
        if ledger is not None:
            ledger.faults.append(str(error))

    def _wake(self) -> None:
        woken = [w for w in self._waiters if w[0]()]
        for waiter in woken:
            self._waiters.remove(waiter)
            waiter[1].set()

    async def until(self, done: Callable[[], bool]) -> None:
        """Wait until ``done()``, asked once a cycle after all drivers moved, is true."""
        event = Event()
        waiter = (done, event)
        self._waiters.append(waiter)
        try:
            await event.wait()
        finally:
            # a cancelled task must not be asked for again
            if waiter in self._waiters:
                self._waiters.remove(waiter)

    async def reset(self, cycles: int) -> None:
        """Hold reset high over ``cycles`` edges; all drivers forget their work at once."""
        self.dut.rst.value = 1
        for agent in self.agents:
            agent.flush()
        end = self.cycle + cycles
        await self.until(lambda: self.cycle >= end)
        self.dut.rst.value = 0


def engine() -> Engine:
    """The running test's engine.

    Raises
    ------
    RuntimeError
        No device was started in this test.
    """
    ledger = current_ledger()
    if ledger is None or ledger.engine is None:
        raise RuntimeError("no device is running: await start(dut) first, in a test made by bench_test")
    return ledger.engine


async def start(dut: Any, reset_cycles: int = 2, **inputs: int) -> Engine:
    """Start the clock with reset high and every input driven, then release reset.

    Parameters
    ----------
    dut:
        Device under test; clock ``clk`` and reset ``rst`` (active high, synchronous).
    reset_cycles:
        Rising edges under reset, at least 1.
    inputs:
        First values of plain inputs; the others start at 0, payloads as poison.
    """
    ledger = current_ledger()
    if ledger is None:
        raise RuntimeError("start() works inside a test made by bench_test")
    if not hasattr(dut, "clk"):
        raise RuntimeError(f"{dut._name} has no clock: drive its inputs and await Timer(1, 'ns')")
    ledger.engine = Engine(dut)
    ledger.engine.begin(inputs)
    await ledger.engine.reset(reset_cycles)
    return ledger.engine


async def reset(dut: Any, cycles: int = 1) -> None:
    """Reset in the middle: sources, sinks and scoreboards on streams drop what they hold."""
    await engine().reset(cycles)


async def cycles(count: int) -> None:
    """Wait for a number of rising edges.

    On return the device's signals still have the values that the last edge sampled; what is written now is
    sampled by the next edge.
    """
    run = engine()
    end = run.cycle + count
    await run.until(lambda: run.cycle >= end)
