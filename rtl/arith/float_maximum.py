"""Largest of several float32 numbers and its index, by a tree of comparators.

::

    values, present -> keys -> halve -> ... -> halve -> number, index, found
                            ^        ^               ^
                           (registers: `stages` of these places, one more than the tree has levels)

The lowest index wins among equals, and -0 equals +0. A NaN wins only where no number is present. Lanes that are
not present do not count: a last beat need not be full.

Latency: ``stages`` cycles. Throughput: one maximum a cycle. Back-pressure: see :mod:`rtl.parts.pipeline`.
"""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data

from rtl.parts.float import order_key
from rtl.parts.pipeline import Pipeline, pipeline_ports, wire
from rtl.unit import Unit
from sim_models.numerics.float32 import NAN
from sim_models.params.arith.float_maximum import FloatMaximumParams

__all__ = ["FloatMaximum"]


class FloatMaximum(Unit):
    """Maximum of ``lanes`` float32 codes.

    Members
    -------
    enable, i_valid, o_valid: See :func:`rtl.parts.pipeline.pipeline_ports`.
    values: In(ArrayLayout(32, lanes))
        Float32 codes, a number a lane.
    present: In(lanes)
        Lanes that count, a bit each.
    found: Out(1)
        A lane was present.
    number: Out(32)
        The largest, float32 code; +0 if it is a zero; NaN if all present are, or none is.
    index: Out(range(lanes))
        Its lane; 0 if none was present. Not there if ``lanes`` is 1.
    """

    block = "float_maximum"

    enable: Signal
    i_valid: Signal
    values: Signal
    present: Signal
    o_valid: Signal
    found: Signal
    number: Signal
    index: Signal

    def __init__(self, params: FloatMaximumParams | None = None) -> None:
        p = params or FloatMaximumParams()
        self.p = p
        super().__init__(p, pipeline_ports(
            {"values": data.ArrayLayout(32, p.lanes), "present": p.lanes},
            {"found": 1, "number": 32, "index": range(p.lanes)}))

    def body(self, platform: Any) -> Module:
        m = Module()
        lanes = self.p.lanes
        pipe = Pipeline(m, self, self.p.cuts, self.p.stages)

        keys = {f"key{k}": Mux(self.present[k], order_key(m, self.values[k], f"lane{k}"), 0)
                for k in range(lanes)}
        s = pipe.cut(**keys)
        nodes: list[tuple[Value, Value]] = [(getattr(s, f"key{k}"), Const(0, 0)) for k in range(lanes)]
        while len(nodes) > 1:
            values: dict[str, Any] = {}
            for k in range(0, len(nodes) - 1, 2):
                (left, left_index), (right, right_index) = nodes[k], nodes[k + 1]
                later = wire(m, right > left, f"later_{len(nodes)}_{k}")
                values[f"key{k // 2}"] = Mux(later, right, left)
                values[f"index{k // 2}"] = Cat(Mux(later, right_index, left_index), later)
            if len(nodes) % 2:
                # alone at the end of its level: the lower half of a pair without an upper one
                key, index = nodes[-1]
                values[f"key{len(nodes) // 2}"] = key
                values[f"index{len(nodes) // 2}"] = Cat(index, Const(0, 1))
            s = pipe.cut(**values)
            nodes = [(getattr(s, f"key{k}"), getattr(s, f"index{k}")) for k in range((len(nodes) + 1) // 2)]

        key, index = nodes[0]
        number = Cat(key[:31] ^ (~key[31]).replicate(31), ~key[31])
        m.d.comb += [self.found.eq(key != 0), self.number.eq(Mux(key[1:] == 0, NAN, number)),
                     self.index.eq(index)]
        return m
