"""Keys and values of the positions that a model has seen."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim_models.transformer.checkpoint import ModelShape

__all__ = ["KVCache", "SequenceError"]


class SequenceError(ValueError):
    """Tokens or positions that a model cannot take; the message says what was wanted and what came."""


class KVCache:
    """Storage for ``max_seq_len`` positions, of which the first ``length`` are valid.

    Parameters
    ----------
    shape: ModelShape
    dtype:
        Type of keys and values; int8 ones have a float32 scale per head and position.

    Members
    -------
    k, v: [n_layers, max_seq_len, n_kv_heads, head_dim]
    k_scale, v_scale: float32 [n_layers, max_seq_len, n_kv_heads]
        Used by int8 models only.
    """

    def __init__(self, shape: ModelShape, dtype: type[np.generic]) -> None:
        self.shape = shape
        positions = (shape.n_layers, shape.max_seq_len, shape.n_kv_heads)
        self.k: NDArray[Any] = np.zeros((*positions, shape.head_dim), dtype)
        self.v: NDArray[Any] = np.zeros((*positions, shape.head_dim), dtype)
        self.k_scale = np.zeros(positions, np.float32)
        self.v_scale = np.zeros(positions, np.float32)
        self._length = 0

    @property
    def length(self) -> int:
        """Valid positions; the next token goes to this position."""
        return self._length

    def roll_back(self, length: int) -> None:
        """Forget all positions from ``length`` on.

        Raises
        ------
        SequenceError
            ``length`` is negative or more than there is.
        """
        if not 0 <= length <= self._length:
            raise SequenceError(f"a cache can be rolled back to 0 to {self._length} positions, not {length}")
        self._length = length

    def claim(self, tokens: NDArray[np.integer] | list[int]) -> tuple[NDArray[np.int64], slice]:
        """Check the next tokens and say which positions they take; :meth:`commit` makes those valid.

        Raises
        ------
        SequenceError
            No token, a token that is not in the vocabulary, or more positions than the model has.
        """
        array = np.asarray(tokens)
        if array.ndim != 1 or len(array) < 1:
            raise SequenceError(f"a pass needs a row of at least 1 token, not shape {list(array.shape)}")
        if not np.issubdtype(array.dtype, np.integer):
            raise SequenceError(f"tokens must be integers, not {array.dtype}")
        wrong = array[(array < 0) | (array >= self.shape.vocab_size)]
        if len(wrong):
            raise SequenceError(f"a token must be from 0 to {self.shape.vocab_size - 1}, not {wrong[0]}")
        stop = self._length + len(array)
        if stop > self.shape.max_seq_len:
            raise SequenceError(f"the model has {self.shape.max_seq_len} positions, {self._length} are used, "
                                f"and {len(array)} more were asked for")
        return array.astype(np.int64), slice(self._length, stop)

    def commit(self, span: slice) -> None:
        """Make the positions that :meth:`claim` gave valid."""
        self._length = span.stop
