"""Codes of the stack"s commands and of their outcomes."""

import enum

__all__ = ["StackStatus", "StackUnit"]


class StackUnit(enum.IntEnum):
    """Whom a command to the stack is for."""

    CHANNELS = 0
    SFU = 1


class StackStatus(enum.IntEnum):
    """Whether the stack carries a command out; of several faults the first in this order."""

    OK = 0
    #: as in :class:`PimStatus`; FORMAT also of a READ whose two formats do not go together
    COUNT = 1
    FORMAT = 2
    ADDRESS = 3
    BUFFER = 4
    ACCUMULATOR = 5
    #: no pseudo-channel is to take part
    CHANNELS = 6
