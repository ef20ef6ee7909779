"""Parameters of ``fifo``."""

import dataclasses

from sim_models.params.base import ParamError, Params, param

__all__ = ["FifoParams"]



@dataclasses.dataclass(frozen=True, kw_only=True)
class FifoParams(Params):
    """Parameters of a small queue in distributed memory."""

    width: int = param(8, "bits of a word", low=1, high=256, tag="w")
    depth: int = param(4, "words, a power of two", low=2, high=128, tag="d")

    def validate(self) -> None:
        if self.depth & (self.depth - 1):
            raise ParamError(f"depth must be a power of two, not {self.depth}", "depth")
        if self.width * self.depth > 4096:
            raise ParamError(f"width * depth must be at most 4096 bits in distributed memory, "
                             f"not {self.width * self.depth}", "depth")
