"""Berkeley SoftFloat on numpy arrays of codes, with the project's flush to zero and its one NaN."""

from collections.abc import Callable
from typing import Any

import numpy as np
import softfloatpy as sf

__all__ = ["FLOAT16", "FLOAT32", "apply", "flush_codes", "flushed"]

FLOAT32, FLOAT16 = (sf.Float32, ">u4"), (sf.Float16, ">u2")


def _numbers(codes: np.ndarray, kind: tuple[Any, str]) -> list[Any]:
    size = int(kind[1][2])
    data = codes.astype(kind[1]).tobytes()
    return [kind[0].from_bytes(data[k:k + size]) for k in range(0, len(data), size)]


def apply(operation: Callable[..., Any], *operands: np.ndarray, kind: tuple[Any, str] = FLOAT32,
          out: str = ">u4") -> np.ndarray:
    """Codes of ``operation`` on each row of operand codes, uint64."""
    data = b"".join(operation(*row).to_bytes()
                    for row in zip(*(_numbers(c, kind) for c in operands), strict=True))
    return np.frombuffer(data, out).astype(np.uint64)


def flush_codes(codes: np.ndarray) -> np.ndarray:
    """Float32 codes with subnormals as zeros, uint32."""
    codes = np.asarray(codes, np.uint32)
    return np.where(codes & np.uint32(0x7F800000), codes, codes & np.uint32(1 << 31))


def flushed(operation: Callable[..., Any], *operands: np.ndarray) -> np.ndarray:
    """Float32 codes of ``operation`` with flushed operands and result and the one NaN, uint32."""
    result = flush_codes(apply(operation, *(flush_codes(c) for c in operands)).astype(np.uint32))
    return np.where((result & 0x7FFFFFFF) > 0x7F800000, np.uint32(0x7FC00000), result)
