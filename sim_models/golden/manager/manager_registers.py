"""Golden model of a register file: words with a mask, a reset value and byte strobes."""

from collections.abc import Mapping

__all__ = ["OKAY", "SLVERR", "ManagerRegisters"]

OKAY, SLVERR = 0, 2


class ManagerRegisters:
    """Registers.

    Parameters
    ----------
    writable:
        Address in bytes to (bits that exist, reset value).
    readable:
        Addresses of words that can be read only.
    """

    def __init__(self, writable: Mapping[int, tuple[int, int]], readable: frozenset[int]) -> None:
        self.writable, self.readable = dict(writable), readable
        self.reset()

    def reset(self) -> None:
        """Back to the reset values."""
        self.words = {address: value for address, (_, value) in self.writable.items()}

    def write(self, address: int, data: int, strobe: int) -> int:
        """The response to a write; the lowest two bits of the address are not looked at."""
        address &= ~3
        if address not in self.writable:
            return SLVERR
        bytes_ = sum(0xFF << 8 * n for n in range(4) if strobe >> n & 1)
        mask, old = self.writable[address][0], self.words[address]
        self.words[address] = (data & bytes_ | old & ~bytes_) & mask
        return OKAY

    def read(self, address: int, shown: Mapping[int, int]) -> tuple[int, int]:
        """The response to a read and the data; ``shown`` has the words that can be read only."""
        address &= ~3
        if address in self.writable:
            return OKAY, self.words[address]
        return (OKAY, shown[address]) if address in self.readable else (SLVERR, 0)
