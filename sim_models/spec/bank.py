"""Codes of a DRAM bank"s commands and errors, and of the formats of results."""

import enum

__all__ = ["DramColumnOp", "DramError", "DramRowOp", "ResultFormat"]


class ResultFormat(enum.IntEnum):
    """What a sum is rounded to.

    Members
    -------
    FLOAT32: Float32 code.
    FP16: FP16 code in the low 16 bits, 0 above.
    INT32: Signed integer of 32 bits, of a sum of int8 products.
    """

    FLOAT32 = 0
    FP16 = 1
    INT32 = 2


class DramRowOp(enum.IntEnum):
    """Command to the rows of a bank.

    Members
    -------
    NONE: No command.
    ACTIVATE: Opens a row.
    PRECHARGE: Closes a row.
    REFRESH: Refreshes the bank.
    """

    NONE = 0
    ACTIVATE = 1
    PRECHARGE = 2
    REFRESH = 3


class DramColumnOp(enum.IntEnum):
    """Command to the words of an open row.

    Members
    -------
    NONE: No command.
    READ: Reads a word.
    WRITE: Writes a word.
    """

    NONE = 0
    READ = 1
    WRITE = 2


class DramError(enum.IntEnum):
    """Rule that a command broke; the timing rules are those of :class:`sim_models.params.dram.DramTiming`.

    Members
    -------
    NONE: No rule was broken.
    CLOSED: READ, WRITE or PRECHARGE of a row that is not open.
    OPEN: ACTIVATE while a row is open in its place, or REFRESH while any is.
    RCD: READ or WRITE too early after ACTIVATE.
    RP: ACTIVATE or REFRESH too early after PRECHARGE.
    RAS: PRECHARGE too early after ACTIVATE.
    CCD: READ or WRITE too early after another.
    RTP: PRECHARGE too early after READ.
    WR: PRECHARGE too early after the data of a WRITE.
    WTR: READ too early after the data of a WRITE.
    RFC: A command too early after REFRESH.
    REFI: No REFRESH in twice the time after which one is due.
    """

    NONE = 0
    CLOSED = 1
    OPEN = 2
    RCD = 3
    RP = 4
    RAS = 5
    CCD = 6
    RTP = 7
    WR = 8
    WTR = 9
    RFC = 10
    REFI = 11
