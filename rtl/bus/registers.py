"""Registers on a bus as data: hardware, SystemRDL, C header and documentation follow from one table."""

import dataclasses

__all__ = ["Field", "Register"]


@dataclasses.dataclass(frozen=True)
class Field:
    """Bits of a register."""

    name: str
    #: number of the lowest bit
    low: int
    #: bits
    width: int
    text: str
    #: value after reset, of a field that can be written
    reset: int = 0


@dataclasses.dataclass(frozen=True)
class Register:
    """A word of 32 bits; bits without a field read 0."""

    name: str
    #: in bytes
    address: int
    writable: bool
    text: str
    fields: tuple[Field, ...]
