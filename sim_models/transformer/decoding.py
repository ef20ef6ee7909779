"""Greedy decoding with any model that has ``forward``: the reference that speculation must reproduce."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sim_models.transformer.cache import KVCache
from sim_models.transformer.checkpoint import ModelShape

__all__ = ["LanguageModel", "first_choices", "generate"]

Tokens = NDArray[np.int64]


class LanguageModel(Protocol):
    """What :class:`FloatModel` and :class:`Int8Model` have in common."""

    shape: ModelShape

    def new_cache(self) -> KVCache:
        """An empty cache."""
        ...

    def forward(self, tokens: Any, cache: KVCache) -> NDArray[np.float32]:
        """Logits [M, vocab_size] of M tokens; the cache grows by M."""
        ...


def first_choices(logits: NDArray[np.float32]) -> Tokens:
    """The most likely token of each row; of equal ones the lowest."""
    return np.argmax(logits, axis=-1)


def generate(model: LanguageModel, prompt: list[int] | Tokens, count: int, *,
             eos: int | None = None) -> list[int]:
    """Greedy continuation of ``prompt``.

    Parameters
    ----------
    prompt:
        At least one token, BOS included.
    count:
        Tokens wanted; the last one is not fed back, so ``len(prompt) + count - 1`` positions are used.
    eos:
        A token after which nothing more is generated (it is the last of the result).

    Raises
    ------
    SequenceError
        No prompt, an unknown token, or more positions than the model has.
    """
    cache = model.new_cache()
    out: list[int] = []
    rows = prompt
    while len(out) < count:
        out.append(int(first_choices(model.forward(rows, cache)[-1])))
        if out[-1] == eos:
            break
        rows = out[-1:]
    return out
