"""Codes of a pseudo-channel"s commands and of their outcomes."""

import enum

__all__ = ["PimOp", "PimReduce", "PimSpread", "PimStatus"]


class PimOp(enum.IntEnum):
    """What a pseudo-channel is to do.

    Members
    -------
    LOAD: The next ``count`` words of the data stream go to words ``base`` and following of the global buffer.
    WRITE: The next ``count`` words of the data stream go to words ``address`` and following of bank (group, bank).
    MAC: For r < outputs, c < count: accumulator first + r += word address + r * count + c of every bank, times a word
        of the global buffer (see :class:`PimSpread`).
    READ: Sums of accumulators ``first`` to ``first + outputs - 1`` (see :class:`PimReduce`).
    """

    LOAD = 0
    WRITE = 1
    MAC = 2
    READ = 3


class PimSpread(enum.IntEnum):
    """Which word of the global buffer meets word c of a bank in a MAC.

    Members
    -------
    ALL: Word base + c, in all banks.
    BANK: Word base + 4c + b in bank b of every group.
    GROUP: Word base + 4c + g in all banks of group g.
    """

    ALL = 0
    BANK = 1
    GROUP = 2


class PimReduce(enum.IntEnum):
    """What a READ adds up. A beat has four lanes; lanes without a sum are 0.

    Members
    -------
    NONE: Nothing; four beats per accumulator, beat b has bank b of the four groups.
    BANK: The banks of each group: a beat per accumulator, by group.
    GROUP: Over the groups: a beat per accumulator, by bank.
    ALL: All banks; a beat per accumulator, in lane 0.
    """

    NONE = 0
    BANK = 1
    GROUP = 2
    ALL = 3


class PimStatus(enum.IntEnum):
    """Outcome of a command; of several faults the first in this order.

    Members
    -------
    OK: The command was carried out.
    COUNT: ``count`` (LOAD, WRITE, MAC) or ``outputs`` (MAC, READ) is zero.
    FORMAT: A format that was not built (MAC, READ), or no such spread (MAC).
    ADDRESS: Words beyond the end of a bank (WRITE, MAC).
    BUFFER: Words beyond the end of the global buffer (LOAD, MAC), or a base that is no multiple of 4 (MAC, BANK and
        GROUP).
    ACCUMULATOR: Accumulators beyond the end of the half in which the first one lies (MAC, READ).
    """

    OK = 0
    COUNT = 1
    FORMAT = 2
    ADDRESS = 3
    BUFFER = 4
    ACCUMULATOR = 5
