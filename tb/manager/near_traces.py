"""Requests whose drafts come next to a threshold: H is equal to it, one off, or rounded to it."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from sim_models.specdec.fixed import ONE
from sim_models.specdec.traces import DraftToken, RequestTrace

__all__ = ["near_thresholds"]


def near_thresholds(r: RequestTrace, taus: Sequence[int], gen: np.random.Generator) -> RequestTrace:
    """A request with other probabilities: next to a threshold, or such that H is half way between two numbers there.

    Parameters
    ----------
    r:
        The request; its tokens stay.
    taus:
        Thresholds, UQ1.15.
    gen:
        Draws which.
    """
    def pairs(tokens: tuple[DraftToken, ...]) -> tuple[DraftToken, ...]:
        out: list[DraftToken] = []
        following: list[int] = []
        for token, p in tokens:
            tau, kind = int(gen.choice(taus)), gen.random()
            if following:
                p = following.pop(0)
            elif kind < 0.2:
                p = ONE
            elif kind < 0.4:
                p = tau ^ (int(gen.integers(3) > 0) << int(gen.integers(10)))
            elif kind < 0.6 and 2 * tau < ONE:
                p, following = 2 * tau + int(gen.choice([-1, 1])), [ONE // 2, ONE]
            elif kind < 0.9 and tau:
                p = int(gen.integers(max(tau, ONE // 2), ONE + 1))
                # H is rounded up to the threshold, and stays there
                following = [((2 * tau - 1) * ONE // 2 + p) // p, ONE]
            out.append((token, min(max(p, 0), ONE)))
        return tuple(out)

    return dataclasses.replace(r, draft=pairs(r.draft), branches={i: pairs(b) for i, b in r.branches.items()})
