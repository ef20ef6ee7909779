"""Shapes of what crosses block boundaries in ``rtl/manager/softmax``."""

from amaranth.hdl import signed, unsigned
from amaranth.lib import data

from rtl.parts.meanings import Fields, fixed_struct, struct
from sim_models.params.manager.pools.pool import H_WIDTH
from sim_models.params.manager.softmax.softmax_unit import BAND_WIDTH, BANDS, WHOLE_WIDTH, SoftmaxUnitParams

__all__ = ["logits_beat", "softmax_bands", "softmax_events", "softmax_result", "softmax_sums", "softmax_vector"]


@struct
def logits_beat(p: SoftmaxUnitParams) -> Fields:
    """``lanes`` consecutive logits, float32 codes: that of token t is in beat t // lanes, lane t % lanes.

    Members
    -------
    data: Logits, float32 codes.
    keep: Logits that count, a bit each; the others have probability 0.
    last: The vector ends with this beat.
    given: The probability of ``token`` is wanted, otherwise that of the largest logit; the same in all beats of a
        vector.
    token: The token whose probability is wanted with ``given``; the same in all beats of a vector.
    """
    return {
        "data": data.ArrayLayout(32, p.lanes),
        "keep": p.lanes,
        "last": 1,
        "given": 1,
        "token": p.token_width,
    }


@struct
def softmax_result(p: SoftmaxUnitParams) -> Fields:
    """Probability of a token.

    Members
    -------
    token: The token whose probability it is.
    largest: Token of the largest logit, the lowest of equal ones; 0 if all are masked.
    p: Probability of ``token``, UQ1.15.
    masked: No logit was kept, or none but -inf and NaN: there is no distribution, ``p`` is 0.
    nan: A NaN was among the kept logits; it counts as masked.
    """
    return {
        "token": p.token_width,
        "largest": p.token_width,
        "p": H_WIDTH,
        "masked": 1,
        "nan": 1,
    }


@fixed_struct
def softmax_events() -> Fields:
    """What the softmax unit does in a cycle.

    Members
    -------
    busy: A vector of logits is on its way, from its first beat until its result is taken.
    masked: A result is taken that stands for no distribution.
    """
    return {
        "busy": 1,
        "masked": 1,
    }


def softmax_vector(p: SoftmaxUnitParams) -> data.StructLayout:
    """What is known of a vector from the comparison of its logits."""
    return data.StructLayout({
        "chosen": 32, "counts": 1,          # logit of the wanted token, float32 code, and whether there is one
        "token": p.token_width, "largest": p.token_width, "masked": 1, "nan": 1,
    })


def softmax_bands() -> data.StructLayout:
    """Which bands of exponents count after a beat."""
    band = signed(WHOLE_WIDTH - BAND_WIDTH)
    return data.StructLayout({
        "last": 1,                          # beat of its vector
        "top": band, "limit": band,         # band of the largest logit, and the highest that does not count
        "first": 1, "rise": unsigned(WHOLE_WIDTH - BAND_WIDTH),     # bands by which the top rose behind the first
    })


def softmax_sums(p: SoftmaxUnitParams) -> data.StructLayout:
    """Sums of powers by bands: that of band b is ``bands[b mod 4]``, in units of 2^(16 b - 18)."""
    return data.StructLayout({
        "bands": data.ArrayLayout(p.sum_width, BANDS),
        "top": 2,                           # band of the largest logit, modulo 4
    })
