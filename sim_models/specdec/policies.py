"""When a request stops drafting.

A policy may look at the tokens so far and at the draft's distribution: it is then a stopping time, and lossless as
long as the token that made it stop stays in the draft (Scheduler keeps it).
"""

import dataclasses
import math
from typing import NamedTuple

from sim_models.specdec.fixed import ONE, quantise

__all__ = ["Confidence", "Cumulative", "Entropy", "Fixed", "Goodput", "LoadTau", "Oracle", "Policy", "Step",
           "load_index"]


class Step(NamedTuple):
    """What is known when a draft token has come.

    Members
    -------
    length: int
        Tokens of the request that wait for verification or are under it, this one included.
    h, p: int, UQ1.15
        Product of the probabilities since the draft began, this one included; this token's probability.
    entropy: float
        Of the distribution it came from, in nats.
    load: int
        Requests that are not done.
    right: bool
        Whether the target will accept the token if its predecessors are accepted; known to an oracle only,
        otherwise True.
    """

    length: int
    h: int
    p: int
    entropy: float = 0.0
    load: int = 1
    right: bool = True


class Policy:
    """Base: drafts as far as the scheduler allows."""

    #: whether ``Step.right`` must be known
    foresees = False

    def wants(self, length: int, load: int) -> bool:
        """Whether a draft of ``length`` tokens may be extended; asked before each draft step."""
        return True

    def stops(self, step: Step) -> bool:
        """Whether the token that has come is the draft's last."""
        return False

    def observe(self, dispatched: int, accepted: int) -> None:
        """Hear of a verdict."""

    def state(self) -> tuple[int, ...]:
        """What verdicts have changed; empty for a policy without memory."""
        return ()

    def load_state(self, state: tuple[int, ...]) -> None:
        """Take over what :meth:`state` gave."""


@dataclasses.dataclass(frozen=True)
class Fixed(Policy):
    """``d`` tokens, however likely; d = 0 never drafts."""

    d: int

    def wants(self, length: int, load: int) -> bool:
        return length < self.d


@dataclasses.dataclass(frozen=True)
class Cumulative(Policy):
    """Stop when H, the product of the draft's probabilities, falls below ``tau`` (SADDLE IV-A)."""

    tau: float

    def stops(self, step: Step) -> bool:
        return step.h < quantise(self.tau)


@dataclasses.dataclass(frozen=True)
class Confidence(Policy):
    """Stop at a token of probability below ``c``, and at ``cap`` tokens."""

    c: float = 0.4
    cap: int = 20

    def wants(self, length: int, load: int) -> bool:
        return length < self.cap

    def stops(self, step: Step) -> bool:
        return step.p < quantise(self.c)


@dataclasses.dataclass(frozen=True)
class Entropy(Policy):
    """Stop when 1 - sqrt(0.2 x entropy), a lower bound of the acceptance, falls below ``bound``."""

    bound: float

    def stops(self, step: Step) -> bool:
        return 1 - math.sqrt(0.2 * step.entropy) < self.bound


def load_index(load: int) -> int:
    """Entry of an 8-entry table for a number of requests: 1, 2, 3 to 4, 5 to 8, ... 65 and more."""
    return min((load - 1).bit_length(), 7)


@dataclasses.dataclass(frozen=True)
class LoadTau(Policy):
    """A threshold for each load, of H or of the token's own probability; :func:`load_index` is the entry."""

    taus: tuple[float, ...]
    confidence: bool = False

    def __post_init__(self) -> None:
        if len(self.taus) != 8:
            raise ValueError(f"a table of thresholds must have 8 entries, not {len(self.taus)}")

    def stops(self, step: Step) -> bool:
        return (step.p if self.confidence else step.h) < quantise(self.taus[load_index(step.load)])


class Goodput(Policy):
    """The draft length of the most expected tokens per cycle, from a moving acceptance and the costs of a round.

    A round of draft length d yields (1 - a^(d+1)) / (1 - a) tokens a request and costs
    d x ``draft`` + max(``fixed``, ``row`` x load x (d + 1)) cycles.

    Parameters
    ----------
    draft, fixed, row: float
        Cycles of a draft step; least cycles of a verification; cycles of each of its rows.
    cap: int
        Longest draft.
    """

    def __init__(self, draft: float, fixed: float, row: float, cap: int = 8) -> None:
        self.draft, self.fixed, self.row, self.cap = draft, fixed, row, cap
        self.rate = ONE * 3 // 4

    def wants(self, length: int, load: int) -> bool:
        return length < self.best(load)

    def best(self, load: int) -> int:
        """The draft length for this load; of equally good ones the shortest."""
        a = self.rate / ONE
        gain, rewards = 0.0, []
        for d in range(self.cap + 1):
            gain += a ** d
            rewards.append(gain / (d * self.draft + max(self.fixed, self.row * load * (d + 1))))
        return rewards.index(max(rewards))

    def observe(self, dispatched: int, accepted: int) -> None:
        """Move the acceptance a sixteenth of the way to each test's outcome.

        It stays below 15/16, and a round without a draft lets it recover, so that a policy that stopped
        drafting tries again.
        """
        outcomes = [ONE * 15 // 16] * (accepted if dispatched else 1) + [0] * (accepted < dispatched)
        for outcome in outcomes:
            self.rate += (outcome - self.rate) >> 4

    def state(self) -> tuple[int, ...]:
        return (self.rate,)

    def load_state(self, state: tuple[int, ...]) -> None:
        self.rate, = state


class Oracle(Policy):
    """Stops at the first token that the target will not accept: the ceiling of every stopping rule."""

    foresees = True

    def stops(self, step: Step) -> bool:
        return not step.right
