"""Large arrays are elaborated and named in work that grows with the number of PEs, counted and not timed."""

import importlib
import sys
from types import FrameType
from typing import Any

import pytest

from gen.emit.names import distinct, plain_names
from rtl.tile.engine.pe_array import PEArray
from rtl.tile.engine.weight_feeder import WeightFeeder
from sim_models.params.tile.engine.compute_engine import ComputeEngineParams

_dsl: Any = importlib.import_module("amaranth.hdl._dsl")


def _visited(rows: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Bits that Amaranth visits when statements of the feeder and the array are added."""
    visited = 0
    masks = _dsl.LHSMaskCollector.masks

    def counting(self: Any) -> Any:
        nonlocal visited
        for signal, mask in masks(self):
            visited += len(signal)
            yield signal, mask
    with monkeypatch.context() as patch:
        patch.setattr(_dsl.LHSMaskCollector, "masks", counting)
        p = ComputeEngineParams(rows=rows, cols=rows)
        for unit in (WeightFeeder(p), PEArray(p.array)):
            unit.__dict__["_MustUse__used"] = True
            module: Any = unit.body(None)
            module._MustUse__used = True
            for child in module._named_submodules.values():
                child[0]._MustUse__used = True
    return visited


def test_statements_grow_with_the_array(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four times the PEs: about four times the bits, where a statement a PE of one wide signal would take sixteen."""
    small, large = (_visited(rows, monkeypatch) for rows in (16, 32))
    assert 3 < large / small < 6


def _lines(function: Any, text: str) -> int:
    """Lines of Python that a call executes."""
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace
    sys.settrace(trace)
    try:
        function(text)
    finally:
        sys.settrace(None)
    return count


def test_equal_names_are_numbered_in_one_step_each() -> None:
    def text(count: int) -> str:
        nets = "".join(f"  wire \\a_$add_Y_{n} ;\n" for n in range(count))
        return f"module m(clk);\n{nets}endmodule\n"
    names = plain_names(text(300))
    assert "wire a_add;" in names.replace(" ;", ";")
    assert "wire a_add_299;" in names.replace(" ;", ";")
    assert _lines(plain_names, text(300)) < 2.5 * _lines(plain_names, text(150))


def test_equal_names_are_counted_in_order() -> None:
    text = "module \\m\n" + "".join(f"  wire width 2 \\a${n}\n" for n in (7, 3, 12)) + "end\n"
    assert distinct(text) == "module \\m\n  wire width 2 \\a$2\n  wire width 2 \\a$1\n  wire width 2 \\a$3\nend\n"
