"""The Verilog is proven equal to the flat elaboration, and the proof notices when it is not."""

import dataclasses

import pytest

from gen.emit.emit import emit
from gen.errors import ToolError
from gen.flows.formal import prove_equivalent
from rtl.registry import BLOCKS
from tests.gen.emit_units import Fours, FoursParams, Grid, GridParams, Lookup, Mac, TwoClocks

ENGINE = {"rows": 2, "cols": 2, "activation_depth": 2, "weight_depth": 2, "psum_depth": 2}


def _block(name, **params):
    block = BLOCKS[name]
    return lambda: block.unit(block.params(**params))


@pytest.mark.parametrize(("make", "at_least"), [
    (Mac, 40), (TwoClocks, 50), (lambda: Lookup(contents=[3, 1, 4, 1]), 8),
    (lambda: Grid(GridParams(rows=2, cols=3, depth=4)), 300),
    (lambda: Fours(FoursParams(rows=1, cols=2, depth=4)), 1000),
    (_block("pe_array"), 5000),
    (_block("pe_array", rows=2, cols=3, modes="systolic"), 200),
    (_block("pe_array", rows=3, cols=2, modes="vector"), 200),
    (_block("compute_engine", **ENGINE), 1500),
], ids=["mac", "two_clocks", "lookup", "grid", "fours", "array", "array-systolic", "array-vector", "engine"])
def test_verilog_is_the_flat_elaboration(make, at_least):
    assert prove_equivalent(make(), emit(make())) >= at_least


def _changed(make, module, old, new):
    design = emit(make())
    text = design.modules[module]
    assert old in text
    return dataclasses.replace(design, modules={**design.modules, module: text.replace(old, new, 1)})


@pytest.mark.parametrize(("old", "new"), [
    ("$signed(total) + $signed", "$signed(total) - $signed"), ("$signed(a) * $signed(b)", "$signed(a) * b[7:0]"),
    ("mode == 2'h2", "mode == 2'h3"), ("else a_next <= a;", "else a_next <= b;"),
    ("    if (rst) a_next <= 8'h00;\n    else a_next <= a;", "    a_next <= a;")])
def test_other_logic_is_not_proven(old, new):
    with pytest.raises(ToolError, match=r"^the Verilog of mac is not proven equal to its flat elaboration: "):
        prove_equivalent(Mac(), _changed(Mac, "mac", old, new))


def test_other_wiring_of_instances_is_not_proven():
    def make():
        return Grid(GridParams(rows=1, cols=2, depth=4))

    design = _changed(make, "grid_r1_c2_d4", ".b(8'hff)", ".b(8'hfe)")
    with pytest.raises(ToolError, match="not proven equal"):
        prove_equivalent(make(), design)


def test_other_initial_value_is_noticed():
    with pytest.raises(ToolError, match=r"^register total of mac starts as 32'\S+ in the Verilog, not as "):
        prove_equivalent(Mac(), _changed(Mac, "mac", "total = 32'd4294967291;", "total = 32'd4294967290;"))


def test_a_proof_that_takes_too_long_is_stopped():
    with pytest.raises(ToolError, match=r"^Yosys did not finish within 0\.05 s and was stopped$"):
        prove_equivalent(Mac(), emit(Mac()), timeout=0.05)
