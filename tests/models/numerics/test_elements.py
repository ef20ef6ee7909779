"""Sums and products without checks of their operands: equal to the definition everywhere."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim_models.numerics import elements
from sim_models.numerics.float32 import add, bits, flush, from_bits, multiply

F = np.float32
#: products and sums that end at the smallest normal number, just below it, at zero, and beyond the largest
CORNERS = np.array([0, -0.0, 1, -1, 2.0**-126, -(2.0**-126), np.nextafter(F(2.0**-63), F(0)), 2.0**-63, 2.0**-60,
                    1 - 2.0**-24, 1 + 2.0**-23, 2.0**-100, 2.0**100, 3e38, -3e38, np.inf, -np.inf], F)


def drawn(seed: int) -> np.ndarray:
    return flush(from_bits(np.random.default_rng(seed).integers(0, 1 << 32, 200)))


@pytest.mark.filterwarnings("error")
@given(st.integers(0, 2**32 - 1))
def test_times_and_plus_are_the_hardwares(seed: int) -> None:
    a, b = (np.nan_to_num(drawn(seed + n), nan=1.5) for n in (0, 1))
    assert (bits(elements.times(a, b)) == bits(multiply(a, b))).all()
    assert (bits(elements.plus(a, b)) == bits(add(a, b))).all()


@pytest.mark.filterwarnings("error")
def test_corners_of_times_and_plus() -> None:
    for a in CORNERS:
        for b in CORNERS:
            assert bits(elements.times(a, b)) == bits(multiply(a, b)), (a, b)
            assert bits(elements.plus(a, b)) == bits(add(a, b)), (a, b)
        whole = elements.times(a, CORNERS)
        assert bits(whole).tolist() == [int(bits(multiply(a, b))) for b in CORNERS]
