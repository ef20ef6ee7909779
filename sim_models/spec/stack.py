"""Codes of the stack"s commands and of their outcomes."""

import enum

__all__ = ["StackStatus", "StackUnit"]


class StackUnit(enum.IntEnum):
    """Whom a command to the stack is for.

    Members
    -------
    CHANNELS: For pseudo-channels.
    SFU: For the special function unit.
    """

    CHANNELS = 0
    SFU = 1


class StackStatus(enum.IntEnum):
    """Whether the stack carries a command out; of several faults the first in this order.

    Members
    -------
    OK: The command was carried out.
    COUNT: ``count`` or ``outputs`` of ``pim`` is zero.
    FORMAT: A format or spread that was not built, or a READ whose two formats do not go together.
    ADDRESS: Words beyond the end of a bank.
    BUFFER: Words beyond the end of the global buffer, or a base that does not suit the spread.
    ACCUMULATOR: Accumulators beyond the end of the half in which the first one lies.
    CHANNELS: No pseudo-channel is to take part.
    """

    OK = 0
    COUNT = 1
    FORMAT = 2
    ADDRESS = 3
    BUFFER = 4
    ACCUMULATOR = 5
    CHANNELS = 6
