"""The emitter: one readable, reproducible module per unit, and refusals in one sentence."""

import dataclasses
import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib.wiring import In, Out, Signature

from gen.emit import emit as emit_module
from gen.emit.emit import Design, Port, emit, to_rtlil
from gen.errors import EmitError
from rtl.registry import BLOCKS
from rtl.tile.engine.compute_engine import ComputeEngine
from tests.gen.emit_units import (
    FourEngines,
    Fours,
    FoursParams,
    Grid,
    GridParams,
    Lookup,
    Mac,
    MacParams,
    Named,
    Plain,
    TwoClocks,
)

ROOT = Path(__file__).parents[2]
SMALL = {"rows": 2, "cols": 2, "depth": 4}


def _array_params():
    """The array in every mode and shape that changes its modules."""
    base = BLOCKS["pe_array"].params(rows=2, cols=3)
    return [base, base.replace(modes="systolic"), base.replace(modes="vector"), base.replace(operand_width=4),
            base.replace(rows=4), base.replace(columns_per_hop=1)]


def test_equal_units_are_one_module(monkeypatch):
    bodies = []
    for unit in (Mac, Grid):
        monkeypatch.setattr(unit, "body", _counted(unit.body, bodies))
    design = emit(Fours())
    assert list(design.modules) == ["mac", "grid", "fours"]
    assert design.top == "fours"
    # four grids of 64 Macs: every unit is elaborated once, so four cost what one does and a top
    assert bodies == ["grid", "mac"]
    assert [child for _, child in design.instances["fours"]] == ["grid"] * 4
    assert [child for _, child in design.instances["grid"]] == ["mac"] * 64
    assert design.verilog.count("endmodule") == 3
    assert len(design.modules["fours"]) < 3000


def test_four_engines_cost_a_top_more_than_one():
    """In modules and in text; a command's time follows from both (every unit is elaborated once)."""
    one, four = emit(ComputeEngine()), emit(FourEngines())
    assert list(four.modules) == [*one.modules, "four_engines"]
    assert all(four.modules[name] == text for name, text in one.modules.items())
    assert len(four.verilog) < 1.3 * len(one.verilog)


def _counted(body, log):
    def counted(self, platform):
        log.append(self.block)
        return body(self, platform)
    return counted


@pytest.fixture(scope="module")
def everything() -> Design:
    """A design that has every block of the registry, with its default parameters, and two units of the tests."""
    return _everything()


def _everything() -> Design:
    def build(unit, m):
        m.submodules += [Fours(), TwoClocks(), *(b.unit(b.params()) for b in BLOCKS.values())]
        m.d.comb += unit.y.eq(1)
    return emit(Plain({"y": Out(1)}, build))


_HASHES = """
import hashlib, sys
from tests.gen.test_emit import _everything
for name, text in _everything().modules.items():
    print(name, hashlib.sha256(text.encode()).hexdigest())
"""


@pytest.mark.xdist_group("everything")
def test_reproducible_over_hash_seeds_folders_and_a_foreign_yosys(everything, tmp_path):
    """Two processes and this one, whose hash seed is random if nobody has set it."""
    fake = tmp_path / "bin" / "yosys"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\necho Yosys 9.99; exit 1\n")
    fake.chmod(0o755)
    want = "".join(f"{name} {hashlib.sha256(text.encode()).hexdigest()}\n"
                   for name, text in everything.modules.items())
    assert {BLOCKS[b].params().unit_name(b) for b in BLOCKS} < set(everything.modules)
    for seed in "0", "4711":
        folder = tmp_path / f"folder {seed}"
        folder.mkdir()
        env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT),
               "PATH": f"{fake.parent}{os.pathsep}{os.environ['PATH']}", "TMPDIR": str(folder)}
        run = subprocess.run([sys.executable, "-c", _HASHES], cwd=folder, env=env, text=True, check=True,
                             stdout=subprocess.PIPE)
        assert run.stdout == want
        assert not list(folder.iterdir())


@pytest.mark.xdist_group("everything")
def test_text_is_readable(everything):
    assert len(everything.modules) > len(BLOCKS)
    for name, text in everything.modules.items():
        if name == everything.top:
            continue                    # nothing but instances, whose ports have the names that Amaranth gives them
        assert text.startswith(f"module {name}(")
        for banned in ("\\", "(* src", "enum_", "full_case", "hdlname", "generator", "Amaranth", "Yosys", "/home",
                       str(ROOT), "$auto", "$proc", "endcase", "'hx", "'bx", "timescale"):
            assert banned not in text, name
        words = re.findall(r"^  (?:reg|wire|input|output)\b.*?(\w+)(?: = [^;]*| \[[^]]*\])?;$", text, re.MULTILINE)
        assert words, name
        assert max(map(len, words)) <= 56, name
        assert not [w for w in words if re.fullmatch(r"_.*|\d.*", w)], name
        header = re.match(r"module \w+\(([^)]*)\);", text)
        assert header, name
        assert re.findall(r"\w+", header[1]) == [p.name for p in everything.ports[name]]


def test_names_of_registers_and_nets_are_kept():
    text = emit(Grid(GridParams(**SMALL))).modules["grid_r2_c2_d4"]
    for expected in ("reg [7:0] twin = 8'h00;", "reg [7:0] twin_1 = 8'h00;", "queue_produce <= ",
                     "mac mac_0_1 (", ".a_next(", "seen["):
        assert expected in text


@pytest.mark.parametrize("name", [b.name for b in BLOCKS.values() if b.folder in ("tile", "memory")])
def test_every_signal_has_a_name(name):
    """Amaranth finds the name in a plain assignment only, not in one of a tuple of signals."""
    text = to_rtlil(BLOCKS[name].unit(BLOCKS[name].params()), name)
    assert not re.findall(r"wire .*\\\$signal\S*", text)


def test_registers_with_reserved_names_are_renamed():
    def build(unit, m):
        reg, logic = Signal(4, name="reg"), Signal(4, name="logic")
        m.d.sync += [reg.eq(unit.a), logic.eq(reg)]
        m.d.comb += unit.y.eq(logic + 1)

    text = emit(Plain({"a": In(4), "y": Out(4)}, build)).verilog
    assert "reg [3:0] reg_1 = 4'h0;" in text
    assert "else logic_1 <= reg_1;" in text


def test_same_name_means_same_text_under_every_top():
    seen: dict[str, str] = {}
    block = BLOCKS["pe_array"]
    units = [block.unit(p) for p in _array_params()]
    units += [BLOCKS["pe"].unit(p.pe) for p in _array_params()]
    units += [Mac(), Grid(GridParams(**SMALL)), Fours(FoursParams(**SMALL)), TwoClocks()]
    repeats = 0
    for unit in units:
        for name, text in emit(unit).modules.items():
            repeats += name in seen
            assert seen.setdefault(name, text) == text
    assert repeats >= 8


def test_ports_say_width_direction_sign_and_role():
    ports = emit(TwoClocks()).ports["two_clocks"]
    assert ports == (
        Port("clk", "input", 1, False, "clock"), Port("rst", "input", 1, False, "reset"),
        Port("fast_clk", "input", 1, False, "clock"), Port("fast_rst", "input", 1, False, "reset"),
        Port("a__0", "input", 8, True), Port("a__1", "input", 8, True), Port("total", "output", 32, True),
        Port("state", "output", 3, False), Port("go", "input", 3, False), Port("delayed", "output", 8, False))
    text = emit(TwoClocks()).modules["two_clocks"]
    assert "input signed [7:0] a__1;" in text
    assert ".clk(fast_clk)" in text
    assert ".rst(fast_rst)" in text
    assert emit(Named()).ports["named"] == (Port("a", "input", 4, False), Port("y", "output", 4, False))


def test_parameters_are_recorded():
    design = emit(Grid(GridParams(**SMALL)))
    assert design.params == {"mac": {"width": 8}, "grid_r2_c2_d4": SMALL}
    assert design.blocks == {"mac": "mac", "grid_r2_c2_d4": "grid"}


def test_memories_have_no_initial_statements_and_keep_their_attributes():
    design = emit(Grid(GridParams(rows=1, cols=1, depth=1024)))
    text = design.modules["grid_r1_c1_d1024"]
    assert '(* ram_style = "distributed" *)\n  reg [31:0] seen [1023:0];' in text
    assert not re.search(r"seen\[\d+\]\s*=|initial begin", text)
    # registers of read ports alone start at 0: what idle PEs multiply by 0 must be a number
    assert set(re.findall(r"initial (\w+) =", text)) <= set(re.findall(r"reg \[31:0\] (n_\d+);", text))
    assert len(text) < 8000


def test_deep_memory_stays_small():
    from rtl.memory.ram import Ram
    from sim_models.params.memory.ram import RamParams

    design = emit(Ram(RamParams(width=32, depth=16384)))
    assert len(design.verilog) < 1500
    assert "reg [31:0] words [16383:0];" in design.verilog


def test_table_that_is_only_read_keeps_its_contents():
    text = emit(Lookup(contents=[3, 1, 4, 1])).verilog
    assert re.findall(r"words\[\d\] = 8'h(\w\w);", text) == ["03", "01", "04", "01"]


def test_written_memory_with_contents_is_refused():
    with pytest.raises(EmitError) as error:
        emit(Lookup(contents=[0, 0, 1, 0], written=True))
    assert str(error.value) == (
        "memory words of module lookup is written and has initial contents, which not every memory can have: "
        "write them at start-up instead")


@pytest.mark.parametrize(("word", "languages"), [
    ("output", "Verilog"), ("reg", "Verilog"), ("logic", "Verilog"), ("signal", "VHDL"),
    ("config", "Verilog"), ("edge", "Verilog"), ("new", "Verilog and VHDL and C++"), ("class", "Verilog and C++"),
    ("int", "Verilog and C++"), ("process", "VHDL"), ("namespace", "C++"), ("Entity", "VHDL"),
    ("eval", "Verilator"), ("register", "VHDL and C++"), ("checker", "Verilog")])
def test_reserved_members_are_refused_with_a_hint(word, languages):
    with pytest.raises(EmitError) as error:
        emit(Named(word))
    lower = word.lower()
    assert str(error.value) == (
        f"member {word} of Named cannot be a port, because '{word}' is a reserved word of {languages}: "
        f"call it for example {lower}_o")
    assert error.value.exit_code == 2


def test_reserved_word_deep_in_a_signature_is_refused():
    link = Signature({"data": In(4), "default": Out(4)})
    unit = Plain({"link": In(link).array(2)}, _nothing)
    with pytest.raises(EmitError, match=r"^member link\.0\.default of Plain cannot be a port, because 'default' is "):
        emit(unit)


def _nothing(unit, m):
    pass


@pytest.mark.parametrize(("unit", "message"), [
    (lambda: Named("clk", clocked=True), "member clk of module named has the name of a clock or reset: rename it"),
    (lambda: Named("a", "rst", clocked=True),
     "member rst of module named has the name of a clock or reset: rename it"),
    (lambda: Named(block="begin"),
     "Named cannot be written as module 'begin', because that is a reserved word of Verilog and VHDL: change its "
     "block name or the tags of its parameters"),
    (lambda: Named(block="a-b"),
     "Named cannot be written as module 'a-b', because that is not a plain identifier (a letter, then letters, "
     "digits and _): change its block name or the tags of its parameters"),
    (lambda: Plain({"a": In(4)}, _nothing),
     "module plain would be empty: it needs ports and something that drives them"),
    (lambda: Plain({}, _nothing), "module plain would be empty: it needs ports and something that drives them"),
    (lambda: Plain({"a": In(1).array(2), "a__0": In(1), "y": Out(1)}, _nothing),
     "two members of Plain would both become port a__0: rename one"),
])
def test_bad_names_and_empty_modules_are_refused(unit, message):
    with pytest.raises(EmitError) as error:
        emit(unit())
    assert str(error.value) == message


def _pair(first, second):
    def build(unit, m):
        m.submodules.first, m.submodules.second = first(), second()
        m.d.comb += unit.y.eq(1)
    return Plain({"y": Out(1)}, build)


def test_one_name_for_two_units_is_refused():
    class Other(Mac):
        pass

    with pytest.raises(EmitError) as error:
        emit(_pair(Mac, Other))
    assert str(error.value) == (
        "two different units are both called mac: tests.gen.emit_units.Mac with MacParams(width=8) and "
        "tests.gen.test_emit.Other with MacParams(width=8); unit_name must tell them apart")


def test_one_name_for_two_parameter_sets_is_refused():
    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Careless(MacParams):
        def unit_name(self, block):
            return block

    with pytest.raises(EmitError, match=r"^two different units are both called mac: "):
        emit(_pair(lambda: Mac(Careless(width=4)), lambda: Mac(Careless(width=5))))


def test_names_that_differ_in_case_alone_are_refused():
    with pytest.raises(EmitError, match=r"^the modules named and Named differ in case alone"):
        emit(_pair(Named, lambda: Named(block="Named")))


def test_yosys_failure_is_one_sentence(monkeypatch):
    script = emit_module._script
    monkeypatch.setattr(emit_module, "_script", lambda *args: [*script(*args), "no_such_pass"])
    with pytest.raises(EmitError) as error:
        emit(Named())
    assert str(error.value).startswith("Yosys failed on named: No such command: no_such_pass")
    assert "\n" not in str(error.value)
    assert error.value.exit_code == 1


def test_clashing_nets_stay_apart():
    def build(unit, m):
        inner = Module()
        m.submodules.part = inner
        registers = [Signal(4, name="part_x"), Signal(4, name="x"), Signal(4, name="part_x")]
        inner.d.sync += registers[1].eq(unit.a)
        m.d.sync += [registers[0].eq(registers[1] + 1), registers[2].eq(registers[0] ^ 5)]
        m.d.comb += unit.y.eq(registers[2])

    text = emit(Plain({"a": In(4), "y": Out(4)}, build)).verilog
    declared = re.findall(r"reg \[3:0\] (\w+) =", text)
    assert len(declared) == 3
    assert len(set(declared)) == 3
    assert all(name.startswith("part_x") or name == "y" for name in declared)


def test_no_block_uses_what_the_emitter_cannot_see():
    """Amaranth's inserters would stop at the instances."""
    files = list((ROOT / "rtl").rglob("*.py"))
    assert len(files) > 10
    for file in files:
        assert not re.search(r"\b(?:Reset|Enable)Inserter\b", file.read_text()), file
