"""Parameters of ``pe``."""

import dataclasses

from sim_models.params.base import ParamError, Params, param

__all__ = ["DSP48_FAMILIES", "PEParams", "accumulator_width", "largest_k"]

#: families whose DSP48 block holds a whole PE
DSP48_FAMILIES = ("xc7", "xcup")

def largest_k(operand_width: int, acc_width: int) -> int:
    """Largest K whose dot product can never overflow ``acc_width`` signed bits.

    The worst product of two signed operands is (-2^(w-1))^2 = 2^(2w-2), so K products fit while
    K * 2^(2w-2) <= 2^(acc_width-1) - 1.
    """
    return ((1 << (acc_width - 1)) - 1) >> (2 * operand_width - 2)


def accumulator_width(operand_width: int, k: int) -> int:
    """Fewest signed bits that hold every dot product of ``k`` operand pairs; inverse of :func:`largest_k`."""
    return (k << (2 * operand_width - 2)).bit_length() + 1


@dataclasses.dataclass(frozen=True, kw_only=True)
class _ArrayParams(Params):
    operand_width: int = param(8, "bits of a signed operand", low=2, high=16, tag="w")
    acc_width: int = param(25, "bits of a PE's signed running accumulator", low=4, high=48, tag="acc")
    modes: str = param("both", "modes that are built; systolic or vector-lane alone: a baseline",
                       choices=("both", "systolic", "vector"), tag="")
    family: str = param("generic", "devices whose multiplier blocks the PEs are made of; generic: any device",
                        choices=("generic", "ecp5", "xc7", "xcup"), tag="")

    @property
    def systolic(self) -> bool:
        """Whether the systolic mode is built."""
        return self.modes != "vector"

    @property
    def vector(self) -> bool:
        """Whether the vector-lane mode is built."""
        return self.modes != "systolic"

    @property
    def registers_activation(self) -> bool:
        """Whether a PE registers its activation itself, in the family's multiplier block."""
        return self.family != "generic"

    def validate(self) -> None:
        if largest_k(self.operand_width, self.acc_width) < 1:
            need = accumulator_width(self.operand_width, 1)
            raise ParamError(f"acc_width must be at least {need} for operand_width = {self.operand_width}, "
                             f"not {self.acc_width}", "acc_width")


@dataclasses.dataclass(frozen=True, kw_only=True)
class PEParams(_ArrayParams):
    """Parameters of one processing element."""
