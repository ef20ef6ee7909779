"""Parameters of ``pe_array``."""

import dataclasses

from sim_models.params.base import ParamError, param
from sim_models.params.tile.engine.pe import PEParams, _ArrayParams

__all__ = ["PEArrayParams"]



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
