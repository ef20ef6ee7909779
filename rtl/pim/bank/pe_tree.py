"""Adder tree over the lanes of a bank's processing element, registers behind every second level.

A lane's carry takes the carry input of an adder: of as many as there are lanes, one is left at the root for the
adder of the accumulator. Latency: half the levels, rounded up. Throughput: a sum a cycle. No reset.
"""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Signal, Value, signed
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from rtl.parts.pipeline import wire
from rtl.unit import Unit
from sim_models.params.pim.bank.pe_tree import PETreeParams

__all__ = ["PETree", "add"]


def add(a: Value, b: Value, carry: Value, width: int) -> Value:
    """``a + b + carry`` modulo 2^width, all signed."""
    a, b = _extend(a, width), _extend(b, width)
    if isinstance(carry, Const):
        return (a + b)[:width].as_signed()
    # the carry in is that of a bit below
    return (Cat(1, a) + Cat(carry, b))[1:width + 1].as_signed()


def _extend(value: Value, width: int) -> Value:
    return Cat(value, value[-1].replicate(width - len(value)))


class PETree(Unit):
    """Adder tree.

    Members
    -------
    terms: In(lanes x signed)
        As they come from the lanes.
    total: Out(signed)
    carries: In(lanes), carry: Out(1)
        To be added to terms and total; not with int8 alone, nor are the flags.
    positive, negative, nan: In(lanes); any_positive, any_negative, any_nan: Out(1)
        Whether some lane raises the flag.
    """

    block = "pe_tree"

    terms: Any
    total: Signal
    carries: Signal
    carry: Signal

    def __init__(self, params: PETreeParams | None = None) -> None:
        p = params or PETreeParams()
        self.p = p
        ports: dict[str, Any] = {"terms": In(data.ArrayLayout(signed(p.lane.term_width), p.lanes)),
                                 "total": Out(signed(p.lane.term_width + p.levels))}
        if p.format != "int8":
            ports |= {"carries": In(p.lanes), "carry": Out(1)}
            for name in ("positive", "negative", "nan"):
                ports |= {name: In(p.lanes), f"any_{name}": Out(1)}
        super().__init__(p, ports)

    def body(self, platform: Any) -> Module:
        m = Module()
        p = self.p
        terms = [_Term(self.terms[k], [self.carries[k]] if p.format != "int8" else []) for k in range(p.lanes)]
        for level in range(p.levels):
            terms = [_merge(m, *terms[k:k + 2], f"sum_{len(terms) // 2}_{k // 2}") for k in range(0, len(terms), 2)]
            if level % 2 or level == p.levels - 1:
                terms = [_registered(m, term, f"held_{len(terms)}_{k}") for k, term in enumerate(terms)]
        root = terms[0]
        m.d.comb += self.total.eq(root.value)
        if p.format != "int8":
            m.d.comb += self.carry.eq(root.carries[0])
            for name in ("positive", "negative", "nan"):
                flag = wire(m, getattr(self, name).any(), f"{name}_0")
                for k in range(p.latency):
                    flag = _held(m, flag, f"{name}_{k + 1}")
                m.d.comb += getattr(self, f"any_{name}").eq(flag)
        return m


class _Term:
    """A number, and carries that are still to be added to it."""

    def __init__(self, value: Value, carries: list[Value]) -> None:
        self.value, self.carries = value, carries


def _merge(m: Module, a: _Term, b: _Term, name: str) -> _Term:
    """Sum of two terms and one of their carries."""
    carry, *rest = [*a.carries, *b.carries] or [Const(0)]
    return _Term(wire(m, add(a.value, b.value, carry, len(a.value) + 1), name), rest)


def _registered(m: Module, term: _Term, name: str) -> _Term:
    return _Term(_held(m, term.value, name), [_held(m, c, f"{name}_{k}") for k, c in enumerate(term.carries)])


def _held(m: Module, value: Value, name: str) -> Signal:
    register = Signal(value.shape(), name=name, reset_less=True)
    m.d.sync += register.eq(value)
    return register
