"""What a bench needs of a simulated engine; :mod:`tb.tile.engine.engine_meter` provides it."""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np

    from gen.emit.emit import Design
    from sim_models.params.tile.engine.compute_engine import ComputeEngineParams

__all__ = ["Measured", "Meter", "MeterFactory", "PassMeasured"]


@dataclasses.dataclass(frozen=True)
class Measured:
    """One GEMM, measured alone and back to back.

    Members
    -------
    cycles: int
        From the first operand to the last result, both included.
    interval: float
        Cycles between the ends of equal GEMMs that follow each other, once this has settled.
    array: int
        Cycles of such an interval for which the model says that the array is occupied; an interval that is longer
        is bound by something else.
    commands: int
        Commands that the GEMM is split into.
    resident: bool
        Back to back, the operands stayed in the local memories (one command); else every command's operands were
        streamed in while the one before was computed.
    """

    cycles: int
    interval: float
    array: int
    commands: int
    resident: bool


@dataclasses.dataclass(frozen=True)
class PassMeasured:
    """Several GEMMs in one queue, their operands streamed in at a word of each memory a cycle.

    Members
    -------
    busy: int
        Sum over all commands of the cycles from first operand to last result.
    total: int
        Cycles from the first beat of the first operand to the last beat of the last result.
    interval: int
        Cycles between the ends of two such queues that follow each other; 0 when there was one.
    """

    busy: int
    total: int
    interval: int


class Meter(Protocol):
    """A simulated engine that checks every value and every cycle count against the models."""

    p: "ComputeEngineParams"
    #: result elements compared so far
    compared: int

    def measure(self, x: "np.ndarray", w: "np.ndarray", mode: str) -> Measured:
        """x [M, K] times w [K, N], alone and back to back."""
        ...

    def measure_pass(self, gemms: "Sequence[tuple[str, np.ndarray, np.ndarray]]", mode: str = "auto",
                     repeats: int = 2) -> PassMeasured:
        """Names, activations and weights of several GEMMs in one queue, ``repeats`` times."""
        ...


class MeterFactory(Protocol):
    """Builds engines."""

    def __call__(self, p: "ComputeEngineParams", design: "Design | None" = None) -> Meter:
        """The engine with parameters ``p``, from its Verilog where that has been emitted already."""
        ...
