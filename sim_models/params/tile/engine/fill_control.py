"""Parameters of ``fill_control``."""

import dataclasses

from sim_models.params.base import ParamError, Params, param

__all__ = ["FillControlParams"]



@dataclasses.dataclass(frozen=True, kw_only=True)
class FillControlParams(Params):
    """Parameters of the fill side of a double-buffered memory."""

    depth: int = param(512, "words in half the memory, a power of two", low=2, high=16384, tag="d")

    def validate(self) -> None:
        if self.depth & (self.depth - 1):
            raise ParamError(f"depth must be a power of two, not {self.depth}", "depth")
