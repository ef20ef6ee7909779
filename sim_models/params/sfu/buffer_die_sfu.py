"""Parameters of the special function unit on the buffer die (SADDLE III)."""

import dataclasses

from sim_models.params.arith.exp2 import Exp2Params
from sim_models.params.arith.float_adder import FloatAdderParams
from sim_models.params.arith.float_maximum import FloatMaximumParams
from sim_models.params.arith.float_multiplier import FloatMultiplierParams
from sim_models.params.arith.float_to_half import FloatToHalfParams
from sim_models.params.arith.int_to_float import IntToFloatParams
from sim_models.params.arith.reciprocal import ReciprocalParams
from sim_models.params.arith.reciprocal_sqrt import ReciprocalSqrtParams
from sim_models.params.arith.stages import LOG2_E
from sim_models.params.base import ParamError, Params, param
from sim_models.params.memory.ram import RamParams

__all__ = ["GELU_CUBIC", "GELU_RATIO", "LOG2_E", "ONE", "BufferDieSfuParams"]

#: float32 codes: 1, and the two constants of GELU in its tanh form, which is x / (1 + 2^z) with
#: z = GELU_CUBIC * x * (x^2 + GELU_RATIO), GELU_CUBIC = -2 sqrt(2/pi) log2(e) * 0.044715, GELU_RATIO = 1 / 0.044715
ONE, GELU_CUBIC, GELU_RATIO = 0x3F800000, 0xBDD2D3E8, 0x41B2E92F


@dataclasses.dataclass(frozen=True, kw_only=True)
class BufferDieSfuParams(Params):
    """Parameters of the special function unit and of its parts."""

    lanes: int = param(4, "float32 numbers a cycle, a power of two", low=1, high=16, tag="n")
    max_length: int = param(2048, "numbers of the longest row, a multiple of the lanes", low=2, high=1 << 16, tag="m")

    def validate(self) -> None:
        if self.lanes & (self.lanes - 1):
            raise ParamError(f"lanes must be a power of two, not {self.lanes}", "lanes")
        if self.max_length % self.lanes or self.max_length < 2 * self.lanes:
            raise ParamError(f"max_length must be a multiple of {self.lanes} lanes, at least {2 * self.lanes}, "
                             f"not {self.max_length}", "max_length")

    @property
    def words(self) -> int:
        """Beats of the longest row."""
        return self.max_length // self.lanes

    @property
    def levels(self) -> int:
        """Levels of the adder tree."""
        return self.lanes.bit_length() - 1

    @property
    def length_width(self) -> int:
        """Bits of a row's length."""
        return self.max_length.bit_length()

    @property
    def adder(self) -> FloatAdderParams:
        """All sums. The six stages of one are also the six partial sums over the words of a row."""
        return FloatAdderParams(stages=6)

    @property
    def multiplier(self) -> FloatMultiplierParams:
        """All products."""
        return FloatMultiplierParams(stages=3)

    @property
    def exp2(self) -> Exp2Params:
        """Powers of two."""
        return Exp2Params(format="float32", stages=5)

    @property
    def reciprocal(self) -> ReciprocalParams:
        """Divisions."""
        return ReciprocalParams(stages=6)

    @property
    def reciprocal_sqrt(self) -> ReciprocalSqrtParams:
        """Divisions by a root."""
        return ReciprocalSqrtParams(stages=8)

    @property
    def maximum(self) -> FloatMaximumParams:
        """Maximum of a word."""
        return FloatMaximumParams(lanes=self.lanes, stages=min(2, self.levels + 1))

    @property
    def to_float(self) -> IntToFloatParams:
        """Length of a row to float32."""
        return IntToFloatParams(width=self.length_width + 1, stages=3)

    @property
    def to_half(self) -> FloatToHalfParams:
        """Results to FP16."""
        return FloatToHalfParams(format="fp16", stages=1)

    @property
    def ram(self) -> RamParams:
        """The row."""
        return RamParams(width=32 * self.lanes, depth=self.words)
