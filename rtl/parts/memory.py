"""Small memories."""

from amaranth.lib.memory import Memory

__all__ = ["table"]


def table(width: int, depth: int) -> Memory:
    """A memory in LUTs."""
    return Memory(shape=width, depth=max(2, depth), init=[], attrs={"ram_style": "distributed"})
