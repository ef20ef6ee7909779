"""Standard cells: known counts, areas by module, and what is said when something is missing."""

from pathlib import Path
from typing import Any

import pytest
from amaranth.hdl import Module, Signal, signed
from amaranth.lib.wiring import In, Out

from gen.emit.emit import emit
from gen.errors import ToolError, UserError
from gen.flows import cells, doctor
from gen.flows.cells import CELL_FIGURES, module_areas, synthesize_cells
from gen.flows.synth import compare, synthesize
from rtl.tile.engine.pe_array import PEArray
from sim_models.params.tile.engine.pe_array import PEArrayParams
from tests.gen.emit_units import Named, Plain


def _register(width: int) -> Plain:
    def build(unit: Any, m: Module) -> None:
        m.d.sync += unit.y.eq(unit.a)
    return Plain({"a": In(width), "y": Out(width)}, build)


def _adder() -> Plain:
    def build(unit: Any, m: Module) -> None:
        m.d.sync += unit.y.eq(unit.a + unit.b)
    return Plain({"a": In(signed(8)), "b": In(signed(8)), "y": Out(signed(9))}, build)


def test_figures() -> None:
    figures = synthesize(_adder(), "osu018")
    assert tuple(figures) == (*CELL_FIGURES, "fmax_mhz")
    # 9 flip-flops of 96 um2, and some gates
    assert figures["ff"] == 9
    assert figures["cells"] > 30
    assert figures["area_um2"] > 9 * 96
    assert figures["nand2"] == round(figures["area_um2"] / 24)
    assert 200 < figures["fmax_mhz"] < 2000


def test_without_registers_there_is_no_clock() -> None:
    figures = synthesize(Named(), "osu018")
    assert figures["ff"] == 0
    assert figures["fmax_mhz"] is None


def test_more_bits_take_more_area() -> None:
    rows = compare({"four": _register(4), "eight": _register(8)}, "osu018")
    assert [row["ff"] for row in rows] == [4, 8]
    assert rows[1]["relative"]["ff"] == 1.0
    assert rows[1]["relative"]["area_um2"] == pytest.approx(1, abs=0.2)


def test_modules_apart() -> None:
    """A module is counted once for each instance, and all of them together are about the flat design."""
    p = PEArrayParams(rows=2, cols=3, operand_width=4, acc_width=12, columns_per_hop=1)
    design = emit(PEArray(p))
    areas = module_areas(design)
    assert areas[p.unit_name("pe_array")].instances == 1
    assert areas[p.pe.unit_name("pe")].instances == 6
    # 4 bits of weight, 8 of product, 12 of sum
    assert areas[p.pe.unit_name("pe")].flip_flops == 24 * 96
    total = sum(a.instances * (a.logic + a.flip_flops) for a in areas.values())
    assert total == pytest.approx(synthesize_cells(design)["area_um2"], rel=0.1)


def test_nets_with_two_names_are_timed() -> None:
    """Two registers that always hold the same become one with two names."""
    def build(unit: Any, m: Module) -> None:
        twin = Signal.like(unit.y)
        m.d.sync += [unit.y.eq(unit.a + 1), twin.eq(unit.a + 1), unit.z.eq(unit.y - twin + unit.a)]
    figures = synthesize(Plain({"a": In(8), "y": Out(8), "z": Out(8)}, build), "osu018")
    assert figures["ff"] == 16
    assert figures["fmax_mhz"] > 200


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    design = emit(_register(2))
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(ToolError) as error:
        synthesize_cells(design)
    assert str(error.value) == ("opensta is needed to estimate the clock with standard cells, and it is not on PATH: "
                                "install it with `apt install opensta`")
    gone = doctor.Check("osu018", "estimate areas in standard cells", "install it with `apt install x`",
                        doctor.file_there(tmp_path / "gone"), needed=False)
    monkeypatch.setattr(doctor, "CHECKS", (gone,))
    with pytest.raises(ToolError) as error:
        synthesize_cells(design)
    assert str(error.value) == ("osu018 is needed to estimate areas in standard cells, and there is no "
                                f"{tmp_path}/gone: install it with `apt install x`")


def test_a_failure_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "_TIMING", "read_liberty no.lib\n")
    with pytest.raises(ToolError, match=r"^OpenSTA failed: Error: .*no\.lib"):
        synthesize_cells(emit(_register(2)))


def test_nothing_is_placed() -> None:
    with pytest.raises(UserError, match="place and route is possible for ecp5 alone, not for osu018"):
        synthesize(emit(_register(2)), "osu018", place=True)
