"""Pieces of floating-point hardware: taking numbers apart, counting, shifting, rounding, packing."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Value

from rtl.parts.pick import pick
from rtl.parts.pipeline import wire
from sim_models.numerics.float32 import NAN

__all__ = ["Float32", "leading_zeros", "order_key", "pack_float32", "read_table", "round_nearest_even",
           "shift_right"]


class Float32:
    """A float32 code taken apart; subnormals count as zeros.

    Attributes
    ----------
    sign, is_zero, is_inf, is_nan: Value
    exponent: Value
        8 bits, biased by 127.
    mantissa: Value
        23 bits.
    significand: Value
        24 bits with the leading one; of a zero it is 0.
    """

    def __init__(self, m: Module, code: Value, name: str) -> None:
        self.mantissa, self.exponent, self.sign = code[:23], code[23:31], code[31]
        self.is_zero = wire(m, self.exponent == 0, f"{name}_is_zero")
        last = wire(m, self.exponent == 255, f"{name}_last_exponent")
        fraction = wire(m, self.mantissa != 0, f"{name}_has_fraction")
        self.is_inf, self.is_nan = last & ~fraction, last & fraction
        self.significand = wire(m, Mux(self.is_zero, 0, Cat(self.mantissa, 1)), f"{name}_significand")


def leading_zeros(m: Module, value: Value, name: str) -> Value:
    """Number of zeros above the highest one; any number if there is none."""
    # pairs of (bits of the count, whether there is a one), merged two by two from the top down
    padding = (1 << (len(value) - 1).bit_length()) - len(value)
    nodes: list[tuple[Value, Value]] = [(Const(0, 0), bit) for bit in reversed([*[Const(1)] * padding, *value])]
    while len(nodes) > 1:
        level = len(nodes)
        merged: list[tuple[Value, Value]] = []
        for k in range(0, level, 2):
            (high, there), (low, below) = nodes[k], nodes[k + 1]
            label = f"{name}_{level}_{k}"
            merged.append((wire(m, Cat(Mux(there, high, low), ~there), f"{label}_zeros"),
                           wire(m, there | below, f"{label}_any")))
        nodes = merged
    return nodes[0][0]


def shift_right(m: Module, value: Value, amount: Value, name: str) -> tuple[Value, Value]:
    """``value >> amount``, and whether a one was shifted out."""
    amount = wire(m, amount, f"{name}_amount")
    lost = Cat(bit & (amount > k) for k, bit in enumerate(value))
    return wire(m, value >> amount, name), lost.any()


def round_nearest_even(value: Value, below: Sequence[Any] = ()) -> tuple[Value, Value]:
    """Whether to round up a number without its lowest bit.

    Parameters
    ----------
    value:
        The number with one bit below the point.
    below:
        Bits or conditions further down: any that is 1 says that something is there.

    Returns
    -------
    tuple
        The number without that bit, and 1 if one is to be added.
    """
    return value[1:], value[0] & (value[1] | Cat(*below).any())


def pack_float32(m: Module, *, sign: Value, exponent: Value, significand: Value, below: Sequence[Any] = (),
                 zero: Any = 0, infinite: Any = 0, nan: Any = 0) -> Value:
    """Round to float32.

    Parameters
    ----------
    sign:
        Of the result, also of zeros and infinities.
    exponent:
        Biased by 127, signed; any value.
    significand:
        At most 25 bits, the leading one on top.
    below:
        Further bits, as for :func:`round_nearest_even`.
    zero, infinite, nan:
        The result is that instead, the last named first. A zero must not come with an exponent of 255 or more.
    """
    if len(significand) == 25:
        kept, up = round_nearest_even(significand, below)
        fraction = kept[:23]
        up = wire(m, up, "round_up")
        # a carry out of the fraction is the next exponent with fraction 0, as it should be; what it does to the
        # exponent's range is decided beside the adder and not after it
        carry = wire(m, up & fraction.all(), "round_carry")
    else:
        assert len(significand) <= 24
        assert not below
        fraction, up, carry = Cat(Const(0, 24 - len(significand)), significand[:-1]), Const(0), Const(0)
    code = wire(m, (Cat(fraction, exponent[:8]) + up)[:31], "rounded_code")
    is_zero = wire(m, (exponent < 0) | ((exponent == 0) & ~carry) | zero, "packs_zero")
    is_inf = wire(m, (exponent > 254) | ((exponent == 254) & carry) | infinite, "packs_infinity")
    body = Mux(is_inf, 0x7F800000, Mux(is_zero, 0, code))
    return Mux(nan, NAN, Cat(body[:31], sign))


def order_key(m: Module, code: Value, name: str) -> Value:
    """32 bits in the order of float32 numbers: NaN (1) is below -inf, -0 equals +0."""
    x = Float32(m, code, name)
    flipped = Cat(code[:31] ^ x.sign.replicate(31), ~x.sign)
    return wire(m, Mux(x.is_nan, 1, Mux(x.is_zero, 1 << 31, flipped)), f"{name}_key")


def read_table(m: Module, values: Sequence[int], width: int, index: Value, name: str) -> Value:
    """Word of a constant table, in LUTs."""
    # as multiplexers and not as a case, which tools like to put into a block RAM
    return wire(m, pick([Const(v, width) for v in values], index), name)
