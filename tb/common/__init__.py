"""What every bench uses.

Where to look: ``runner`` (build, run, judge), ``bench`` (what makes a function a test), ``clock``, ``streams``,
``patterns`` and ``rules`` (drive and watch), ``scoreboard``, ``packing``, ``poison``, ``scenarios``; outside
of cocotb ``native`` (mass numerics from numpy arrays) and ``mutation`` (does a stimulus notice faults?).

A bench is a module ``tb/<folder>/test_<block>.py`` with ``VARIANTS`` (name to parameter overrides, always
with ``"default": {}``) and tests::

    @bench_test(timeout_us=200)
    async def test_identity(dut):
        await start(dut)
        gen = rng()
        source = Source(dut, "i_beat", layout, gen, random(0.5))
        sink = Sink(dut, "o_beat", layout, gen, bursts(4, 4))
        data = gen.integers(-128, 128, (100, 8))
        source.send(data=data, last=0)
        compare((await sink.take(100))["data"], data, "beats")

A test fails by itself when it compares nothing, when a task, source, sink or scoreboard still has work when
it returns, when a stream breaks a protocol rule, when a coroutine was never awaited and when a background
task raised.
"""

import dataclasses
import functools
import importlib
import json
import os
from typing import Any

from sim_models.params.base import Params

__all__ = ["BENCH_VARIABLE", "BenchInfo", "Port", "bench_info", "params"]

#: the one environment variable through which the runner speaks to the bench
BENCH_VARIABLE = "SPECULOOS_BENCH"


@dataclasses.dataclass(frozen=True)
class Port:
    """A port of the device under test, without clock and reset."""

    name: str
    #: "in" or "out", as the device sees it
    direction: str
    #: bits
    width: int


@dataclasses.dataclass(frozen=True)
class BenchInfo:
    """What the runner tells the bench in the simulator process."""

    block: str
    params: Params
    ports: tuple[Port, ...]
    #: file to which each finished test appends its counts, one JSON object a line
    counts: str
    #: first and last cycle of each test that a waveform keeps; None keeps all
    window: tuple[int, int] | None = None

    def encode(self) -> str:
        """Text for :data:`BENCH_VARIABLE`."""
        cls = type(self.params)
        return json.dumps({"block": self.block, "class": f"{cls.__module__}:{cls.__qualname__}",
                           "values": dataclasses.asdict(self.params),
                           "ports": [dataclasses.astuple(p) for p in self.ports], "counts": self.counts,
                           "window": self.window})


@functools.cache
def bench_info() -> BenchInfo:
    """The running bench.

    Raises
    ------
    RuntimeError
        Not in a simulator process that the runner started.
    """
    text = os.environ.get(BENCH_VARIABLE)
    if text is None:
        raise RuntimeError(f"{BENCH_VARIABLE} is not set: a bench runs through tb.common.runner, "
                           "not by itself")
    raw: dict[str, Any] = json.loads(text)
    module, _, name = raw["class"].partition(":")
    cls = getattr(importlib.import_module(module), name)
    return BenchInfo(raw["block"], cls(**raw["values"]), tuple(Port(*p) for p in raw["ports"]), raw["counts"],
                     raw["window"] and tuple(raw["window"]))


def params() -> Any:
    """Parameters of the device under test (the block's frozen ``Params``)."""
    return bench_info().params
