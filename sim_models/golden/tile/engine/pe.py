"""Golden model of one processing element, register by register.

All arithmetic is on Python integers, reduced to the registers' widths where the hardware has a register.
"""

import numpy as np

from sim_models.golden.tile.engine.pe_array import wrap
from sim_models.params.tile.engine.pe import DSP48_FAMILIES, PEParams

__all__ = ["PE"]


class PE:
    """Processing element (SPECTRA 2.2).

    Parameters
    ----------
    p:
        Parameters of the element.

    Attributes
    ----------
    weight, product, sum: int
        Registers, as they stand before the next clock edge.
    operand, factor: int
        What the product is taken of at the next clock edge; ``factor`` is ``weight`` but in a DSP48, which has
        a register for the bank's weight beside that of the weight from above.
    """

    def __init__(self, p: PEParams) -> None:
        self.p = p
        self.reset()

    def reset(self) -> None:
        """All registers to zero."""
        self.weight = self.factor = self.operand = self.product = self.sum = 0

    def step(self, *, activation: int, above_weight: int = 0, bank_weight: int = 0, above_sum: int = 0,
             load_bank: int = 0, add_above: int = 0) -> None:
        """One clock edge with these inputs; those of a mode that is not built do not count."""
        p = self.p
        from_bank = p.vector and (load_bank or not p.systolic)
        from_above = p.vector and (add_above or not p.systolic)
        total = self.product + (above_sum if from_above else self.sum)
        self.sum = int(wrap(np.asarray(total), p.acc_width))
        self.product = (self.operand if p.registers_activation else activation) * self.factor
        self.operand = activation
        self.factor = bank_weight if from_bank else above_weight
        self.weight = above_weight if p.family in DSP48_FAMILIES and p.systolic else self.factor
