"""Selection among many values or bits."""

from typing import Any

from amaranth.hdl import Cat, Const, Mux

__all__ = ["lowest", "pick"]


def lowest(bits: list[Any]) -> tuple[Any, Any]:
    """Whether one of 2^n bits is set, and the number of the first one (n bits, at least 1)."""
    nodes = [(bit, Const(0, 0)) for bit in bits]
    while len(nodes) > 1:
        nodes = [(a | b, Cat(Mux(a, i, j), ~a)) for (a, i), (b, j) in zip(nodes[::2], nodes[1::2], strict=True)]
    found, index = nodes[0]
    return found, index if len(bits) > 1 else Const(0, 1)


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
