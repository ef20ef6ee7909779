"""Shapes of what crosses block boundaries in ``rtl/pim/channel``."""

from amaranth.hdl import signed
from amaranth.lib import data, enum

from sim_models.params.pim.bank.exact_sum import ExactSumParams
from sim_models.params.pim.channel.pseudo_channel import PseudoChannelParams
from sim_models.spec.channel import PimOp, PimReduce, PimSpread, PimStatus

__all__ = ["PimUnit", "mac_step", "pim_command", "pim_job",
           "pim_response", "sums_beat"]



pim_command = data.StructLayout({
    "op": PimOp,
    "address": 24,              # first word of the bank or banks
    "count": 16,                # words (LOAD, WRITE); words per output (MAC)
    "base": 16,                 # first word of the global buffer
    "first": 8, "outputs": 8,   # accumulators
    "spread": PimSpread,
    "clear": 1,                 # MAC: sums start from 0, instead of from what is in the accumulators
    "int8": 1,                  # MAC: format of the words; READ: passed on to `sums`
    "group": 2, "bank": 2,      # WRITE
    "reduce": PimReduce,
})
pim_response = data.StructLayout({
    "status": PimStatus,
    "cycles": 32,               # for which the command occupied its unit; 0 if it was refused
    "hits": 24, "misses": 24,   # MAC, WRITE: words of a row that was accessed since it was opened, first words of one
})


def sums_beat(p: ExactSumParams) -> data.StructLayout:
    """Four exact sums side by side; member i of each array belongs to lane i (see :func:`exact_sum`)."""
    return data.StructLayout({
        "value": data.ArrayLayout(signed(p.acc_width), 4),
        "positive": 4, "negative": 4, "nan": 4,
        "int8": 1,                  # as in the READ command
        "last": 1,                  # of the command
    })


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
