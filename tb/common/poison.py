"""Values that show when somebody reads what nobody wrote.

Unused memory, padding lanes and payloads while valid is low carry poison; registers and memories without
an initial value start random in the simulator, from the run's seed.
"""

from typing import Any

import numpy as np

__all__ = ["BUILD_FLAGS", "POISON_BYTE", "poison", "poison_bits", "run_flags"]

#: -128 as a byte: the extreme operand, and a large negative number in every wider format
POISON_BYTE = 0x80

#: Verilator flags that make uninitialised state random at run time
BUILD_FLAGS = ("--x-assign", "unique", "--x-initial", "unique")


def run_flags(seed: int) -> list[str]:
    """Simulator arguments that randomise uninitialised state, repeatably."""
    return ["+verilator+rand+reset+2", f"+verilator+seed+{seed % 0x7FFFFFFE + 1}"]


def poison(shape: Any, dtype: Any) -> np.ndarray:
    """An array to be overwritten: 0x80 in every byte of an integer, NaN codes for floats.

    Raises
    ------
    TypeError
        The type is neither an integer nor a float.
    """
    kind = np.dtype(dtype)
    if kind.kind not in "iuf":
        raise TypeError(f"poison is for integers and floats, not {kind}")
    if kind.kind == "f":
        return np.full(shape, np.nan, kind)
    return np.full(shape, int.from_bytes(bytes([POISON_BYTE]) * kind.itemsize, "little"),
                   f"u{kind.itemsize}").view(kind)


def poison_bits(bits: int) -> int:
    """The poison pattern over ``bits`` bits of a port."""
    return int.from_bytes(bytes([POISON_BYTE]) * (-(-bits // 8)), "little") & ((1 << bits) - 1)
