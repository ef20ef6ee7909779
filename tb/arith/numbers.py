"""Operands for arithmetic: codes that are random everywhere and often special."""

from collections.abc import Callable

import numpy as np

__all__ = ["FLOAT32_SPECIAL", "HALF_SPECIAL", "Codes", "float32_codes", "half_codes", "integer_codes",
           "near_codes"]

#: from a generator and a count to codes
Codes = Callable[[np.random.Generator, int], np.ndarray]

_POSITIVE32 = (
    0x00000000, 0x00000001, 0x00400000, 0x007FFFFF,     # zero and subnormals
    0x00800000, 0x00800001, 0x00FFFFFF, 0x01000000,     # smallest normal numbers
    0x1F800000, 0x20000000, 0x33000000, 0x33800000,     # 2^-64, products at the edge; 2^-25, 2^-24
    0x3EFFFFFF, 0x3F000000, 0x3F000001, 0x3F7FFFFF, 0x3F800000, 0x3F800001, 0x3FC00000, 0x40200000,
    0x41D00000, 0x42FC0000, 0x42FE0000, 0x43000000,     # 26, 126, 127, 128
    0x477FDFFF, 0x477FE000, 0x477FEFFF, 0x477FF000,     # the largest FP16 numbers, and what rounds to infinity
    0x4AFFFFFF, 0x4B000000, 0x4B7FFFFF, 0x4EFFFFFF, 0x4F000000, 0x5F000000,
    0x7E7FFFFF, 0x7E800000, 0x7E800001, 0x7F000000, 0x7F7F7FFF, 0x7F7F8000, 0x7F7FFFFF,
    0x7F800000, 0x7F800001, 0x7FBFFFFF, 0x7FC00000, 0x7FFFFFFF)     # infinity, NaNs
_POSITIVE16 = (
    0x0000, 0x0001, 0x0003, 0x0200, 0x03FF, 0x0400, 0x0401, 0x3BFF, 0x3C00, 0x3C01, 0x4000, 0x4C00, 0x4E40, 0x4E80,
    0x7BFF, 0x7C00, 0x7C01, 0x7E00, 0x7FFF, 0x007F, 0x0080, 0x3F7F, 0x3F80, 0x7F7F, 0x7F80, 0x7F81, 0x7FC0)
#: codes of special float32 numbers, of both signs
FLOAT32_SPECIAL = np.array([*_POSITIVE32, *(c | 1 << 31 for c in _POSITIVE32)], np.uint32)
#: codes that are special as FP16 or as BF16, of both signs
HALF_SPECIAL = np.array([*_POSITIVE16, *(c | 1 << 15 for c in _POSITIVE16)], np.uint16)


def float32_codes(gen: np.random.Generator, count: int) -> np.ndarray:
    """Codes, uint32: a quarter special, a quarter of moderate size, the others anything."""
    anything = gen.integers(0, 1 << 32, count, np.uint32)
    moderate = (anything & np.uint32(0x807FFFFF)) | gen.integers(117, 140, count, np.uint32) << np.uint32(23)
    kind = gen.integers(0, 4, count)
    return np.select([kind == 0, kind == 1], [gen.choice(FLOAT32_SPECIAL, count), moderate], anything)


def near_codes(gen: np.random.Generator, codes: np.ndarray) -> np.ndarray:
    """Codes, uint32, half of which are close to ``codes`` in size, with either sign: sums cancel."""
    shift = np.uint32(1) << gen.integers(0, 27, len(codes), np.uint32)
    close = codes + gen.integers(0, 1 << 32, len(codes), np.uint32) % shift
    close = np.where(gen.integers(0, 2, len(codes)), close ^ np.uint32(1 << 31), close)
    return np.where(gen.integers(0, 2, len(codes)), close, float32_codes(gen, len(codes)))


def half_codes(gen: np.random.Generator, count: int) -> np.ndarray:
    """Codes of a 16-bit format, uint16: a quarter special."""
    return np.where(gen.integers(0, 4, count) == 0, gen.choice(HALF_SPECIAL, count),
                    gen.integers(0, 1 << 16, count, np.uint16))


def integer_codes(width: int) -> Codes:
    """Integers of ``width`` bits as unsigned codes, uint32: of every size, the extremes often."""
    def codes(gen: np.random.Generator, count: int) -> np.ndarray:
        value = gen.integers(0, 1 << width, count, np.uint64) >> gen.integers(0, width, count, np.uint64)
        value = np.where(gen.integers(0, 2, count), value, -value.astype(np.int64))
        edge = gen.choice([0, 1, -1, (1 << (width - 1)) - 1, -1 << (width - 1)], count)
        value = np.where(gen.integers(0, 8, count) == 0, edge, value.astype(np.int64))
        return (value & ((1 << width) - 1)).astype(np.uint32)
    return codes
