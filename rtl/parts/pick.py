"""Selection among many values."""

from typing import Any

from amaranth.hdl import Mux

__all__ = ["pick"]


def pick(values: list[Any], index: Any) -> Any:
    """``values[index]`` as a tree of two-way multiplexers, two levels of which fit one 6-input LUT.

    An index beyond the last value picks some value.
    """
    for bit in index:
        if len(values) == 1:
            break
        values = [Mux(bit, values[n + 1], values[n]) if n + 1 < len(values) else values[n]
                  for n in range(0, len(values), 2)]
    return values[0]
