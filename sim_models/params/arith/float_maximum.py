"""Parameters of ``float_maximum``."""

import dataclasses

from sim_models.params.arith.stages import _stages
from sim_models.params.base import ParamError, Params, param

__all__ = ["FloatMaximumParams"]



@dataclasses.dataclass(frozen=True, kw_only=True)
class FloatMaximumParams(Params):
    """Parameters of a tree that finds the largest of several float32 numbers."""

    lanes: int = param(8, "numbers a cycle", low=1, high=64, tag="n")
    stages: int = _stages(2, 7)

    def validate(self) -> None:
        if self.stages > self.cuts:
            raise ParamError(f"stages must be at most {self.cuts} with {self.lanes} lanes, not {self.stages}",
                             "stages")

    @property
    def cuts(self) -> int:
        """Places for registers: behind the operands' keys, and behind each level of the tree."""
        return (self.lanes - 1).bit_length() + 1
