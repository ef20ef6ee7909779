"""Random decisions, each from a uniform number that is named by what it decides.

A uniform is a function of (seed, request, position, purpose, branch) and of nothing else, so that the tokens of a
request do not depend on which others are in the batch, on timing, or on the order in a pool.

``branch`` is the position at which the request's present draft began. It sets a second draft of a position apart
from a first one that was flushed. By then the schedule may have followed from the first one (it stopped there, so
the next round began earlier), and whether the position is drafted at all, or left to the target, would depend on the
number that it is drafted with: the output law would be off. What is drawn once for a position, namely when its
token is emitted, needs no branch; it is 0 there.
"""

import dataclasses
import enum
from collections.abc import Sequence
from typing import NamedTuple, Protocol

__all__ = ["Draws", "Key", "KeyedDraws", "Place", "Purpose", "mix", "uniform"]

_MASK = (1 << 64) - 1
_STEP = 0x9E3779B97F4A7C15


class Purpose(enum.IntEnum):
    """What a uniform decides."""

    DRAFT = 0
    ACCEPT = 1
    RESIDUAL = 2
    TARGET = 3


class Key(NamedTuple):
    """Name of one uniform."""

    request: int
    position: int
    purpose: Purpose
    branch: int


class Place(NamedTuple):
    """Where a token stands; position and branch count the request's tokens from 0, prompt included."""

    request: int
    position: int
    branch: int = 0

    def key(self, purpose: Purpose) -> Key:
        """Name of the uniform for a purpose."""
        drafted = purpose in (Purpose.DRAFT, Purpose.ACCEPT)
        return Key(self.request, self.position, purpose, self.branch if drafted else 0)

    def ahead(self, count: int) -> "Place":
        """``count`` positions on."""
        return self._replace(position=self.position + count)


def mix(x: int) -> int:
    """One output of SplitMix64 for the state ``x`` (64 bits)."""
    x = (x + _STEP) & _MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)


def uniform(seed: int, key: Key) -> float:
    """A multiple of 2**-53 from 0 to below 1."""
    x = mix(seed & _MASK)
    for word in key:
        x = mix(x ^ word)
    return (x >> 11) * 2.0 ** -53


class Draws(Protocol):
    """Where random decisions come from."""

    def pick(self, weights: Sequence[float], key: Key) -> int:
        """An index with probability proportional to its weight; the weights' sum is 1 but for rounding."""
        ...

    def accept(self, probability: float, key: Key) -> bool:
        """True with this probability."""
        ...


@dataclasses.dataclass(frozen=True)
class KeyedDraws:
    """Draws from keyed uniforms."""

    seed: int = 0

    def pick(self, weights: Sequence[float], key: Key) -> int:
        """The first index at which the running sum of the weights exceeds the uniform."""
        left = uniform(self.seed, key) * float(sum(weights))
        last = 0
        for index, weight in enumerate(weights):
            if weight > 0:
                if left < weight:
                    return index
                left -= weight
                last = index
        return last

    def accept(self, probability: float, key: Key) -> bool:
        """Whether the uniform is below ``probability``."""
        return uniform(self.seed, key) < probability
