"""Drivers for Amaranth stream ports (``name__payload``, ``name__valid``, ``name__ready``)."""

import collections
from typing import Any

import numpy as np

from tb.common.clock import Monitor, engine
from tb.common.ledger import current_ledger
from tb.common.packing import Codec, codec
from tb.common.patterns import Pattern, after_valid, always, bursts, late, random
from tb.common.poison import poison_bits
from tb.common.scoreboard import Scoreboard

__all__ = ["Sink", "Source", "after_valid", "always", "bursts", "late", "monitor", "random"]


def monitor(name: str) -> Monitor:
    """The monitor of a stream of the running device (every stream has one).

    Raises
    ------
    ValueError
        The device has no such stream.
    """
    monitors = engine().monitors
    if name not in monitors:
        raise ValueError(f"a stream of the device was wanted ({', '.join(monitors) or 'it has none'}), "
                         f"not {name}")
    return monitors[name]


class _Driver:
    def __init__(self, dut: Any, name: str, layout: Any, gen: np.random.Generator, rate: Pattern | float,
                 direction: str) -> None:
        self.name = name
        self.monitor = monitor(name)
        if self.monitor.direction != direction:
            raise ValueError(f"{name} is an {self.monitor.direction}put of the device")
        self.codec: Codec = codec(layout)
        if self.codec.bits != self.monitor.bits:
            raise ValueError(f"{name} has {self.monitor.bits} payload bits, the layout {self.codec.bits}")
        self._gen = gen.spawn(1)[0]
        self.rate(rate)
        if any(getattr(a, "name", None) == name for a in engine().agents):
            raise ValueError(f"{name} has a driver already")
        engine().agents.append(self)  # type: ignore[arg-type]
        ledger = current_ledger()
        assert ledger is not None
        ledger.debts.append(self._debt)

    def rate(self, rate: Pattern | float) -> None:
        """Change the pattern of pauses; a number is a probability per cycle."""
        self._step = (rate if callable(rate) else random(rate))(self._gen)

    def _debt(self) -> str | None:
        raise NotImplementedError


class Source(_Driver):
    """Sends beats into an input stream of the device.

    Parameters
    ----------
    dut, name:
        Device and stream.
    layout:
        Payload layout (``rtl.tile.engine.layouts``), shape, or a :class:`~tb.common.packing.Codec`.
    gen:
        The test's generator; the driver derives its own from it.
    rate:
        Pattern (:mod:`tb.common.patterns`), or a probability per cycle.
    """

    def __init__(self, dut: Any, name: str, layout: Any, gen: np.random.Generator,
                 rate: Pattern | float = 1.0) -> None:
        super().__init__(dut, name, layout, gen, rate, "in")
        self._queue: collections.deque[int] = collections.deque()
        self._offering = False
        self._idle = poison_bits(self.codec.bits)

    def send(self, values: Any = None, /, **fields: Any) -> int:
        """Queue beats, as :meth:`tb.common.packing.Codec.pack` takes them; returns how many."""
        return self.send_packed(self.codec.pack(values, **fields))

    def send_packed(self, payloads: np.ndarray) -> int:
        """Queue packed beats, uint8 (n, bytes)."""
        numbers = self.codec.to_ints(payloads)
        self._queue.extend(numbers)
        return len(numbers)

    @property
    def waiting(self) -> int:
        """Beats not transferred yet."""
        return len(self._queue)

    async def drained(self) -> None:
        """Wait until every queued beat is transferred."""
        await engine().until(lambda: not self._queue)

    def update(self, in_reset: bool) -> None:
        mon = self.monitor
        if self._offering and mon.moved:
            self._queue.popleft()
            self._offering = False
            if not self._queue:
                self._quiet()
        if in_reset:
            self._offering = False
            self._quiet()
        elif self._queue and not self._offering:
            if self._step(False):
                self._offering = True
                if mon.payload is not None:
                    mon.payload.value = self._queue[0]
                if mon.valid is not None:
                    mon.valid.value = 1
            else:
                self._quiet()

    def flush(self) -> None:
        """Drop all beats and lower valid at once."""
        self._queue.clear()
        self._offering = False
        self._quiet()

    def _quiet(self) -> None:
        if self.monitor.valid is not None:
            self.monitor.valid.value = 0
        if self.monitor.payload is not None:
            self.monitor.payload.value = self._idle

    def _debt(self) -> str | None:
        return f"{self.name}: {len(self._queue)} beats were never accepted" if self._queue else None


class Sink(_Driver):
    """Takes beats from an output stream of the device.

    Parameters
    ----------
    dut, name, layout, gen, rate:
        As for :class:`Source`.
    scoreboard:
        Gets every beat at once (a dictionary of fields, or a number); otherwise beats queue for
        :meth:`take`.
    """

    def __init__(self, dut: Any, name: str, layout: Any, gen: np.random.Generator,
                 rate: Pattern | float = 1.0, scoreboard: Scoreboard | None = None) -> None:
        super().__init__(dut, name, layout, gen, rate, "out")
        self.scoreboard = scoreboard
        self._beats: list[int] = []
        self._stamps: list[int] = []

    @property
    def available(self) -> int:
        """Beats received and not taken."""
        return len(self._beats)

    async def take_packed(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Wait for ``count`` beats; packed uint8 (count, bytes) and the cycle of each, int64 (count,)."""
        await engine().until(lambda: len(self._beats) >= count)
        beats, self._beats = self._beats[:count], self._beats[count:]
        stamps, self._stamps = self._stamps[:count], self._stamps[count:]
        return self.codec.from_ints(beats), np.array(stamps, np.int64)

    async def take(self, count: int) -> Any:
        """Wait for ``count`` beats and unpack them: dictionary of arrays, or one array."""
        beats, stamps = await self.take_packed(count)
        values = self.codec.unpack(beats)
        ledger = current_ledger()
        assert ledger is not None
        for array in values.values() if isinstance(values, dict) else (values,):
            ledger.came(array, stamps)
        return values

    async def take_block(self, field: str = "last") -> Any:
        """Wait for beats up to and with the first whose one-bit ``field`` is set, and unpack them."""
        leaf = next(leaf for leaf in self.codec.leaves if leaf.path == (field,))
        seen = 0

        def complete() -> bool:
            nonlocal seen
            while seen < len(self._beats):
                seen += 1
                if self._beats[seen - 1] >> leaf.offset & 1:
                    return True
            return False
        await engine().until(complete)
        return await self.take(seen)

    def update(self, in_reset: bool) -> None:
        mon = self.monitor
        if mon.moved:
            if self.scoreboard is None:
                self._beats.append(mon.payloads[-1])
                self._stamps.append(mon.stamps[-1])
            else:
                beat = self.codec.unpack(self.codec.from_ints([mon.payloads[-1]]))
                self.scoreboard.got({k: v[0] for k, v in beat.items()} if isinstance(beat, dict) else beat[0])
        if mon.ready is not None:
            mon.ready.value = int(self._step(mon.offered and not mon.moved))

    def flush(self) -> None:
        """Drop what was received, and what the scoreboard expects."""
        self._beats.clear()
        self._stamps.clear()
        if self.scoreboard is not None:
            self.scoreboard.forget()

    def _debt(self) -> str | None:
        if not self._beats:
            return None
        return f"{self.name}: {len(self._beats)} extra beats came that the test never took"
