"""Comparator of two float32 numbers: less, equal, or not to be ordered.

::

    a, b -> keys -> compare -> less, equal, unordered
                 ^          ^
                (registers: `stages` of these two places)

Subnormals are zeros, and -0 equals +0. A NaN is neither less than anything nor equal to anything.

Latency: ``stages`` cycles. Throughput: one comparison a cycle. Back-pressure: see :mod:`rtl.parts.pipeline`.
"""

from typing import Any

from amaranth.hdl import Module, Signal

from rtl.parts.float import Float32, order_key
from rtl.parts.pipeline import Pipeline, pipeline_ports
from rtl.unit import Unit
from sim_models.params.arith.float_comparator import FloatComparatorParams

__all__ = ["FloatComparator"]


class FloatComparator(Unit):
    """Comparator of float32 codes.

    Members
    -------
    enable, i_valid, o_valid: See :func:`rtl.parts.pipeline.pipeline_ports`.
    a: In(32)
        First operand, float32 code.
    b: In(32)
        Second operand, float32 code.
    less: Out(1)
        ``a < b``.
    equal: Out(1)
        ``a == b``.
    unordered: Out(1)
        Either is NaN; the other two are 0 then.
    """

    block = "float_comparator"

    enable: Signal
    i_valid: Signal
    a: Signal
    b: Signal
    o_valid: Signal
    less: Signal
    equal: Signal
    unordered: Signal

    def __init__(self, params: FloatComparatorParams | None = None) -> None:
        p = params or FloatComparatorParams()
        self.p = p
        super().__init__(p, pipeline_ports({"a": 32, "b": 32}, {"less": 1, "equal": 1, "unordered": 1}))

    def body(self, platform: Any) -> Module:
        m = Module()
        pipe = Pipeline(m, self, 2, self.p.stages)
        nan = Float32(m, self.a, "a_parts").is_nan | Float32(m, self.b, "b_parts").is_nan
        s = pipe.cut(a=order_key(m, self.a, "a"), b=order_key(m, self.b, "b"), nan=nan)
        s = pipe.cut(less=(s.a < s.b) & ~s.nan, equal=(s.a == s.b) & ~s.nan, unordered=s.nan)
        m.d.comb += [self.less.eq(s.less), self.equal.eq(s.equal), self.unordered.eq(s.unordered)]
        return m
