"""Models as speculation sees them: next-token distributions behind a context that can be rolled back."""

import dataclasses
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sim_models.transformer.cache import KVCache
from sim_models.transformer.decoding import LanguageModel, check_room

__all__ = ["LlamaModel", "Model", "Session", "TableModel", "check_batch", "check_request"]

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

    @property
    def positions(self) -> int | None:
        """Tokens that a context can hold; None if any number."""
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

    @property
    def positions(self) -> int | None:
        return None

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

    @property
    def positions(self) -> int | None:
        return self.model.shape.max_seq_len

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


def check_request(target: Model, prompt: Sequence[int], limit: int) -> None:
    """Refuse a request that the target alone could not decode.

    Raises
    ------
    ValueError
        A prompt token that is none of the vocabulary, a negative limit, or one that the context has no room for.
    """
    for token in prompt:
        if not 0 <= token < target.vocab_size:
            raise ValueError(f"a prompt's tokens must be from 0 to {target.vocab_size - 1}, not {token}")
    check_room(len(prompt), limit, target.positions)


def check_batch(draft: Model, target: Model, prompts: Sequence[Sequence[int]], limits: Sequence[int]) -> None:
    """Refuse a batch that cannot be decoded, before anything is computed.

    Raises
    ------
    ValueError
        As :func:`check_request`, or an empty prompt, two vocabularies, numbers of prompts and limits that differ.
    """
    if draft.vocab_size != target.vocab_size:
        raise ValueError(f"draft and target must have one vocabulary, not {draft.vocab_size} and "
                         f"{target.vocab_size} tokens")
    if len(limits) != len(prompts):
        raise ValueError(f"a limit is needed for each of {len(prompts)} prompts, not {len(limits)}")
    if not prompts or not all(len(p) for p in prompts):
        raise ValueError("a batch needs at least 1 prompt, and each prompt at least 1 token")
    for prompt, limit in zip(prompts, limits, strict=True):
        check_request(target, prompt, limit)
