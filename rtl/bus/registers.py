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
    #: smallest value that can be written
    lowest: int = 0
    #: largest one; None for all bits 1
    highest: int | None = None
    #: a field of the same register that it must not be below
    not_below: str = ""

    @property
    def values(self) -> str:
        """Which values can be written, where that is not all."""
        top = (1 << self.width) - 1 if self.highest is None else self.highest
        span = f"{self.lowest} to {top}" if (self.lowest, top) != (0, (1 << self.width) - 1) else ""
        return ", ".join(filter(None, (span, self.not_below and f"not below {self.not_below}")))


@dataclasses.dataclass(frozen=True)
class Register:
    """A word of 32 bits; bits without a field read 0."""

    name: str
    #: in bytes
    address: int
    writable: bool
    text: str
    fields: tuple[Field, ...]
