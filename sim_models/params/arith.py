"""Parameters of the blocks in ``rtl/arith``.

Every block is a pipeline with a fixed number of places where registers can stand, the last one always taken;
``stages`` spreads that many registers evenly over them and is the block's latency in cycles.
"""

import dataclasses
from typing import Any

from sim_models.params.base import ParamError, Params, param

__all__ = ["LOG2_E", "ExactProductParams", "Exp2Params", "FloatAdderParams", "FloatComparatorParams",
           "FloatMaximumParams", "FloatMultiplierParams", "FloatToHalfParams", "FloatToIntParams",
           "HalfToFloatParams", "IntToFloatParams", "ReciprocalParams", "ReciprocalSqrtParams"]

#: float32 code of log2(e)
LOG2_E = 0x3FB8AA3B


def _stages(default: int, high: int) -> Any:
    return param(default, "pipeline registers from operands to result", low=1, high=high, tag="s")


def _half(default: str = "fp16") -> Any:
    return param(default, "16-bit format", choices=("fp16", "bf16"), tag="of_")


@dataclasses.dataclass(frozen=True, kw_only=True)
class FloatAdderParams(Params):
    """Parameters of a float32 adder."""

    stages: int = _stages(4, 6)


@dataclasses.dataclass(frozen=True, kw_only=True)
class FloatMultiplierParams(Params):
    """Parameters of a float32 multiplier."""

    stages: int = _stages(3, 3)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExactProductParams(Params):
    """Parameters of a multiplier of two 16-bit numbers into float32."""

    format: str = _half()
    stages: int = _stages(3, 3)


@dataclasses.dataclass(frozen=True, kw_only=True)
class FloatComparatorParams(Params):
    """Parameters of a float32 comparator."""

    stages: int = _stages(1, 2)


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


@dataclasses.dataclass(frozen=True, kw_only=True)
class FloatToIntParams(Params):
    """Parameters of a converter from float32 to a signed integer."""

    width: int = param(8, "bits of the integer", low=2, high=32, tag="w")
    stages: int = _stages(2, 3)


@dataclasses.dataclass(frozen=True, kw_only=True)
class IntToFloatParams(Params):
    """Parameters of a converter from a signed integer to float32."""

    width: int = param(32, "bits of the integer", low=2, high=32, tag="w")
    stages: int = _stages(3, 3)


@dataclasses.dataclass(frozen=True, kw_only=True)
class FloatToHalfParams(Params):
    """Parameters of a converter from float32 to a 16-bit format."""

    format: str = _half()
    stages: int = _stages(2, 2)


@dataclasses.dataclass(frozen=True, kw_only=True)
class HalfToFloatParams(Params):
    """Parameters of a converter from a 16-bit format to float32."""

    format: str = _half()
    stages: int = _stages(1, 2)


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


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReciprocalParams(Params):
    """Parameters of the reciprocal."""

    stages: int = _stages(6, 6)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReciprocalSqrtParams(Params):
    """Parameters of the reciprocal square root."""

    stages: int = _stages(8, 8)
