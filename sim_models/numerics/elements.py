"""Float32 sums and products of what is known to have neither subnormals nor NaN: those of the hardware, and sooner.

Results have neither again, but that what is too large becomes infinite, and infinity times zero NaN.
"""

from typing import Any

import numpy as np

from sim_models.numerics.float32 import SMALLEST, flush, multiply

__all__ = ["LOG2E", "plus", "times"]

Float = np.ndarray[Any, Any]

LOG2E = np.float32(1.4426950408889634)


def times(a: Any, b: Any) -> Float:
    """``a * b``, rounded once: :func:`float32.multiply`, sooner where no product is tiny."""
    with np.errstate(all="ignore"):
        product = np.asarray(a * b)
    # numpy rounds to subnormals first: only products away from them are right already
    size = np.abs(product)
    if np.minimum.reduce(size, axis=None, initial=np.inf) > SMALLEST or ((size > SMALLEST) | (size == 0)).all():
        return product
    return multiply(a, b)


def plus(a: Any, b: Any) -> Float:
    """``a + b``, rounded once."""
    with np.errstate(all="ignore"):
        return flush(a + b)
