"""Parameters of ``compute_engine``."""

import dataclasses

from sim_models.params.base import ParamError, param
from sim_models.params.tile.engine.pe import largest_k
from sim_models.params.tile.engine.pe_array import PEArrayParams

__all__ = ["DIM_WIDTH", "ComputeEngineParams"]

#: bits of M, K and N in a command
DIM_WIDTH = 16


@dataclasses.dataclass(frozen=True, kw_only=True)
class ComputeEngineParams(PEArrayParams):
    """Parameters of the compute engine; each local memory has two halves of the given depth."""

    rows: int = param(8, "PE rows, a power of two; also operands of one dot product step in vector-lane mode", low=2,
                      high=64, tag="r")
    cols: int = param(8, "PE columns, a power of two; outputs computed side by side", low=1, high=64, tag="c")
    psum_width: int = param(32, "bits of a signed partial sum or result", low=8, high=64, tag="psum")
    activation_depth: int = param(512, "words of `rows` activations in half an activation memory, a power of two",
                                  low=2, high=16384, tag="ad")
    weight_depth: int = param(512, "weights of each bank in half a weight memory, a power of two", low=2,
                              high=16384, tag="wd")
    psum_depth: int = param(512, "rows of `cols` results in half a partial-sum or output memory, a power of two",
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
