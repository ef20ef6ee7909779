"""How well a draft foretells its target, and how close the integer model is to the float model.

Both are measured on the target's own greedy text: where draft and target have agreed so far their contexts
are the same, so one pass of each model over the text (teacher forcing) answers every question about
greedy speculation from every starting point.
"""

import dataclasses
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from sim_models.transformer.decoding import LanguageModel, Tokens, first_choices, generate

__all__ = ["Acceptance", "acceptance", "accepted_lengths", "agreement", "greedy_text"]


@dataclasses.dataclass(frozen=True)
class Acceptance:
    """Greedy speculation, measured.

    Members
    -------
    first_token: float
        Share of positions at which the draft's first choice is the target's.
    accepted_length: float
        Mean number of accepted drafts per round at ``gamma`` drafts a round; each round gives one token more.
    gamma, tokens, rounds: int
        Drafts a round; positions and rounds measured.
    """

    first_token: float
    accepted_length: float
    gamma: int
    tokens: int
    rounds: int


def greedy_text(model: LanguageModel, prompts: Iterable[list[int]], count: int) -> list[tuple[int, Tokens]]:
    """The prompts with ``count`` greedy tokens behind each: (length of the prompt, all tokens)."""
    return [(len(p), np.array([*p, *generate(model, p, count)])) for p in prompts]


def _choices(model: LanguageModel, prompt: int, tokens: Tokens) -> Tokens:
    """What ``model`` would say at every generated position of ``tokens``."""
    return first_choices(model.forward(tokens[:-1], model.new_cache())[prompt - 1:])


def agreement(model: LanguageModel, texts: Iterable[tuple[int, Tokens]]) -> tuple[float, int]:
    """Share of generated tokens that ``model``, teacher-forced, chooses too, and their number."""
    same = np.concatenate([_choices(model, n, tokens) == tokens[n:] for n, tokens in texts])
    return float(np.mean(same)), len(same)


def accepted_lengths(same: NDArray[np.bool_], gamma: int) -> list[int]:
    """Accepted drafts of each round on one text.

    A round at position i drafts up to ``gamma`` tokens, takes those before the first disagreement, and the
    target's own token behind them. A round that the text's end cuts short is not counted.
    """
    lengths, at = [], 0
    while at + gamma < len(same):
        run = same[at:at + gamma]
        taken = gamma if run.all() else int(np.argmin(run))
        lengths.append(taken)
        at += taken + 1
    return lengths


def acceptance(draft: LanguageModel, texts: Iterable[tuple[int, Tokens]], gamma: int = 8) -> Acceptance:
    """Measure ``draft`` on texts that the target made with :func:`greedy_text`.

    Raises
    ------
    ValueError
        No text is longer than ``gamma`` tokens.
    """
    same = [_choices(draft, n, tokens) == tokens[n:] for n, tokens in texts]
    lengths = [taken for s in same for taken in accepted_lengths(s, gamma)]
    if not lengths:
        raise ValueError(f"a text of more than {gamma} generated tokens is needed, none came")
    all_same = np.concatenate(same)
    return Acceptance(float(np.mean(all_same)), float(np.mean(lengths)), gamma, len(all_same), len(lengths))
