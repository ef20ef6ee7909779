"""How a draft token is made, tested and replaced, and decoding with the target alone (Leviathan et al. 2023).

q is the draft's, p the target's distribution at a position, both after temperature. The test must use the very
distribution that the sampler drew from: ``q`` is handed from one to the other.
"""

import dataclasses
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from sim_models.numerics.noise import noise, round_keys
from sim_models.specdec.draws import Draws, Place, Purpose
from sim_models.specdec.models import Model, check_request
from sim_models.transformer.decoding import End, end_tokens

__all__ = ["Greedy", "Rule", "Sampling", "Seeded", "Verdict", "decode", "verify"]

Row = NDArray[np.float64]


class Rule(Protocol):
    """A decoding rule; each method is told where the token stands."""

    def draft(self, q: Row, draws: Draws, place: Place) -> int:
        """The draft's token."""
        ...

    def accepts(self, token: int, q: Row, p: Row, draws: Draws, place: Place) -> bool:
        """Whether a token that was drafted from ``q`` stays."""
        ...

    def correct(self, q: Row, p: Row, draws: Draws, place: Place) -> int:
        """The token in place of one that was not accepted."""
        ...

    def target(self, p: Row, draws: Draws, place: Place) -> int:
        """A token where nothing was drafted."""
        ...


class Greedy:
    """Argmax of either distribution; of equal ones the lowest token."""

    def draft(self, q: Row, draws: Draws, place: Place) -> int:
        return int(q.argmax())

    def accepts(self, token: int, q: Row, p: Row, draws: Draws, place: Place) -> bool:
        return token == int(p.argmax())

    def correct(self, q: Row, p: Row, draws: Draws, place: Place) -> int:
        return int(p.argmax())

    def target(self, p: Row, draws: Draws, place: Place) -> int:
        return int(p.argmax())


class Sampling:
    """Acceptance with probability min(1, p / q), replacement from norm(max(0, p - q)): the output law is p."""

    def draft(self, q: Row, draws: Draws, place: Place) -> int:
        return draws.pick(q.tolist(), place.key(Purpose.DRAFT))

    def accepts(self, token: int, q: Row, p: Row, draws: Draws, place: Place) -> bool:
        ratio = float(p[token]) / float(q[token])
        return ratio >= 1 or draws.accept(ratio, place.key(Purpose.ACCEPT))

    def correct(self, q: Row, p: Row, draws: Draws, place: Place) -> int:
        residual = np.maximum(p - q, 0)
        # p and q can differ by their rounding alone
        weights = residual / residual.sum() if residual.any() else p
        return draws.pick(weights.tolist(), place.key(Purpose.RESIDUAL))

    def target(self, p: Row, draws: Draws, place: Place) -> int:
        return draws.pick(p.tolist(), place.key(Purpose.TARGET))


@dataclasses.dataclass(frozen=True)
class Seeded:
    """The token with the largest log2 p plus seeded noise, whose output law is p (:mod:`numerics.noise`).

    The noise of a token depends on seed, request and position alone and is common to draft and target. So a
    verification compares tokens as greedy decoding does, and the text is the same whatever is drafted; nothing
    is drawn from ``draws``. :func:`numerics.noise.choose` is the same rule on float32 logits, rounded as in hardware.
    """

    seed: int = 0

    def choice(self, p: Row, place: Place) -> int:
        """The token at a place."""
        keys = round_keys(self.seed, place.request, place.position)
        with np.errstate(divide="ignore"):
            return int((np.log2(p) + noise(np.arange(len(p)), keys)).argmax())

    def draft(self, q: Row, draws: Draws, place: Place) -> int:
        return self.choice(q, place)

    def accepts(self, token: int, q: Row, p: Row, draws: Draws, place: Place) -> bool:
        return token == self.choice(p, place)

    def correct(self, q: Row, p: Row, draws: Draws, place: Place) -> int:
        return self.choice(p, place)

    def target(self, p: Row, draws: Draws, place: Place) -> int:
        return self.choice(p, place)


class Verdict(NamedTuple):
    """What a verification says about one request.

    Members
    -------
    accepted: int
        Of the draft tokens that were dispatched, those before the first one that failed.
    token: int
        The token behind them: correction, bonus, or the first waiting token if that passed.
    matches: bool
        All dispatched tokens were accepted and the first waiting (pending or eager) token passed its test on the
        bonus distribution, so that what follows it stays valid.
    """

    accepted: int
    token: int
    matches: bool


def verify(rule: Rule, draws: Draws, place: Place, drafts: list[tuple[int, Row]],
           waiting: tuple[int, Row] | None, p: Row) -> Verdict:
    """Test a request's draft.

    Parameters
    ----------
    place: Place
        Where the first draft token would stand.
    drafts: list of (token, q)
        n dispatched tokens.
    waiting: (token, q) or None
        The first drafted token that was not dispatched.
    p: float64 [n + 1, vocab_size]
        The target's distribution at every dispatched token, and behind the last.
    """
    for i, (token, q) in enumerate(drafts):
        if not rule.accepts(token, q, p[i], draws, place.ahead(i)):
            return Verdict(i, rule.correct(q, p[i], draws, place.ahead(i)), False)
    n = len(drafts)
    if waiting is None:
        return Verdict(n, rule.target(p[n], draws, place.ahead(n)), False)
    token, q = waiting
    if rule.accepts(token, q, p[n], draws, place.ahead(n)):
        return Verdict(n, token, True)
    return Verdict(n, rule.correct(q, p[n], draws, place.ahead(n)), False)


def decode(rule: Rule, target: Model, prompt: list[int], limit: int, draws: Draws, *, request: int = 0,
           end: End = None) -> list[int]:
    """Decoding with the target alone: up to ``limit`` tokens, the last one an end token if one came.

    Raises
    ------
    ValueError
        As :func:`models.check_request`, or an end token that is none of the vocabulary.
    """
    check_request(target, prompt, limit)
    ends = end_tokens(end, target.vocab_size)
    session, out, rows = target.open(request), [], prompt
    while len(out) < limit:
        p = session.extend(rows)[-1]
        out.append(rule.target(p, draws, Place(request, len(prompt) + len(out))))
        if out[-1] in ends:
            break
        rows = out[-1:]
    return out
