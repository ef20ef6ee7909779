"""When a source offers a beat and a sink is ready: random, bursts, pauses, late, after valid."""

from collections.abc import Callable

import numpy as np

__all__ = ["Pattern", "after_valid", "always", "bursts", "late", "random"]

#: made once per driver from its generator; then called once a cycle with the partner's valid as seen on the
#: last edge, returns whether to offer or accept
Pattern = Callable[[np.random.Generator], Callable[[bool], bool]]


def always() -> Pattern:
    """Every cycle."""
    return lambda _gen: lambda _seen: True


def random(probability: float) -> Pattern:
    """Each cycle on its own with this probability.

    Raises
    ------
    ValueError
        The probability is not in (0, 1]; a driver that never moves would hang the test.
    """
    if not 0 < probability <= 1:
        raise ValueError(f"a probability above 0 and up to 1 was wanted, not {probability}")

    def make(gen: np.random.Generator) -> Callable[[bool], bool]:
        draws = iter(())

        def step(_seen: bool) -> bool:
            nonlocal draws
            value = next(draws, None)
            if value is None:
                draws = iter((gen.random(256) < probability).tolist())
                value = next(draws)
            return value
        return step
    return make


def bursts(on: float, off: float) -> Pattern:
    """Runs of cycles on and off, geometrically distributed with these mean lengths (at least 1)."""
    if on < 1 or off < 1:
        raise ValueError(f"mean burst lengths of at least 1 cycle were wanted, not {on} and {off}")

    def make(gen: np.random.Generator) -> Callable[[bool], bool]:
        state, left = bool(gen.integers(2)), 0

        def step(_seen: bool) -> bool:
            nonlocal state, left
            if left == 0:
                state = not state
                left = int(gen.geometric(1 / (on if state else off)))
            left -= 1
            return state
        return step
    return make


def late(cycles: int) -> Pattern:
    """Not at all for a number of cycles, then always."""
    def make(_gen: np.random.Generator) -> Callable[[bool], bool]:
        left = cycles

        def step(_seen: bool) -> bool:
            nonlocal left
            left -= 1
            return left < 0
        return step
    return make


def after_valid() -> Pattern:
    """Ready for one cycle only after valid was seen: a producer that waits for ready hangs here (rule 3)."""
    return lambda _gen: lambda seen: seen
