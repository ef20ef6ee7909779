"""Parameters of ``exp2``."""

import dataclasses

from sim_models.params.arith.stages import _stages
from sim_models.params.base import ParamError, Params, param

__all__ = ["Exp2Params"]



@dataclasses.dataclass(frozen=True, kw_only=True)
class Exp2Params(Params):
    """Parameters of the power of two."""

    format: str = param("float32", "format of operand and result", choices=("float32", "fp16"), tag="of_")
    stages: int = _stages(5, 6)

    def validate(self) -> None:
        if self.stages > self.cuts:
            raise ParamError(f"stages must be at most {self.cuts} for {self.format}, not {self.stages}", "stages")

    @property
    def cuts(self) -> int:
        """Places for registers: rounding to FP16 is a step of its own."""
        return 6 if self.format == "fp16" else 5

    @property
    def width(self) -> int:
        """Bits of operand and result."""
        return 16 if self.format == "fp16" else 32
