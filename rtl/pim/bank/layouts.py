"""Shapes of what crosses block boundaries in ``rtl/pim/bank``."""

from amaranth.hdl import signed
from amaranth.lib import data

from sim_models.params.pim.bank.bank_group import BankGroupParams
from sim_models.params.pim.bank.bank_pe import BankPEParams
from sim_models.params.pim.bank.dram_bank import DramBankParams
from sim_models.params.pim.bank.exact_sum import ExactSumParams
from sim_models.spec.bank import DramColumnOp, DramRowOp

__all__ = ["dram_column", "dram_row", "exact_sum",
           "group_step", "pe_step"]



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
