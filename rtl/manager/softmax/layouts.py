"""Shapes of what crosses block boundaries in ``rtl/manager/softmax``."""

from amaranth.lib import data

from rtl.parts.meanings import Fields, fixed_struct, struct
from sim_models.params.manager.pools.pool import H_WIDTH
from sim_models.params.manager.softmax.softmax_unit import SoftmaxUnitParams

__all__ = ["logits_beat", "softmax_events", "softmax_result", "softmax_step", "softmax_sums", "softmax_vector"]


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


def softmax_step(p: SoftmaxUnitParams) -> data.StructLayout:
    """What becomes of a beat's sum."""
    return data.StructLayout({
        "first": 1, "last": 1,      # beat of its vector
        "switched": 1,              # the anchor is the largest logit of this beat
        "lane": p.lane_width,       # where that is
    })


def softmax_vector(p: SoftmaxUnitParams) -> data.StructLayout:
    """What is known of a vector from the comparison of its logits; codes are float32."""
    return data.StructLayout({
        "anchor": 32, "old_anchor": 32,     # logits to which the sums are relative
        "chosen": 32,                       # logit of the wanted token
        "token": p.token_width, "largest": p.token_width, "masked": 1, "nan": 1,
    })


def softmax_sums(p: SoftmaxUnitParams) -> data.StructLayout:
    """Sums of powers, fixed-point numbers in units of 2^(scale - 127)."""
    return data.StructLayout({
        "vector": softmax_vector(p),
        "sum": p.sum_width, "scale": 8,             # relative to the anchor
        "old_sum": p.sum_width, "old_scale": 8,     # relative to the one before
    })
