"""Parameters of the blocks in ``rtl/bus``."""

import dataclasses

from sim_models.params.base import Params, param

__all__ = ["AxiLiteParams"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class AxiLiteParams(Params):
    """Parameters of an AXI4-Lite slave of 32 bits."""

    address_width: int = param(8, "bits of a byte address", low=3, high=32, tag="a")
