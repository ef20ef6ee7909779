"""Codes of a pseudo-channel"s commands and of their outcomes."""

import enum

__all__ = ["PimOp", "PimReduce", "PimSpread", "PimStatus"]


class PimOp(enum.IntEnum):
    """What a pseudo-channel is to do."""

    #: the next ``count`` words of the data stream go to words ``base`` and following of the global buffer
    LOAD = 0
    #: the next ``count`` words of the data stream go to words ``address`` and following of bank (group, bank)
    WRITE = 1
    #: for r < outputs, c < count: accumulator first + r += word address + r * count + c of every bank, times a word
    #: of the global buffer (see :class:`PimSpread`)
    MAC = 2
    #: sums of accumulators ``first`` to ``first + outputs - 1`` (see :class:`PimReduce`)
    READ = 3


class PimSpread(enum.IntEnum):
    """Which word of the global buffer meets word c of a bank in a MAC."""

    #: base + c, in all banks
    ALL = 0
    #: base + 4c + b in bank b of every group
    BANK = 1
    #: base + 4c + g in all banks of group g
    GROUP = 2


class PimReduce(enum.IntEnum):
    """What a READ adds up. A beat has four lanes; lanes without a sum are 0."""

    #: nothing: four beats per accumulator, beat b has bank b of the four groups
    NONE = 0
    #: the banks of each group: a beat per accumulator, by group
    BANK = 1
    #: over the groups: a beat per accumulator, by bank
    GROUP = 2
    #: all: a beat per accumulator, in lane 0
    ALL = 3


class PimStatus(enum.IntEnum):
    """Outcome of a command; of several faults the first in this order."""

    OK = 0
    #: ``count`` (LOAD, WRITE, MAC) or ``outputs`` (MAC, READ) is zero
    COUNT = 1
    #: a format that was not built (MAC, READ), or no such spread (MAC)
    FORMAT = 2
    #: words beyond the end of a bank (WRITE, MAC)
    ADDRESS = 3
    #: words beyond the end of the global buffer (LOAD, MAC), or a base that is no multiple of 4 (MAC, BANK and GROUP)
    BUFFER = 4
    #: accumulators beyond the end of the half in which the first one lies (MAC, READ)
    ACCUMULATOR = 5
