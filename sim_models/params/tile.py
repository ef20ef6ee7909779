"""Parameters of the blocks in ``rtl/tile`` (SPECTRA 2.2)."""

import dataclasses

from sim_models.params.base import ParamError, Params, param

__all__ = ["DIM_WIDTH", "ComputeEngineParams", "FillControlParams", "PEArrayParams", "PEParams", "accumulator_width",
           "largest_k"]

#: bits of M, K and N in a command
DIM_WIDTH = 16


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
    dual_mode: bool = param(True, "both modes; false elaborates the systolic-only baseline", tag="dual")
    vector_only: bool = param(False, "elaborate the vector-lane-only baseline", tag="vector")

    @property
    def systolic(self) -> bool:
        """Whether the systolic mode is built."""
        return not self.vector_only

    @property
    def vector(self) -> bool:
        """Whether the vector-lane mode is built."""
        return self.dual_mode or self.vector_only

    def validate(self) -> None:
        if self.vector_only and not self.dual_mode:
            raise ParamError("dual_mode = false (systolic only) and vector_only = true exclude each other: "
                             "set one of them", "vector_only")
        if largest_k(self.operand_width, self.acc_width) < 1:
            need = accumulator_width(self.operand_width, 1)
            raise ParamError(f"acc_width must be at least {need} for operand_width = {self.operand_width}, "
                             f"not {self.acc_width}", "acc_width")


@dataclasses.dataclass(frozen=True, kw_only=True)
class PEParams(_ArrayParams):
    """Parameters of one processing element."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class PEArrayParams(_ArrayParams):
    """Parameters of the array."""

    rows: int = param(8, "PE rows; also operands of one dot product step in vector-lane mode", low=2, high=64,
                      tag="r")
    cols: int = param(8, "PE columns; outputs computed side by side", low=1, high=64, tag="c")
    columns_per_hop: int = param(2, "columns that work in the same cycle and share an activation register",
                                 low=1, high=64, tag="hop")

    def validate(self) -> None:
        super().validate()
        bits = self.rows * self.cols * self.operand_width
        if bits > 32768:
            raise ParamError(f"rows * cols * operand_width must be at most 32768 bits, a sub-tile of weights in one "
                             f"word, not {bits}", "cols")

    @property
    def groups(self) -> int:
        """Column groups, each one cycle behind its left neighbour."""
        return -(-self.cols // self.columns_per_hop)

    @property
    def pe(self) -> PEParams:
        """Parameters of the PEs."""
        return PEParams(**{f.name: getattr(self, f.name) for f in dataclasses.fields(PEParams)})


@dataclasses.dataclass(frozen=True, kw_only=True)
class ComputeEngineParams(PEArrayParams):
    """Parameters of the compute engine; each local memory has two halves of the given depth."""

    psum_width: int = param(32, "bits of a signed partial sum or result", low=8, high=64, tag="psum")
    activation_depth: int = param(512, "words of `rows` activations in half an activation memory",
                                  low=2, high=16384, tag="ad")
    weight_depth: int = param(512, "weights of each bank in half a weight memory", low=2, high=16384,
                              tag="wd")
    psum_depth: int = param(512, "rows of `cols` results in half a partial-sum or output memory",
                            low=2, high=16384, tag="pd")

    @property
    def k_max(self) -> int:
        """Largest K of one command: what the operand memories hold and a sum provably cannot overflow with."""
        held = min(self.activation_depth, self.weight_depth) * self.rows
        return min(held, largest_k(self.operand_width, self.acc_width), (1 << DIM_WIDTH) - 1)

    @property
    def k_total_max(self) -> int:
        """Largest K over accumulating commands: what a partial sum holds without overflow."""
        return largest_k(self.operand_width, self.psum_width)

    def validate(self) -> None:
        super().validate()
        for name in ("rows", "cols", "activation_depth", "weight_depth", "psum_depth"):
            value = getattr(self, name)
            if value & (value - 1):
                raise ParamError(f"{name} must be a power of two in an engine, not {value}", name)
        if self.psum_width < self.acc_width:
            raise ParamError(f"psum_width must be at least acc_width = {self.acc_width}, "
                             f"not {self.psum_width}", "psum_width")

    @property
    def array(self) -> PEArrayParams:
        """Parameters of the array."""
        return PEArrayParams(**{f.name: getattr(self, f.name) for f in dataclasses.fields(PEArrayParams)})


@dataclasses.dataclass(frozen=True, kw_only=True)
class FillControlParams(Params):
    """Parameters of the fill side of a double-buffered memory."""

    depth: int = param(512, "words in half the memory, a power of two", low=2, high=16384, tag="d")

    def validate(self) -> None:
        if self.depth & (self.depth - 1):
            raise ParamError(f"depth must be a power of two, not {self.depth}", "depth")
