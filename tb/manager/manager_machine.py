"""A Verilated Manager, cycle by cycle, with engines around it."""

from pathlib import Path

import numpy as np

from rtl.manager.manager import Manager
from sim_models.golden.manager import manager as golden
from sim_models.golden.manager.manager import COUNTERS, Inputs, Outputs, Switches
from sim_models.params.manager.manager import ManagerParams
from tb.common.native import NativeLibrary, NativeSim
from tb.manager.manager_engines import Engines, Widths, outputs, packed, settings_value, unpacked

__all__ = ["Machine", "Stuck", "play"]

_IN, _OUT = ("requests", "drafted", "verdicts"), ("draft", "verify", "emitted")


class Stuck(AssertionError):
    """Requests were not complete after so many cycles."""


class Machine:
    """The RTL; :meth:`step` is that of the golden model.

    Parameters
    ----------
    p:
        Parameters of the Manager.
    switches:
        Settings, which stay; what the Manager cannot hold is cut (:meth:`Switches.fitted`).
    build:
        Folder of all builds, or a library.
    """

    def __init__(self, p: ManagerParams, switches: Switches, build: Path | NativeLibrary, *, seed: int = 1) -> None:
        self.p, self._widths = p, Widths.of(p)
        self._sim = (NativeSim(build, seed=seed) if isinstance(build, NativeLibrary)
                     else NativeSim(Manager(p), build, seed=seed))
        self._sizes = {port.name: -(-port.width // 8) for port in self._sim.library.ports}
        self._outputs = [*(f"{s}__ready" for s in _IN), *(f"{s}__{k}" for s in _OUT for k in ("valid", "payload")),
                         "busy", "dlm_fc", "tlm_attention"]
        self.restart(switches)

    @property
    def sim(self) -> NativeSim:
        """The simulation."""
        return self._sim

    @property
    def library(self) -> NativeLibrary:
        """The compiled model."""
        return self._sim.library

    def restart(self, switches: Switches, cycles: int = 2) -> None:
        """Reset, with other settings."""
        self._sim.set("settings", settings_value(self.p, switches.fitted(self.p)))
        for name in _IN:
            self._sim.set(f"{name}__valid", 0)
        self._sim.reset(cycles)

    def step(self, i: Inputs) -> Outputs:
        """One cycle."""
        return self.steps(i, 1)

    def steps(self, i: Inputs, count: int) -> Outputs:
        """Cycles with the same inputs; what the outputs showed in the last."""
        rows = {}
        for name in _IN:
            value = getattr(i, name)
            rows[f"{name}__valid"] = int(value is not None)
            rows[f"{name}__payload"] = packed(getattr(self._widths, name), value) if value else 0
        for name in _OUT:
            rows[f"{name}__ready"] = int(getattr(i, f"{name}_ready"))
        rows["softmax"] = int(i.softmax_busy) | int(i.masked) << 1
        arrays = {name: np.tile(np.frombuffer(value.to_bytes(self._sizes[name], "little"), np.uint8), (count, 1))
                  for name, value in rows.items()}
        got = self._sim.play(arrays, self._outputs)
        o = {name: int.from_bytes(a[-1].tobytes(), "little") for name, a in got.items()}
        beats = [unpacked(getattr(self._widths, s), o[f"{s}__payload"]) if o[f"{s}__valid"] else None for s in _OUT]
        return outputs([bool(o[f"{s}__ready"]) for s in _IN], beats, bool(o["busy"]), o["dlm_fc"], o["tlm_attention"])

    @property
    def counters(self) -> dict[str, int]:
        """The performance counters, when they show all that was (see ``manager``)."""
        self.steps(Engines.nothing, 3)
        return dict(zip(COUNTERS, unpacked((32,) * len(COUNTERS), self._sim.get("counters")), strict=True))


def play(machine: "Machine | golden.Manager", engines: Engines, limit: int, *, ready: float = 1.0,
         model: golden.Manager | None = None, cycles: int | None = None) -> int:
    """Run until all requests are complete and nothing is left to decide: the cycles that took.

    Parameters
    ----------
    limit:
        Cycles after which the run counts as stuck.
    model:
        A golden model that must show the same in each cycle.
    cycles:
        Stop after so many, complete or not.
    """
    now, quiet = 0, False
    while not (engines.done and quiet) and now != cycles:
        if now >= limit:
            raise Stuck(f"{len(engines.finished)} of {len(engines.requests)} requests are complete after {limit} "
                        f"cycles")
        i = engines.inputs(now, ready)
        until = engines.idle_until(now) if quiet and model is None else None
        if until is not None and until > now + 1 and isinstance(machine, Machine):
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
        engines.observe(now, i, o)
        quiet = not o.busy
        now += 1
    return now
