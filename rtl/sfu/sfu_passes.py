"""The passes of a row through the lanes of the special function unit, and when a word is where.

An operation is one to three passes. A word of the row is issued in some cycle of a pass, its time 0, and is at time
2 in front of the lanes, so that no memory is in front of them; what follows is fixed by the pass, as nothing in the
lanes waits unless all wait.
"""

import dataclasses

from amaranth.lib import enum

from sim_models.params.sfu.buffer_die_sfu import BufferDieSfuParams

__all__ = ["PassTimes", "SfuPass", "pass_times"]


class SfuPass(enum.Enum, shape=4):
    """What the lanes do to every number x of the row."""

    #: x to the output
    COPY = 0
    #: x or 0 to the output
    RELU = 1
    #: x * factor * weight + bias to the output
    FINISH = 2
    #: x / (1 + 2^(-x log2(e))) to the output
    SILU = 3
    #: x / (1 + 2^z) to the output, z as in ``sim_models.params.sfu``
    GELU = 4
    #: x * factor into the row; maximum
    SCALE = 5
    #: 2^((x + addend) log2(e)) into the row; sum
    EXP = 6
    #: x into the row; sum of squares
    SQUARES = 7
    #: x + addend into the row; sum
    CENTRE = 8
    #: x + addend into the row; sum of squares
    DEVIATE = 9


@dataclasses.dataclass(frozen=True)
class PassTimes:
    """Cycles from a word's issue; None for what a pass does not do."""

    #: to when it is written into the row
    store: int | None = None
    #: to when it enters the adders as terms of a sum
    terms: int | None = None
    #: to when it is read again, to be multiplied with what was made of it
    fetch: int | None = None
    #: to when its results stand at the outputs of the lanes
    result: int | None = None


def pass_times(p: BufferDieSfuParams) -> dict[SfuPass, PassTimes]:
    """Times of all passes."""
    product, total, power = p.multiplier.stages, p.adder.stages, p.exp2.stages
    scaled = 2 + product + total                        # behind a product and a sum
    shifted = 2 + total
    in_lanes = 1 + total                                # the adders behind the lanes, with their operands' registers
    silu = 2 + product + power + in_lanes + p.reciprocal.stages
    gelu = silu + 2 * product + total
    finish = 2 + 2 * product + in_lanes
    return {
        SfuPass.COPY: PassTimes(result=3),
        SfuPass.RELU: PassTimes(result=3),
        SfuPass.FINISH: PassTimes(result=finish + 1),
        # two cycles for the memory, in which the reciprocal waits
        SfuPass.SILU: PassTimes(store=2, fetch=silu, result=silu + 3 + product),
        SfuPass.GELU: PassTimes(store=2, fetch=gelu, result=gelu + 3 + product),
        SfuPass.SCALE: PassTimes(store=scaled),
        SfuPass.EXP: PassTimes(store=shifted + product + power, terms=shifted + product + power),
        SfuPass.SQUARES: PassTimes(store=shifted, terms=shifted + product),
        SfuPass.CENTRE: PassTimes(store=shifted, terms=shifted),
        SfuPass.DEVIATE: PassTimes(store=shifted, terms=shifted + product),
    }
