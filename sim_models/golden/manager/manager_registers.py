"""Golden model of a register file: words of fields with ranges and reset values, and byte strobes."""

import dataclasses
from collections.abc import Mapping

from sim_models.golden.bus.axi_lite import OKAY, SLVERR

__all__ = ["Bits", "ManagerRegisters"]


@dataclasses.dataclass(frozen=True)
class Bits:
    """A field: ``width`` bits from ``low`` on, and what can be written there.

    Members
    -------
    above: Bits or None
        A field of the same word than which it must not be less.
    """

    low: int
    width: int
    reset: int
    values: range
    above: "Bits | None" = None

    def of(self, word: int) -> int:
        """The field's value in a word."""
        return word >> self.low & ((1 << self.width) - 1)


class ManagerRegisters:
    """Registers.

    Parameters
    ----------
    writable:
        Address in bytes to fields.
    readable:
        Addresses of words that can be read only.
    """

    def __init__(self, writable: Mapping[int, tuple[Bits, ...]], readable: frozenset[int]) -> None:
        self.writable, self.readable = dict(writable), readable
        self.reset()

    def reset(self) -> None:
        """Back to the reset values."""
        self.words = {address: sum(f.reset << f.low for f in fields) for address, fields in self.writable.items()}

    def write(self, address: int, data: int, strobe: int) -> int:
        """The response to a write; the lowest two bits of the address are not looked at."""
        address &= ~3
        if address not in self.writable:
            return SLVERR
        bytes_ = sum(0xFF << 8 * n for n in range(4) if strobe >> n & 1)
        word = data & bytes_ | self.words[address] & ~bytes_
        fields = self.writable[address]
        named = sum(f.of(word) << f.low for f in fields) == word
        if not named or not all(f.of(word) in f.values for f in fields):
            return SLVERR
        if any(f.above is not None and f.of(word) < f.above.of(word) for f in fields):
            return SLVERR
        self.words[address] = word
        return OKAY

    def read(self, address: int, shown: Mapping[int, int]) -> tuple[int, int]:
        """The response to a read and the data; ``shown`` has the words that can be read only."""
        address &= ~3
        if address in self.writable:
            return OKAY, self.words[address]
        return (OKAY, shown[address]) if address in self.readable else (SLVERR, 0)
