"""Small logic: bits taken together, strobes on halves and waits."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal

__all__ = ["all_of", "any_of", "countdown", "in_half"]


def any_of(bits: Any) -> Any:
    """Whether one of the bits is set; not of none."""
    result: Any = 0
    for bit in bits:
        result = result | bit
    return result


def all_of(bits: Any) -> Any:
    """Whether all bits are set, as those of none are."""
    result: Any = 1
    for bit in bits:
        result = result & bit
    return result


def in_half(strobe: Any, half: Any) -> Any:
    """A strobe on one of two halves.

    Not a shift: while nothing is struck, ``half`` comes from a memory that was never written, and 0 shifted by an
    unknown amount is unknown in a four-state simulator, for ever once a register has taken it.
    """
    return Cat(strobe & ~half, strobe & half)


def countdown(m: Module, name: str, *events: tuple[Any, int]) -> Signal:
    """Whether all events are long enough ago: each is given with the cycles that it blocks.

    Of events that coincide, the one that is listed first counts; an event never shortens the wait.
    """
    wait = Signal(range(max(cycles for _, cycles in events)), name=f"wait_{name}")
    passed = Signal(name=f"may_{name}")
    after = Signal.like(wait, name=f"after_{name}")
    m.d.comb += [passed.eq(wait == 0), after.eq(Mux(passed, 0, wait - 1))]
    m.d.sync += wait.eq(after)
    for event, cycles in reversed(events):
        with m.If(event & (after < cycles - 1)):
            m.d.sync += wait.eq(cycles - 1)
    return passed
