"""A scenario that the benches of this folder share."""

from typing import Any, Protocol

from tb.common import bench_info
from tb.common.clock import cycles
from tb.common.scoreboard import compare

__all__ = ["Rests", "nothing_is_taken"]


class Rests(Protocol):
    """A device and its model, driven alike."""

    dut: Any
    model: Any

    async def wake(self) -> None:
        """The cycles after a reset in which nothing is taken."""
        ...

    async def finish(self) -> None:
        """Compare everything."""
        ...


async def nothing_is_taken(play: Rests) -> None:
    """While a device that is at rest is held in reset no input stream is ready; afterwards it works as if new."""
    names = [p.name for p in bench_info().ports if p.direction == "out" and p.name.endswith("__ready")]
    play.dut.rst.value = 1
    await cycles(1)
    compare([int(getattr(play.dut, name).value) for name in names], [0] * len(names), "ready in reset")
    play.dut.rst.value = 0
    play.model.reset()
    await play.wake()
    await play.finish()
