"""Shapes of what crosses block boundaries in ``rtl/pim/channel``."""

from amaranth.hdl import signed
from amaranth.lib import data, enum

from rtl.parts.meanings import Fields, fixed_struct, struct
from sim_models.params.pim.bank.exact_sum import ExactSumParams
from sim_models.params.pim.channel.pseudo_channel import PseudoChannelParams
from sim_models.spec.channel import PimOp, PimReduce, PimSpread, PimStatus

__all__ = ["PimUnit", "mac_step", "pim_command", "pim_job",
           "pim_response", "sums_beat"]


@fixed_struct
def pim_command() -> Fields:
    """A command to a pseudo-channel.

    Members
    -------
    op: What to do.
    address: First word of the bank or banks.
    count: Words (LOAD, WRITE), or words per output (MAC).
    base: First word of the global buffer.
    first: First accumulator.
    outputs: Accumulators.
    spread: Which words of the global buffer meet those of the banks (MAC).
    clear: MAC: sums start from 0, instead of from what is in the accumulators.
    int8: MAC: the words hold int8 numbers, otherwise FP16; READ: passed on to the sums.
    group: Bank group of a WRITE.
    bank: Bank in the group of a WRITE.
    reduce: What a READ adds up.
    """
    return {
        "op": PimOp,
        "address": 24,
        "count": 16,
        "base": 16,
        "first": 8, "outputs": 8,
        "spread": PimSpread,
        "clear": 1,
        "int8": 1,
        "group": 2, "bank": 2,
        "reduce": PimReduce,
    }


@fixed_struct
def pim_response() -> Fields:
    """The outcome of a command to a pseudo-channel.

    Members
    -------
    status: Whether the command was carried out, or what was wrong with it.
    cycles: Cycles for which the command occupied its unit; 0 if it was refused.
    hits: MAC, WRITE: words of a row that was accessed since it was opened.
    misses: MAC, WRITE: words that are the first of their row since it was opened.
    """
    return {
        "status": PimStatus,
        "cycles": 32,
        "hits": 24, "misses": 24,
    }


@struct
def sums_beat(p: ExactSumParams) -> Fields:
    """Four exact sums side by side; member i of each array belongs to lane i (see :func:`exact_sum`).

    Members
    -------
    value: Sums of the finite products, in units of 2^-48 for FP16; integers for int8.
    positive: Lanes with a product of plus infinity, a bit each.
    negative: Lanes with a product of minus infinity, a bit each.
    nan: Lanes with a NaN, a bit each.
    int8: As in the READ command.
    last: The command ends with this beat.
    """
    return {
        "value": data.ArrayLayout(signed(p.acc_width), 4),
        "positive": 4, "negative": 4, "nan": 4,
        "int8": 1,
        "last": 1,
    }


class PimUnit(enum.Enum, shape=2):
    """Who carries out a command."""

    #: nobody, it is refused
    NONE = 0
    #: MAC, WRITE
    SEQUENCER = 1
    #: LOAD, and the words of refused commands
    LOADER = 2
    #: READ
    READER = 3


def pim_job(p: PseudoChannelParams) -> data.StructLayout:
    """A command on its way from the decoder to the unit that carries it out."""
    return data.StructLayout({
        "op": PimOp, "status": PimStatus,
        "drop": 1,                              # refused, but its words must be taken off the data stream
        "row": range(p.rows), "column": range(p.columns),       # first word of the banks
        "last_row": range(p.rows),              # row of the last word
        "count": 16,
        "base": range(p.buffer_words),
        "buffer_halves": 2,                     # which halves of the global buffer it touches
        "first": range(p.accumulators),
        "outputs": range(p.half + 1),
        "spread": PimSpread, "clear": 1, "int8": 1, "group": 2, "bank": 2, "reduce": PimReduce,
    })


def mac_step(p: PseudoChannelParams) -> data.StructLayout:
    """What all processing elements are to do with a word that is read from their banks."""
    return data.StructLayout({
        "valid": 1, "first": 1, "index": range(p.accumulators), "int8": 1,
        "spread": PimSpread,
        "address": range(p.buffer_words),       # word of the global buffer, for ALL; else the first of four
    })
