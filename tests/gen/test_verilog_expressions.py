"""Signs and widths: random expressions mean the same in Python, in Verilator and in Icarus.

The reference computes with Python's integers, never through Amaranth: it knows of a shape only what the
expression says of itself.
"""

import operator
import random
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from amaranth.hdl import Cat, Mux, Value, signed, unsigned
from amaranth.lib.wiring import In, Out

from gen.emit.emit import emit
from tb.common.native import NativeSim
from tests.designs.run import BUILDS
from tests.gen.emit_units import Plain

INPUTS = {"a": signed(8), "b": signed(5), "c": unsigned(8), "d": unsigned(3), "e": signed(1), "f": signed(13)}
EXPRESSIONS, VECTORS, SEED = 150, 400, 20


class Expr(NamedTuple):
    """The same expression for Amaranth, given the ports, and for Python, given their values."""

    value: Callable[[Any], Value]
    number: Callable[[dict[str, int]], int]
    text: str


def _leaf(name: str) -> Expr:
    return Expr(lambda u: getattr(u, name), lambda v: v[name], name)


def _constant(number: int) -> Expr:
    return Expr(lambda u: Value.cast(number), lambda v: number, str(number))


def _binary(symbol: str, function: Callable[[Any, Any], Any], left: Expr, right: Expr) -> Expr:
    return Expr(lambda u: function(left.value(u), right.value(u)),
                lambda v: int(function(left.number(v), right.number(v))), f"({left.text} {symbol} {right.text})")


def _shift(symbol: str, function: Callable[[Any, Any], Any], left: Expr, amount: str) -> Expr:
    return _binary(symbol, function, left, _leaf(amount))


def _divide(symbol: str, function: Callable[[Any, Any], Any], left: Expr, right: Expr) -> Expr:
    return _binary(symbol, lambda x, y: function(x, y) if not isinstance(y, int) or y else 0, left, right)


def _mux(test: Expr, yes: Expr, no: Expr) -> Expr:
    return Expr(lambda u: Mux(test.value(u), yes.value(u), no.value(u)),
                lambda v: yes.number(v) if test.number(v) else no.number(v),
                f"({test.text} ? {yes.text} : {no.text})")


def _resize(inner: Expr, width: int, sign: bool) -> Expr:
    """The low bits of a product with 2^width - 1, so that there are enough, read with the sign given."""
    wide = _binary("*", operator.mul, inner, _constant((1 << width) - 1))

    def number(v: dict[str, int]) -> int:
        low = wide.number(v) & ((1 << width) - 1)
        return low - (1 << width) if sign and low >> (width - 1) else low

    def value(u: Any) -> Value:
        low = Cat(wide.value(u)[:width])
        return low.as_signed() if sign else low

    return Expr(value, number, f"{'s' if sign else 'u'}{width}({wide.text})")


_BINARY = {"+": operator.add, "-": operator.sub, "*": operator.mul, "&": operator.and_, "|": operator.or_,
           "^": operator.xor, "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le,
           ">": operator.gt, ">=": operator.ge}


def _random(rng: random.Random, depth: int) -> Expr:
    if depth == 0 or rng.random() < 0.1:
        return _leaf(rng.choice(list(INPUTS))) if rng.random() < 0.85 else _constant(rng.randint(-40, 40))
    left, right = _random(rng, depth - 1), _random(rng, depth - 1)
    kind = rng.random()
    if kind < 0.6:
        symbol = rng.choice(list(_BINARY))
        return _binary(symbol, _BINARY[symbol], left, right)
    if kind < 0.7:
        return _shift(">>", operator.rshift, left, rng.choice("dc"))
    if kind < 0.75:
        return _shift("<<", operator.lshift, left, "d")
    if kind < 0.8:
        return _divide(*rng.choice([("//", operator.floordiv), ("%", operator.mod)]), left, _leaf(rng.choice("abf")))
    if kind < 0.9:
        return _mux(_random(rng, 1), left, right)
    return _resize(left, rng.randint(1, 12), rng.random() < 0.6)


def _cases() -> tuple[list[Expr], list[dict[str, int]]]:
    rng = random.Random(SEED)
    expressions = [_random(rng, 1 + k % 3) for k in range(EXPRESSIONS)]
    corners = {n: [s.signed and -(1 << (s.width - 1)), (1 << (s.width - s.signed)) - 1, 0, -1 if s.signed else 1]
               for n, s in INPUTS.items()}
    vectors = [{n: rng.choice(corners[n]) if rng.random() < 0.3 else
                rng.randint(int(corners[n][0]), corners[n][1]) for n in INPUTS} for _ in range(VECTORS)]
    return expressions, [{n: int(x) for n, x in v.items()} for v in vectors]


class Cases(NamedTuple):
    make: Callable[[], Plain]
    expressions: list[Expr]
    vectors: list[dict[str, int]]
    widths: list[int]
    #: (vectors, expressions): results as unsigned numbers
    expected: list[list[int]]


@pytest.fixture(scope="module")
def cases() -> Cases:
    expressions, vectors = _cases()
    probe = Plain({n: In(s) for n, s in INPUTS.items()}, None)
    probe.__dict__["_MustUse__used"] = True
    shapes = [Value.cast(e.value(probe)).shape() for e in expressions]

    def build(unit, m):
        for k, e in enumerate(expressions):
            m.d.comb += getattr(unit, f"y{k}").eq(e.value(unit))

    def make() -> Plain:
        outputs = {f"y{k}": Out(s) for k, s in enumerate(shapes)}
        return Plain({**{n: In(s) for n, s in INPUTS.items()}, **outputs}, build)

    numbers = [[e.number(v) for e in expressions] for v in vectors]
    for row in numbers:
        for shape, number, e in zip(shapes, row, expressions, strict=True):
            low = -(1 << (shape.width - 1)) if shape.signed else 0
            assert low <= number < low + (1 << shape.width), f"{e.text} = {number} is not {shape}"
    widths = [s.width for s in shapes]
    expected = [[n & ((1 << w) - 1) for n, w in zip(row, widths, strict=True)] for row in numbers]
    return Cases(make, expressions, vectors, widths, expected)


def _compare(cases: Cases, simulator: str, came: list[list[int]]) -> None:
    assert len(came) == VECTORS
    for vector, want, have in zip(cases.vectors, cases.expected, came, strict=True):
        for e, w, h in zip(cases.expressions, want, have, strict=True):
            assert h == w, f"{simulator}: {e.text} with {vector} is {h:#x}, not {w:#x} (seed {SEED})"


def test_verilator_agrees_with_python(cases):
    sim = NativeSim(cases.make(), BUILDS)
    came = []
    for vector in cases.vectors:
        for name, number in vector.items():
            sim.set(name, number & ((1 << INPUTS[name].width) - 1))
        sim.step()
        came.append([sim.get(f"y{k}") & ((1 << w) - 1) for k, w in enumerate(cases.widths)])
    _compare(cases, "Verilator", came)


def test_icarus_agrees_with_python(cases, tmp_path):
    design = emit(cases.make())
    (tmp_path / "plain.v").write_text(design.verilog)
    total = sum(s.width for s in INPUTS.values())
    (tmp_path / "in.hex").write_text("".join(f"{_pack(v):x}\n" for v in cases.vectors))
    ports = ", ".join(f".y{k}(y{k})" for k in range(EXPRESSIONS))
    ins, offset = [], 0
    for name, shape in INPUTS.items():
        ins.append(f".{name}(x[{offset + shape.width - 1}:{offset}])")
        offset += shape.width
    wires = "\n".join(f"  wire [{w - 1}:0] y{k};" for k, w in enumerate(cases.widths))
    formats = " ".join(["%h"] * EXPRESSIONS)
    (tmp_path / "tb.v").write_text(f"""module tb;
  reg [{total - 1}:0] vectors [0:{VECTORS - 1}];
  reg [{total - 1}:0] x;
  integer i;
{wires}
  plain dut({", ".join(ins)}, {ports});
  initial begin
    $readmemh("in.hex", vectors);
    for (i = 0; i < {VECTORS}; i = i + 1) begin
      x = vectors[i];
      #1 $display("{formats}", {", ".join(f"y{k}" for k in range(EXPRESSIONS))});
    end
  end
endmodule
""")
    _run(["iverilog", "-g2005", "-o", "tb", "tb.v", "plain.v"], tmp_path)
    output = _run(["vvp", "-n", "tb"], tmp_path)
    assert not re.search("[xz]", output)
    _compare(cases, "Icarus", [[int(word, 16) for word in line.split()] for line in output.splitlines()])


def _pack(vector: dict[str, int]) -> int:
    packed, offset = 0, 0
    for name, shape in INPUTS.items():
        packed |= (vector[name] & ((1 << shape.width) - 1)) << offset
        offset += shape.width
    return packed


def _run(command: list[str], folder: Path) -> str:
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, timeout=60).stdout


def test_the_cases_reach_what_they_are_for(cases):
    """Negative operands on both sides of every operator that asks for a sign, and results of both signs."""
    texts = " ".join(e.text for e in cases.expressions)
    for symbol in (*_BINARY, ">>", "<<", "//", "%", "?"):
        assert f" {symbol} " in texts
    assert np.mean([v[n] < 0 for v in cases.vectors for n in "abf"]) > 0.4
    assert len({tuple(row) for row in cases.expected}) > VECTORS * 0.9
