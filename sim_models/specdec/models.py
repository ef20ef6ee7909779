"""Models as speculation sees them: next-token distributions behind a context that can be rolled back."""

import dataclasses
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sim_models.transformer.cache import KVCache
from sim_models.transformer.decoding import LanguageModel

__all__ = ["LlamaModel", "Model", "Session", "TableModel"]

Rows = NDArray[np.float64]


class Session(Protocol):
    """One request's context in one model."""

    @property
    def length(self) -> int:
        """Tokens taken in: the length of the KV cache."""
        ...

    def extend(self, tokens: list[int]) -> Rows:
        """Take in M >= 1 tokens: the next-token distribution behind each of them, float64 [M, vocab_size]."""
        ...

    def roll_back(self, length: int) -> None:
        """Forget all tokens from position ``length`` on."""
        ...


class Model(Protocol):
    """A draft or target model."""

    @property
    def vocab_size(self) -> int:
        """Tokens are 0 to ``vocab_size - 1``."""
        ...

    def open(self, request: int) -> Session:
        """A context without tokens for a request; only models that replay look at which."""
        ...


class TableModel:
    """Order-1 model: the next token depends on the last one alone.

    Parameters
    ----------
    table: [V, V]
        Row t is the distribution behind token t.

    Raises
    ------
    ValueError
        The table is not square, or a row is no distribution.
    """

    def __init__(self, table: Any) -> None:
        self.table: Rows = np.asarray(table, np.float64)
        if self.table.ndim != 2 or self.table.shape[0] != self.table.shape[1]:
            raise ValueError(f"a table must be square, not of shape {list(self.table.shape)}")
        if (self.table < 0).any() or not np.allclose(self.table.sum(axis=1), 1, rtol=0, atol=1e-12):
            raise ValueError("every row of a table must be a distribution: at least 0, sum 1")

    @property
    def vocab_size(self) -> int:
        return len(self.table)

    def open(self, request: int = 0) -> Session:
        return _TableSession(self.table)


class _TableSession:
    def __init__(self, table: Rows) -> None:
        self._table = table
        self.length = 0

    def extend(self, tokens: list[int]) -> Rows:
        self.length += len(tokens)
        return self._table[tokens]

    def roll_back(self, length: int) -> None:
        if not 0 <= length <= self.length:
            raise ValueError(f"a context can be rolled back to 0 to {self.length} tokens, not {length}")
        self.length = length


@dataclasses.dataclass(frozen=True)
class LlamaModel:
    """A transformer, its logits divided by ``temperature`` and made a distribution in float64."""

    model: LanguageModel
    temperature: float = 1.0

    def __post_init__(self) -> None:
        if not self.temperature > 0:
            raise ValueError(f"the temperature must be above 0, not {self.temperature}; 0 is greedy decoding")

    @property
    def vocab_size(self) -> int:
        return self.model.shape.vocab_size

    def open(self, request: int = 0) -> Session:
        return _LlamaSession(self.model, self.temperature, self.model.new_cache())


@dataclasses.dataclass(frozen=True)
class _LlamaSession:
    model: LanguageModel
    temperature: float
    cache: KVCache

    @property
    def length(self) -> int:
        return self.cache.length

    def extend(self, tokens: list[int]) -> Rows:
        logits = self.model.forward(tokens, self.cache).astype(np.float64) / self.temperature
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        return weights / weights.sum(axis=1, keepdims=True)

    def roll_back(self, length: int) -> None:
        self.cache.roll_back(length)
