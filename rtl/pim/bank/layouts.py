"""Shapes of what crosses block boundaries in ``rtl/pim/bank``."""

from amaranth.hdl import signed
from amaranth.lib import data, enum

from sim_models.params.pim.bank.bank_group import BankGroupParams
from sim_models.params.pim.bank.bank_pe import BankPEParams
from sim_models.params.pim.bank.dram_bank import DramBankParams
from sim_models.params.pim.bank.exact_sum import ExactSumParams

__all__ = ["DramColumnOp", "DramError", "DramRowOp", "ResultFormat", "dram_column", "dram_row", "exact_sum",
           "group_step", "pe_step"]



class ResultFormat(enum.Enum, shape=2):
    """What a sum is rounded to."""

    #: float32 code
    FLOAT32 = 0
    #: FP16 code in the low 16 bits, 0 above
    FP16 = 1
    #: signed integer of 32 bits, of a sum of int8 products
    INT32 = 2


def pe_step(p: BankPEParams) -> data.StructLayout:
    """A pair of words for the processing element of a bank."""
    members = {
        "valid": 1,
        "first": 1,                 # the accumulator starts from 0 with this pair
        "index": p.index_width,     # of the accumulator
        "row": p.word_width,        # from the row buffer
        "other": p.word_width,      # from the global buffer
    }
    if p.both:
        members["int8"] = 1         # the words hold int8 numbers; the same for all pairs of a sum
    return data.StructLayout(members)


def exact_sum(p: ExactSumParams) -> data.StructLayout:
    """A sum that was not rounded; two of them add up member by member, ``value`` by + and flags by |."""
    return data.StructLayout({
        # sum of the finite products, in units of 2^-48 for FP16; an integer for int8
        "value": signed(p.acc_width),
        # an infinite product of this sign is in the sum; a NaN is. Never with int8.
        "positive": 1, "negative": 1, "nan": 1,
    })


class DramRowOp(enum.Enum, shape=2):
    """Command to the rows of a bank."""

    NONE = 0
    ACTIVATE = 1
    PRECHARGE = 2
    REFRESH = 3


class DramColumnOp(enum.Enum, shape=2):
    """Command to the words of an open row."""

    NONE = 0
    READ = 1
    WRITE = 2


class DramError(enum.Enum, shape=4):
    """Rule that a command broke; the timing rules are those of :class:`sim_models.params.dram.DramTiming`."""

    NONE = 0
    #: READ, WRITE or PRECHARGE of a row that is not open
    CLOSED = 1
    #: ACTIVATE while a row is open in its place, or REFRESH while any is
    OPEN = 2
    RCD = 3
    RP = 4
    RAS = 5
    CCD = 6
    RTP = 7
    WR = 8
    WTR = 9
    RFC = 10
    #: no REFRESH in twice the time after which one is due
    REFI = 11


def dram_row(p: DramBankParams) -> data.StructLayout:
    """A command to the rows of a bank."""
    return data.StructLayout({"op": DramRowOp, "row": range(p.rows)})


def dram_column(p: DramBankParams) -> data.StructLayout:
    """A command to a word of an open row."""
    return data.StructLayout({"op": DramColumnOp, "row": range(p.rows), "column": range(p.columns)})


def group_step(p: BankGroupParams) -> data.StructLayout:
    """What the processing elements of a bank group are to do with the words of their banks."""
    return data.StructLayout({
        "valid": 1, "first": 1, "index": range(p.accumulators),
        "int8": 1,                              # has an effect if both formats are built
    })
