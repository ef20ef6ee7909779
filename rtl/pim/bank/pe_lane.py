"""One lane of a bank's processing element: the exact product of two FP16 numbers, or those of two int8 pairs.

::

    a, b -> decode -> fine shift of a -> multiply -> coarse shift, inversion -> term

FP16: with both exponents added, the product stands at one of 59 places of an 80-bit field. The lower four bits of
the place shift one operand before the multiplier, where its wide input has room; what is left are steps of 16
behind it, in which each bit has at most three sources and takes, with the inversion of negative products, one
6-input LUT. A negative product leaves as its complement, to which ``carry`` is to be added.
Int8: the lower pair takes the same way at a fixed place, as a number of 35 bits modulo 2^35. The product of the upper
pair is put into the field at bit ``SPLIT``: fewer than 2^16 lower products never carry into it, and more than that
no sum has, for it would not fit 32 bits.

Infinite and NaN products have term 0 and are reported by flags. Latency: 4 cycles, with int8 alone 2.
Throughput: a pair of words a cycle, always. Registers have no reset: the parent knows when terms count.
"""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib.wiring import In, Out

from rtl.parts.pick import pick
from rtl.parts.pipeline import wire
from rtl.unit import Unit
from sim_models.params.pim.bank.pe_lane import PELaneParams

__all__ = ["FIELD", "SPLIT", "PELane"]

#: bits of the place for products
FIELD = 80
#: where the upper of two int8 products begins; from here on no bit has more than two other sources
SPLIT = 51
#: what an exponent sum of the lowest product is, and so how many bits of the product at place 0 are never used
_OFFSET = 2
_PRODUCT = 37


class PELane(Unit):
    """A lane.

    Members
    -------
    a, b: In(16)
        FP16 codes, or two int8 numbers each, the lower one in the low bits.
    int8: In(1)
        The format, where it is chosen at run time.
    term: Out(signed)
        FP16: the product in units of 2^-48, less ``carry``. Int8 beside FP16: the lower product in bits 0 to 34,
        the upper one from bit 51 on. Int8 alone: the sum of both.
    carry: Out(1)
        To be added to the term; not with int8 alone, nor are the flags.
    positive, negative, nan: Out(1)
        The product is +inf, -inf or NaN.
    """

    block = "pe_lane"

    a: Signal
    b: Signal
    int8: Signal
    term: Signal
    carry: Signal
    positive: Signal
    negative: Signal
    nan: Signal

    def __init__(self, params: PELaneParams | None = None) -> None:
        p = params or PELaneParams()
        self.p = p
        ports: dict[str, Any] = {"a": In(16), "b": In(16)}
        if p.format == "int8":
            ports["term"] = Out(signed(17))
        else:
            ports |= {"term": Out(signed(FIELD + 1)), "carry": Out(1), "positive": Out(1), "negative": Out(1),
                      "nan": Out(1)}
        if p.format == "both":
            ports["int8"] = In(1)
        super().__init__(p, ports)

    def body(self, platform: Any) -> Module:
        m = Module()
        if self.p.format == "int8":
            self._integers(m)
        else:
            self._floats(m)
        return m

    def _integers(self, m: Module) -> None:
        """Two products and their sum."""
        low = _register(m, _byte(self.a, 0) * _byte(self.b, 0), "low")
        high = _register(m, _byte(self.a, 1) * _byte(self.b, 1), "high")
        m.d.comb += self.term.eq(_register(m, low + high, "both"))

    def _floats(self, m: Module) -> None:
        both = self.p.format == "both"
        int8 = self.int8 if both else Const(0)

        # decode; the place of an int8 product is the lowest
        a, b = (_Half(m, code, int8, name) for code, name in ((self.a, "a"), (self.b, "b")))
        nan = wire(m, (a.last & (a.fraction | ~(b.hidden | b.fraction)))
                   | (b.last & (b.fraction | ~(a.hidden | a.fraction))), "decoded_nan")
        special = wire(m, a.last | b.last, "decoded_special")
        place = _register(m, Mux(int8, _OFFSET, a.exponent + b.exponent), "place")
        factor_a, factor_b = _register(m, a.number, "number_a"), _register(m, b.number, "number_b")
        sign = _register(m, (self.a[15] ^ self.b[15]) & ~int8, "decoded_sign")
        flags = _register(m, Mux(int8, 0, Cat(special & ~nan, nan)), "decoded_flags")

        # fine shift
        near = wire(m, pick([(factor_a << k).as_signed() for k in range(4)], place[:2])[:15].as_signed(), "near")
        far = pick([(near << (4 * k)).as_signed() for k in range(4)], place[2:4])[:27].as_signed()
        shifted = _register(m, Mux(flags.any(), 0, far), "shifted")
        multiplier = _register(m, factor_b, "multiplier")
        coarse = _register(m, place[4:], "coarse_1")
        sign = _register(m, sign, "sign_1")
        flags = _register(m, flags, "flags_1")

        # multiply
        product = _register(m, (shifted * multiplier)[:_PRODUCT + 1].as_signed(), "product")
        upper = self._upper(m, int8) if both else Const(0, signed(16))
        coarse = _register(m, coarse, "coarse_2")
        sign = _register(m, sign, "sign_2")
        flags = _register(m, flags, "flags_2")

        # coarse shift and inversion
        m.d.comb += [
            self.term.eq(_register(m, _place(m, product, upper, coarse, sign, both), "placed")),
            self.carry.eq(_register(m, sign, "sign_3")),
            Cat(self.positive, self.negative, self.nan).eq(
                _register(m, Cat(flags[0] & ~sign, flags[0] & sign, flags[1]), "flags_3")),
        ]

    def _upper(self, m: Module, int8: Value) -> Signal:
        """Product of the upper bytes, 0 with FP16, at the same time as the other product."""
        a, b = _register(m, _byte(self.a, 1), "upper_a"), _register(m, _byte(self.b, 1), "upper_b")
        counts = _register(m, int8, "upper_counts")
        a, b = _register(m, Mux(counts, a, 0).as_signed(), "upper_a_1"), _register(m, b, "upper_b_1")
        return _register(m, a * b, "upper_product")


class _Half:
    """An operand taken apart.

    Attributes
    ----------
    exponent: Value
        5 bits, 1 for subnormals.
    hidden, fraction, last: Value
        The significand's highest bit; some bit below it is 1; the exponent is that of infinities and NaNs.
    number: Value
        12 bits, signed: significand, or the lower int8 number.
    """

    def __init__(self, m: Module, code: Value, int8: Value, name: str) -> None:
        self.hidden = wire(m, code[10:15].any(), f"{name}_hidden")
        self.fraction = wire(m, code[:10].any(), f"{name}_fraction")
        self.last = wire(m, code[10:15].all(), f"{name}_last")
        self.exponent = Cat(code[10] | ~self.hidden, code[11:15])
        self.number = Cat(code[:8], Mux(int8, code[7].replicate(4), Cat(code[8:10], self.hidden, 0))).as_signed()


def _byte(word: Value, index: int) -> Value:
    return word[8 * index:8 * index + 8].as_signed()


def _register(m: Module, value: Any, name: str) -> Signal:
    value = Value.cast(value)
    register = Signal(value.shape(), name=name, reset_less=True)
    m.d.sync += register.eq(value)
    return register


def _place(m: Module, product: Value, upper: Value, coarse: Value, sign: Value, both: bool) -> Value:
    """The product at 16 times ``coarse``, inverted where the sign says so."""
    # by words, not by bits: a simulator's code for 80 bits put together one by one is a hundred times as long
    words: list[Value] = [(product[:_PRODUCT] << (16 * c))[_OFFSET:_OFFSET + FIELD] for c in range(4)]
    above_high, fill = sign, sign.replicate(FIELD)
    if both:
        # above the upper product there are copies of its sign; of the lower one's there are enough in it
        above_high = wire(m, sign ^ upper[-1], "above_high")
        top = SPLIT + len(upper)
        words[0] = Cat(product[_OFFSET:_PRODUCT], Const(0, SPLIT - (_PRODUCT - _OFFSET)), upper)
        fill = Cat(sign.replicate(top), above_high.replicate(FIELD - top))
    return Cat(pick(words, coarse)[:FIELD] ^ fill, above_high).as_signed()
