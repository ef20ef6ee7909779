"""Shapes of what crosses block boundaries in ``rtl/pim/bank``."""

from amaranth.hdl import signed

from rtl.parts.meanings import Fields, struct
from sim_models.params.pim.bank.bank_group import BankGroupParams
from sim_models.params.pim.bank.bank_pe import BankPEParams
from sim_models.params.pim.bank.dram_bank import DramBankParams
from sim_models.params.pim.bank.exact_sum import ExactSumParams
from sim_models.spec.bank import DramColumnOp, DramRowOp

__all__ = ["dram_column", "dram_row", "exact_sum",
           "group_step", "pe_step"]


@struct
def pe_step(p: BankPEParams) -> Fields:
    """A pair of words for the processing element of a bank.

    Members
    -------
    valid: There is a pair.
    first: The accumulator starts from 0 with this pair.
    index: Number of the accumulator.
    row: Word from the row buffer.
    other: Word from the global buffer.
    int8: The words hold int8 numbers, otherwise FP16; the same for all pairs of a sum. It exists only where both
        formats are built.
    """
    members = {
        "valid": 1,
        "first": 1,
        "index": p.index_width,
        "row": p.word_width,
        "other": p.word_width,
    }
    if p.both:
        members["int8"] = 1
    return members


@struct
def exact_sum(p: ExactSumParams) -> Fields:
    """A sum that was not rounded; two of them add up member by member, ``value`` by + and flags by |.

    Members
    -------
    value: Sum of the finite products, in units of 2^-48 for FP16; an integer for int8.
    positive: A product of plus infinity is in the sum; never with int8.
    negative: A product of minus infinity is in the sum; never with int8.
    nan: A NaN is in the sum; never with int8.
    """
    return {
        "value": signed(p.acc_width),
        "positive": 1, "negative": 1, "nan": 1,
    }


@struct
def dram_row(p: DramBankParams) -> Fields:
    """A command to the rows of a bank.

    Members
    -------
    op: What to do.
    row: Number of the row.
    """
    return {"op": DramRowOp, "row": range(p.rows)}


@struct
def dram_column(p: DramBankParams) -> Fields:
    """A command to a word of an open row.

    Members
    -------
    op: What to do.
    row: Number of the open row.
    column: Number of the word in the row.
    """
    return {"op": DramColumnOp, "row": range(p.rows), "column": range(p.columns)}


@struct
def group_step(p: BankGroupParams) -> Fields:
    """What the processing elements of a bank group are to do with the words of their banks.

    Members
    -------
    valid: There are words.
    first: The accumulators start from 0 with these words.
    index: Number of the accumulators.
    int8: The words hold int8 numbers; has an effect if both formats are built.
    """
    return {
        "valid": 1, "first": 1, "index": range(p.accumulators),
        "int8": 1,
    }
