"""Decoding with any model that has ``forward``, greedy or seeded: the reference that speculation must reproduce."""

from collections.abc import Collection
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sim_models.numerics.noise import choose
from sim_models.transformer.cache import KVCache, SequenceError
from sim_models.transformer.checkpoint import ModelShape

__all__ = ["End", "LanguageModel", "check_room", "end_tokens", "first_choices", "generate"]

Tokens = NDArray[np.int64]
End = int | Collection[int] | None
"""The tokens that end a text: one, several (as models with turns in their texts have them), or none."""


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


def end_tokens(end: End, vocab_size: int | None = None) -> frozenset[int]:
    """The set of tokens that end a text.

    Raises
    ------
    SequenceError
        One of them is no token of a vocabulary of ``vocab_size`` (None: of any size).
    """
    tokens = frozenset([end] if isinstance(end, int) else end or ())
    for token in tokens:
        if type(token) is not int or token < 0 or (vocab_size is not None and token >= vocab_size):
            wanted = "at least 0" if vocab_size is None else f"from 0 to {vocab_size - 1}"
            raise SequenceError(f"an end token must be {wanted}, not {token!r}")
    return tokens


def check_room(prompt: int, count: int, positions: int | None, name: str = "model") -> None:
    """Refuse a text that does not fit a model; the last token is not fed back and needs no position.

    Parameters
    ----------
    prompt, count: int
        Tokens of the prompt, and tokens wanted behind it.
    positions: int or None
        Positions of the model; None if it has any number.
    name: str
        What the model is called.

    Raises
    ------
    SequenceError
        A negative number of tokens, or more than there is room for.
    """
    if count < 0:
        raise SequenceError(f"the number of tokens wanted must be at least 0, not {count}")
    if positions is not None and prompt + count - 1 > positions:
        raise SequenceError(f"the {name} has {positions} positions: {count} tokens do not fit behind a prompt of "
                            f"{prompt}, at most {max(positions - prompt + 1, 0)} do")


def generate(model: LanguageModel, prompt: list[int] | Tokens, count: int, *, end: End = None,
             temperature: float = 0, seed: int = 0, request: int = 0) -> list[int]:
    """Continuation of ``prompt``, greedy or sampled with seeded noise.

    Parameters
    ----------
    prompt:
        At least one token, BOS included.
    count:
        Tokens wanted; the last one is not fed back, so ``len(prompt) + count - 1`` positions are used.
    end:
        Tokens after which nothing more is generated (the one that came is the last of the result).
    temperature, seed, request:
        As :func:`numerics.noise.choose`; at temperature 0 greedy.

    Raises
    ------
    ValueError
        As :func:`numerics.noise.choose`.
    SequenceError
        No prompt, an unknown token, or more positions than the model has, whether or not an end token comes first.
    """
    check_room(len(prompt), count, model.shape.max_seq_len)
    ends, cache = end_tokens(end, model.shape.vocab_size), model.new_cache()
    out: list[int] = []
    rows = prompt
    while len(out) < count:
        logits = model.forward(rows, cache)[-1]
        out.append(choose(logits, temperature, seed, request, len(prompt) + len(out)))
        if out[-1] in ends:
            break
        rows = out[-1:]
    return out
