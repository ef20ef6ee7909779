"""Seeded Gumbel noise: a token is sampled as the largest of its logits with noise added.

The largest of ``logit / T + g``, with g = -ln(-ln u) for independent uniforms u, is distributed as the softmax of
logits / T. Here a uniform is named by (seed, request, position, token) and by nothing else, so whoever computes the
logits of a position makes the same choice: a draft that meets the target's choice is accepted, and a sampled text
with speculation is the sampled text without it (coupling by common noise: Daliri, Musco, Suresh 2024).

u = (h + 1/2) 2^-32, where h is the token enciphered with Speck32/64 (Beaulieu et al. 2013) under the key
{seed, request, position}: 16-bit additions, rotations and exclusive ors alone, and no two tokens share an h.
All choices are made in units of log2: ``logit * (log2 e / T) - log2(-log2 u)``.
"""

from typing import Any

import numpy as np

from sim_models.numerics.convert import int_to_float32
from sim_models.numerics.elements import LOG2E, plus, times
from sim_models.numerics.functions import log2_mantissa, log2_slope
from sim_models.numerics.tables import LOG2, LOG2_SLOPE

__all__ = ["FRACTION_BITS", "LIMITS", "ROUNDS", "choose", "encipher", "noise", "round_keys"]

Ints = np.ndarray[Any, Any]

ROUNDS = 22
#: fraction bits of the noise, which lies from -5.05 to 32.5: 24 bits and a sign, exact in float32
FRACTION_BITS = 18
#: what the key holds: name to number of values
LIMITS = {"seed": 1 << 32, "request": 1 << 16, "position": 1 << 16, "token": 1 << 32}
_MASK = 0xFFFF


def _round(x: Any, y: Any, key: Any) -> tuple[Any, Any]:
    """A round of Speck32: ``x = (x >>> 7) + y ^ key``, then ``y = (y <<< 2) ^ x``."""
    x = ((x >> 7 | x << 9 & _MASK) + y & _MASK) ^ key
    return x, (y << 2 & _MASK | y >> 14) ^ x


def round_keys(seed: int, request: int, position: int) -> list[int]:
    """Keys of 16 bits, one for each of the 22 rounds.

    The cipher's key words are, from the one that is used first: position, request, low and high half of the seed.

    Raises
    ------
    ValueError
        A number is not from 0 to below its limit.
    """
    for name, value in (("seed", seed), ("request", request), ("position", position)):
        if not 0 <= value < LIMITS[name]:
            raise ValueError(f"{name} must be from 0 to {LIMITS[name] - 1}, not {value}")
    key, waiting = position, [request, seed & _MASK, seed >> 16]
    keys = []
    for number in range(ROUNDS):
        keys.append(key)
        word, key = _round(waiting.pop(0), key, number)
        waiting.append(word)
    return keys


def encipher(tokens: Ints, keys: list[int]) -> Ints:
    """Words of 32 bits, enciphered, int64: a permutation of all of them."""
    x, y = tokens >> 16, tokens & _MASK
    for key in keys:
        x, y = _round(x, y, key)
    return x << 16 | y


def _minus_log2(h: Ints) -> tuple[Ints, Ints]:
    """``-log2 u`` for u = (2 h + 1) 2^-33: exponent and significand (from 2^20, below 2^21)."""
    bits = LOG2.base_bits
    odd = 2 * h + 1
    upper = odd >> 32 == 1
    # below 1/2: 33 - log2 of the odd number, at least 1
    place = _place(odd)
    lower_value = ((33 - place) << bits) - log2_mantissa(_fraction(odd, place))
    # from 1/2 on t = 1 - u is known exactly: t times -log2(1 - t) / t stays precise as t goes to 0
    rest = np.where(upper, (1 << 33) - odd, 1)
    deep = _place(rest)
    mantissa = (1 << bits) + _fraction(rest, deep)
    upper_value = mantissa * log2_slope(rest >> (32 - LOG2_SLOPE.operand_bits)) >> bits
    value = np.where(upper, upper_value, lower_value)
    top = _place(value)
    exponent = top - bits + np.where(upper, deep - 33, 0)
    return exponent, value << np.maximum(bits - top, 0) >> np.maximum(top - bits, 0)


def _place(n: Ints) -> Ints:
    """Number of the leading one of integers from 1 to below 2^53."""
    return np.frexp(n.astype(np.float64))[1].astype(np.int64) - 1


def _fraction(n: Ints, place: Ints) -> Ints:
    """What is behind the leading one of n, in the units of the logarithm's table, cut off."""
    up = LOG2.operand_bits - place
    return (n - (np.int64(1) << place)) << np.maximum(up, 0) >> np.maximum(-up, 0)


def noise(tokens: Ints, keys: list[int]) -> Ints:
    """Gumbel noise over ln 2 of tokens, float32: ``-log2(-log2 u)`` in units of 2^-18, rounded down."""
    exponent, significand = _minus_log2(encipher(np.asarray(tokens, np.int64), keys))
    fraction = significand - (1 << LOG2.base_bits)
    log = (exponent << LOG2.base_bits) + log2_mantissa(fraction >> (LOG2.base_bits - LOG2.operand_bits))
    return np.ldexp(int_to_float32(-log >> (LOG2.base_bits - FRACTION_BITS)), -FRACTION_BITS)


def choose(logits: Ints, temperature: float, seed: int, request: int, position: int) -> int:
    """The token at a position, sampled at a temperature; of equal ones the lowest.

    Parameters
    ----------
    logits: float32 [vocab_size]
    temperature: float
        0 takes the largest logit; else as float32 what logits are divided by.
    seed, request, position: int
        Name of the choice: the caller's numbers, and the token's absolute position in its text.

    Raises
    ------
    ValueError
        A number is out of range, or the temperature is negative or so small that float32 cannot hold 1 / T.
    """
    if temperature == 0:
        return int(np.argmax(logits))
    scale = temperature_scale(temperature)
    keys = round_keys(seed, request, position)
    return int(np.argmax(plus(times(logits, scale), noise(np.arange(len(logits)), keys))))


def temperature_scale(temperature: float) -> np.float32:
    """``log2 e / T`` in float32.

    Raises
    ------
    ValueError
        The temperature is not above 0, or too small for the factor to be finite.
    """
    if not 2.0**-100 <= temperature <= 2.0**100:
        raise ValueError(f"the temperature must be 0 or from 2^-100 to 2^100, not {temperature}")
    return np.float32(LOG2E / np.float32(temperature))
