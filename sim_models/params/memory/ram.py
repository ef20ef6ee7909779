"""Parameters of ``ram``."""

import dataclasses

from sim_models.params.base import Params, param

__all__ = ["RamParams"]



@dataclasses.dataclass(frozen=True, kw_only=True)
class RamParams(Params):
    """Parameters of a memory with one write and one read port."""

    width: int = param(8, "bits of a word", low=1, high=4096, tag="w")
    depth: int = param(1024, "words", low=2, high=1 << 20, tag="d")
    read_old: bool = param(True, "a word that is read while it is written: the old one; false: anything", tag="old")
