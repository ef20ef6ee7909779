"""Parameters that decide how wide an exact sum is."""

import dataclasses
from typing import Any

from sim_models.params.base import ParamError, Params, param

__all__ = ["ExactSumParams"]



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
