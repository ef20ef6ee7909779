"""Blocks that device families have, as instances, with a model of each for simulation.

``dsp48``: DSP48E1 and DSP48E2 of AMD. ``mult18x18d``: the multiplier of Lattice ECP5. ``models``: Verilog of a model
of each block. Only emitted Verilog has instances; a unit that uses one describes the same registers for Python's
simulator and for proofs.
"""

from typing import Any

from amaranth.hdl import Cat

__all__ = ["sign_extended"]


def sign_extended(value: Any, width: int) -> Any:
    """The bits of a signed number in ``width`` bits."""
    return Cat(value, value[-1].replicate(width - len(value)))
