"""Codes of a DRAM bank"s commands and errors, and of the formats of results."""

import enum

__all__ = ["DramColumnOp", "DramError", "DramRowOp", "ResultFormat"]


class ResultFormat(enum.IntEnum):
    """What a sum is rounded to."""

    #: float32 code
    FLOAT32 = 0
    #: FP16 code in the low 16 bits, 0 above
    FP16 = 1
    #: signed integer of 32 bits, of a sum of int8 products
    INT32 = 2


class DramRowOp(enum.IntEnum):
    """Command to the rows of a bank."""

    NONE = 0
    ACTIVATE = 1
    PRECHARGE = 2
    REFRESH = 3


class DramColumnOp(enum.IntEnum):
    """Command to the words of an open row."""

    NONE = 0
    READ = 1
    WRITE = 2


class DramError(enum.IntEnum):
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
