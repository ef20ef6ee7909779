"""Golden model of a bank group: four models of banks, and four of processing elements."""

import dataclasses

import numpy as np

from sim_models.golden.pim.bank.bank_pe import BankPE, ExactSum, word_sums
from sim_models.golden.pim.bank.dram_bank import BankInputs, DramBank
from sim_models.golden.pim.channel.channel_commands import BANKS
from sim_models.params.pim.bank.bank_group import BankGroupParams

__all__ = ["BankGroup", "GroupInputs"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class GroupInputs:
    """What stands at the group in a cycle.

    Attributes
    ----------
    banks:
        To the banks; a write goes to those in ``write_banks``, a mask.
    words: uint16 (BANKS, lanes)
        What the words of the banks meet if ``valid``.
    """

    banks: BankInputs = dataclasses.field(default_factory=BankInputs)
    write_banks: int = 0
    valid: bool = False
    first: bool = False
    index: int = 0
    int8: bool = False
    words: np.ndarray | None = None
    read_en: bool = False
    read_index: int = 0


class BankGroup:
    """A bank group, cycle by cycle.

    Parameters
    ----------
    p:
        Its parameters.
    """

    def __init__(self, p: BankGroupParams) -> None:
        self.p = p
        self.banks = [DramBank(p.bank) for _ in range(BANKS)]
        self.elements = [BankPE(p.pe) for _ in range(BANKS)]

    def reset(self) -> None:
        """Banks close, sums have no value."""
        for part in (*self.banks, *self.elements):
            part.reset()

    @property
    def sums(self) -> list[ExactSum | None]:
        """What each processing element shows."""
        return [element.sum for element in self.elements]

    @property
    def error(self) -> str:
        """Of the first bank that has one."""
        return next((bank.error for bank in self.banks if bank.error != "none"), "none")

    def step(self, i: GroupInputs) -> None:
        """One clock edge with these inputs.

        Raises
        ------
        ValueError
            A step comes when no word that was written comes out of the banks.
        """
        for b, (bank, element) in enumerate(zip(self.banks, self.elements, strict=True)):
            term = None
            if i.valid:
                if bank.read_data is None or i.words is None:
                    raise ValueError(f"a step needs a word of bank {b} and of the buffer in cycle {bank.cycle}")
                term = word_sums(self.p.pe, bank.read_data, i.words[b], i.int8)[0]
            element.step(valid=i.valid, first=i.first, index=i.index, term=term, read_en=i.read_en,
                         read_index=i.read_index)
            meant = i.banks.column_op != "write" or i.write_banks >> b & 1
            bank.step(i.banks if meant else dataclasses.replace(i.banks, column_op="none"))
