"""Parameters of the blocks in ``rtl/pim`` (SADDLE IV-C)."""

import dataclasses
from typing import Any

from sim_models.params.base import ParamError, Params, param
from sim_models.params.dram import DramBankParams
from sim_models.params.sfu import BufferDieSfuParams

__all__ = ["BankGroupParams", "BankPEParams", "BufferDieSfuParams", "DramBankParams", "ExactSumParams",
           "PELaneParams", "PETreeParams", "PimStackParams", "PseudoChannelParams", "SumRounderParams"]


def _format() -> Any:
    return param("both", "what the operands are; both: chosen at run time", choices=("fp16", "int8", "both"),
                 tag="of_")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExactSumParams(Params):
    """What decides how wide an exact sum is.

    An FP16 product is a multiple of 2^-48 below 2^32, so sums in units of 2^-48 are exact; int8 products are
    integers.
    """

    format: str = _format()
    lanes: int = param(16, "FP16 numbers in a word, a power of two; int8 numbers are twice as many", low=1, high=64,
                       tag="n")
    terms_width: int = param(12, "bits of the number of words that go into one sum, in all banks together: at most "
                             "2^terms_width - 1", low=1, high=24, tag="t")

    def validate(self) -> None:
        if self.lanes & (self.lanes - 1):
            raise ParamError(f"lanes must be a power of two, not {self.lanes}", "lanes")
        if self.int8 and self.integer_width > 32:
            most = next(w for w in reversed(range(self.terms_width))
                        if self._largest_integer(w).bit_length() < 32)
            raise ParamError(f"terms_width must be at most {most} with {self.lanes} lanes of int8 pairs, so that "
                             f"every sum fits 32 bits, not {self.terms_width}", "terms_width")

    @property
    def fp16(self) -> bool:
        """Whether words can hold FP16 numbers."""
        return self.format != "int8"

    @property
    def int8(self) -> bool:
        """Whether words can hold int8 numbers."""
        return self.format != "fp16"

    @property
    def both(self) -> bool:
        """Whether the format is chosen at run time."""
        return self.format == "both"

    @property
    def word_width(self) -> int:
        """Bits of a word: number i is at bits 16i (FP16) or 8i (int8)."""
        return 16 * self.lanes

    @property
    def integer_width(self) -> int:
        """Signed bits that no sum of int8 products exceeds."""
        return self._largest_integer(self.terms_width).bit_length() + 1

    @property
    def acc_width(self) -> int:
        """Signed bits that no sum exceeds: of the raw value of an exact sum."""
        if not self.fp16:
            return self.integer_width
        largest = (((1 << self.terms_width) - 1) * self.lanes * 2047 * 2047) << 58
        return largest.bit_length() + 1

    def _largest_integer(self, terms_width: int) -> int:
        """Largest sum of products of int8 pairs: all are -128."""
        return ((1 << terms_width) - 1) * 2 * self.lanes << 14


@dataclasses.dataclass(frozen=True, kw_only=True)
class BankPEParams(ExactSumParams):
    """Parameters of the processing element of a bank."""

    accumulators: int = param(32, "sums that are kept, a power of two", low=2, high=256, tag="a")

    def validate(self) -> None:
        super().validate()
        if self.accumulators & (self.accumulators - 1):
            raise ParamError(f"accumulators must be a power of two, not {self.accumulators}", "accumulators")

    @property
    def index_width(self) -> int:
        """Bits of an accumulator's number."""
        return self.accumulators.bit_length() - 1

    @property
    def latency(self) -> int:
        """Cycles from a step to when a read may begin that is to find it in its accumulator."""
        return self.lane.latency + self.tree.latency + 1

    @property
    def read_latency(self) -> int:
        """Cycles from ``read_en`` to ``sum``."""
        return 2

    @property
    def lane(self) -> "PELaneParams":
        """Parameters of the lanes."""
        return PELaneParams(format=self.format)

    @property
    def tree(self) -> "PETreeParams":
        """Parameters of the adder tree over the lanes."""
        return PETreeParams(format=self.format, lanes=self.lanes)


@dataclasses.dataclass(frozen=True, kw_only=True)
class PELaneParams(Params):
    """Parameters of one lane of the processing element."""

    format: str = _format()

    @property
    def latency(self) -> int:
        """Cycles from operands to term."""
        return 2 if self.format == "int8" else 4

    @property
    def term_width(self) -> int:
        """Signed bits of a term."""
        return 17 if self.format == "int8" else 81


@dataclasses.dataclass(frozen=True, kw_only=True)
class PETreeParams(Params):
    """Parameters of the adder tree of the processing element."""

    format: str = _format()
    lanes: int = param(16, "terms to add, a power of two", low=1, high=64, tag="n")

    @property
    def levels(self) -> int:
        """Levels of adders."""
        return self.lanes.bit_length() - 1

    @property
    def latency(self) -> int:
        """Cycles from terms to total."""
        return (self.levels + 1) // 2

    @property
    def lane(self) -> PELaneParams:
        """Parameters of the lanes."""
        return PELaneParams(format=self.format)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SumRounderParams(ExactSumParams):
    """Parameters of what rounds an exact sum."""

    stages: int = param(4, "pipeline registers from sum to result", low=1, high=4, tag="s")


@dataclasses.dataclass(frozen=True, kw_only=True)
class BankGroupParams(BankPEParams, DramBankParams):
    """Parameters of a bank group: four banks, each with its processing element."""

    def validate(self) -> None:
        BankPEParams.validate(self)
        DramBankParams.validate(self)

    @property
    def bank(self) -> DramBankParams:
        """Parameters of the banks."""
        return DramBankParams(**{f.name: getattr(self, f.name) for f in dataclasses.fields(DramBankParams)})

    @property
    def pe(self) -> BankPEParams:
        """Parameters of the processing elements."""
        return BankPEParams(**{f.name: getattr(self, f.name) for f in dataclasses.fields(BankPEParams)})


@dataclasses.dataclass(frozen=True, kw_only=True)
class PseudoChannelParams(BankGroupParams):
    """Parameters of a pseudo-channel: four bank groups in lockstep, the global buffer and what steers them."""

    buffer_words: int = param(512, "words of the global buffer, a power of two", low=8, high=4096, tag="gb")

    def validate(self) -> None:
        super().validate()
        if self.buffer_words & (self.buffer_words - 1):
            raise ParamError(f"buffer_words must be a power of two, not {self.buffer_words}", "buffer_words")
        if self.accumulators < 4:
            raise ParamError(f"accumulators must be at least 4 in a pseudo-channel, for two halves, "
                             f"not {self.accumulators}", "accumulators")

    @property
    def half(self) -> int:
        """Accumulators in half a processing element's."""
        return self.accumulators // 2

    @property
    def group(self) -> BankGroupParams:
        """Parameters of the bank groups."""
        return BankGroupParams(**{f.name: getattr(self, f.name) for f in dataclasses.fields(BankGroupParams)})


@dataclasses.dataclass(frozen=True, kw_only=True)
class PimStackParams(PseudoChannelParams):
    """Parameters of a stack: pseudo-channels, the special function unit, and what lies between them."""

    pseudo_channels: int = param(4, "pseudo-channels; a stack of SADDLE has 64", low=1, high=64, tag="p")
    sfu_length: int = param(2048, "numbers of the longest row of the special function unit, a multiple of 4", low=8,
                            high=1 << 15, tag="m")

    def validate(self) -> None:
        super().validate()
        if self.lanes < 4:
            raise ParamError(f"lanes must be at least 4 in a stack, which has 4 results a beat, not {self.lanes}",
                             "lanes")
        if self.sfu_length % 4:
            raise ParamError(f"sfu_length must be a multiple of 4, not {self.sfu_length}", "sfu_length")

    @property
    def channel(self) -> PseudoChannelParams:
        """Parameters of the pseudo-channels."""
        return PseudoChannelParams(**{f.name: getattr(self, f.name) for f in dataclasses.fields(PseudoChannelParams)})

    @property
    def sfu(self) -> BufferDieSfuParams:
        """Parameters of the special function unit."""
        return BufferDieSfuParams(lanes=4, max_length=self.sfu_length)

    @property
    def rounder(self) -> SumRounderParams:
        """Parameters of the rounders."""
        return SumRounderParams(format=self.format, lanes=self.lanes, terms_width=self.terms_width)
