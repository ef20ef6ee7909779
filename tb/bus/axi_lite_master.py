"""A master on AXI4-Lite, for cocotb and for native runs: one protocol, two ways to move the pins.

An access is a generator: it yields what the pins of a cycle are driven with, and is sent what they showed before the
edge that ends the cycle.
"""

from collections.abc import Generator, Mapping
from typing import Any

import numpy as np

from tb.common.clock import cycles
from tb.common.native import NativeSim

__all__ = ["INPUTS", "AxiLiteMaster", "NativeAxiLiteMaster"]

#: pins that a master drives
INPUTS = ("awaddr", "awprot", "awvalid", "wdata", "wstrb", "wvalid", "bready", "araddr", "arprot", "arvalid",
          "rready")
_OUTPUTS = ("awready", "wready", "bvalid", "bresp", "arready", "rvalid", "rresp", "rdata")
#: cycles after which a slave that does nothing is at fault
_LIMIT = 100

_Pins = Mapping[str, int]
_Steps = Generator[dict[str, int], _Pins, tuple[int, int]]


def _access(channels: Mapping[str, Mapping[str, int]], answer: str, gen: np.random.Generator | None) -> _Steps:
    """Offer these channels, at random times if there is a generator, then take the answer: response and data."""
    waiting = dict(channels)
    delay = {name: 0 if gen is None else int(gen.choice([0, 0, 1, 3])) for name in channels}
    for cycle in range(_LIMIT):
        pins = dict.fromkeys((f"{name}valid" for name in channels), 0) | {f"{answer}ready": 0}
        for name, payload in waiting.items():
            if cycle >= delay[name]:
                pins |= {**payload, f"{name}valid": 1}
        ready = not waiting and (gen is None or gen.random() < 0.5)
        pins[f"{answer}ready"] = int(ready)
        seen = yield pins
        if ready and seen[f"{answer}valid"]:
            return seen[f"{answer}resp"], seen["rdata"] if answer == "r" else 0
        waiting = {name: payload for name, payload in waiting.items()
                   if not (pins[f"{name}valid"] and seen[f"{name}ready"])}
    raise AssertionError(f"an answer on {answer} was wanted within {_LIMIT} cycles, none came; not taken: "
                         f"{', '.join(waiting) or 'nothing'}")


def _write(address: int, data: int, strobe: int, gen: np.random.Generator | None) -> _Steps:
    return _access({"aw": {"awaddr": address}, "w": {"wdata": data, "wstrb": strobe}}, "b", gen)


def _read(address: int, gen: np.random.Generator | None) -> _Steps:
    return _access({"ar": {"araddr": address}}, "r", gen)


class AxiLiteMaster:
    """Drives the pins ``s_axil_*`` of a device in cocotb.

    Parameters
    ----------
    dut:
        The device.
    gen:
        Source of pauses and of the order of address and data; None for none.
    """

    def __init__(self, dut: Any, gen: np.random.Generator | None = None) -> None:
        self.dut, self.gen = dut, gen
        self.quiet()

    def quiet(self) -> None:
        """Offer and take nothing."""
        for name in INPUTS:
            getattr(self.dut, f"s_axil_{name}").value = 0

    async def write(self, address: int, data: int, strobe: int = 15) -> int:
        """Write a word: the response."""
        return (await self._run(_write(address, data, strobe, self.gen)))[0]

    async def read(self, address: int) -> tuple[int, int]:
        """Read a word: response and data."""
        return await self._run(_read(address, self.gen))

    async def _run(self, steps: _Steps) -> tuple[int, int]:
        pins = next(steps)
        while True:
            for name, value in pins.items():
                getattr(self.dut, f"s_axil_{name}").value = value
            await cycles(1)
            try:
                pins = steps.send({name: int(getattr(self.dut, f"s_axil_{name}").value) for name in _OUTPUTS})
            except StopIteration as done:
                self.quiet()
                return done.value


class NativeAxiLiteMaster:
    """Drives the pins ``s_axil_*`` of a Verilated device; all other inputs keep their values meanwhile.

    Parameters
    ----------
    sim:
        The device.
    """

    def __init__(self, sim: NativeSim) -> None:
        self.sim = sim
        self._bytes = {port.name: -(-port.width // 8) for port in sim.library.ports}
        self._pins = dict.fromkeys(INPUTS, 0)

    def write(self, address: int, data: int, strobe: int = 15) -> int:
        """Write a word: the response."""
        return self._run(_write(address, data, strobe, None))[0]

    def read(self, address: int) -> tuple[int, int]:
        """Read a word: response and data."""
        return self._run(_read(address, None))

    def _run(self, steps: _Steps) -> tuple[int, int]:
        pins = next(steps)
        while True:
            seen = self._cycle(self._pins | pins)
            try:
                pins = steps.send(seen)
            except StopIteration as done:
                for name in INPUTS:
                    self.sim.set(f"s_axil_{name}", 0)
                return done.value

    def _cycle(self, pins: _Pins) -> dict[str, int]:
        rows = {f"s_axil_{name}": np.frombuffer(value.to_bytes(self._bytes[f"s_axil_{name}"], "little"),
                                                np.uint8).reshape(1, -1) for name, value in pins.items()}
        shown = self.sim.play(rows, [f"s_axil_{name}" for name in _OUTPUTS])
        return {name: int.from_bytes(shown[f"s_axil_{name}"].tobytes(), "little") for name in _OUTPUTS}
