"""A Verilated Manager with softmax unit and registers, cycle by cycle, with engines around it."""

from pathlib import Path

import numpy as np

from rtl.manager.registers import registers
from rtl.manager.saddle_manager import SaddleManager
from sim_models.golden.bus.axi_lite import OKAY
from sim_models.golden.manager import saddle_manager as golden
from sim_models.golden.manager.manager import COUNTERS, Switches
from sim_models.golden.manager.saddle_manager import Inputs, Outputs
from sim_models.params.manager.saddle_manager import SaddleManagerParams
from tb.bus.axi_lite_master import NativeAxiLiteMaster
from tb.common.native import NativeSim
from tb.manager.manager_engines import Engines
from tb.manager.manager_machine import Stuck
from tb.manager.saddle_play import IN, OUT, Feed, address, payloads, read_outputs, register_words

__all__ = ["SaddleMachine", "play_logits"]


class SaddleMachine:
    """The RTL; :meth:`step` is that of the golden model.

    Parameters
    ----------
    p:
        Parameters of the device.
    switches:
        Settings, written over AXI4-Lite; what the Manager cannot hold is cut (:meth:`Switches.fitted`).
    build:
        Folder of all builds.
    """

    def __init__(self, p: SaddleManagerParams, switches: Switches, build: Path, *, seed: int = 1) -> None:
        self.p, self._sim = p, NativeSim(SaddleManager(p), build, seed=seed)
        self._bus = NativeAxiLiteMaster(self._sim)
        self._sizes = {port.name: -(-port.width // 8) for port in self._sim.library.ports}
        self._outputs = [*(f"{s}__ready" for s in IN), *(f"{s}__{k}" for s in OUT for k in ("valid", "payload")),
                         "busy", "dlm_fc", "tlm_attention", "irq"]
        self.restart(switches)

    @property
    def sim(self) -> NativeSim:
        """The simulation."""
        return self._sim

    def restart(self, switches: Switches, cycles: int = 2, *, interrupt: bool = True) -> None:
        """Reset, and write other settings; afterwards the device is at rest."""
        for name in (*(f"{s}__valid" for s in IN), *(f"{s}__ready" for s in OUT)):
            self._sim.set(name, 0)
        self._sim.reset(cycles)
        for at, word in register_words(self.p, switches.fitted(self.p), interrupt=interrupt):
            self.write(at, word)
        self._sim.step(2 * self.p.requests + 8)

    def write(self, at: int, word: int) -> None:
        """Write a register."""
        assert self._bus.write(at, word) == OKAY, f"the write to {at:#x} was refused"

    def read(self, at: int) -> int:
        """Read a register."""
        response, word = self._bus.read(at)
        assert response == OKAY, f"the read of {at:#x} was refused"
        return word

    def step(self, i: Inputs) -> Outputs:
        """One cycle."""
        return self.steps(i, 1)

    def steps(self, i: Inputs, count: int) -> Outputs:
        """Cycles with the same inputs; what the outputs showed in the last."""
        rows = {}
        for name, payload in payloads(self.p, i).items():
            rows[f"{name}__valid"], rows[f"{name}__payload"] = int(payload is not None), payload or 0
        for name in OUT:
            rows[f"{name}__ready"] = int(getattr(i, f"{name}_ready"))
        arrays = {name: np.tile(np.frombuffer(value.to_bytes(self._sizes[name], "little"), np.uint8), (count, 1))
                  for name, value in rows.items()}
        got = self._sim.play(arrays, self._outputs)
        return read_outputs(self.p, lambda name: int.from_bytes(got[name][-1].tobytes(), "little"))

    @property
    def counters(self) -> dict[str, int]:
        """The performance counters, read over AXI4-Lite."""
        at = {r.name: r.address for r in registers(self.p)}
        return {name: self.read(at[f"count_{name}"]) for name in COUNTERS}

    def acknowledge(self, count: int) -> None:
        """Tell the device that so many completed requests were seen."""
        self.write(address(self.p, "acknowledge"), count)

    def acknowledge_errors(self, count: int) -> None:
        """Tell the device that so many illegal beats were seen."""
        self.write(address(self.p, "acknowledge_errors"), count)


def play_logits(machine: SaddleMachine, engines: Engines, feed: Feed, limit: int, *, ready: float = 1.0,
                model: golden.SaddleManager | None = None, cycles: int | None = None) -> int:
    """As :func:`tb.manager.manager_machine.play`, with logits."""
    now, quiet = 0, False
    while not (engines.done and quiet) and now != cycles:
        if now >= limit:
            raise Stuck(f"{len(engines.finished)} of {len(engines.requests)} requests are complete after {limit} "
                        f"cycles")
        seen = engines.inputs(now, ready)
        i = feed.inputs(seen)
        until = engines.idle_until(now) if quiet and model is None else None
        if until is not None and until > now + 1:
            count = min(until, limit, cycles or limit) - now
            o = machine.steps(i, count)
            if o.draft or o.verify or o.emitted or o.busy:
                raise Stuck(f"cycle {now}: something happened by itself")
            now += count
            continue
        o = machine.step(i)
        if model is not None:
            want = model.step(i)
            if o != want:
                raise AssertionError(f"cycle {now}: got {o}, want {want}, inputs {i}")
        engines.observe(now, seen, feed.outputs(i, o))
        quiet = not o.busy
        now += 1
    return now
