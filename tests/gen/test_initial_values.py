"""Verilog without initial values: every family of Yosys takes it, and nothing depends on what it starts with."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from gen.emit.emit import Design, emit
from gen.emit.initial import without_initial_values
from gen.emit.yosys import run_yosys
from gen.errors import ToolError
from rtl.memory.fifo import Fifo
from rtl.registry import BLOCKS
from rtl.tile.engine.compute_engine import ComputeEngine
from sim_models.params.tile.engine.compute_engine import ComputeEngineParams
from speculoos.cli import main
from tests.gen.emit_units import Lookup

ENGINE = ComputeEngineParams(rows=2, cols=1, operand_width=4, acc_width=12, psum_width=16, activation_depth=16,
                             weight_depth=16, psum_depth=16)
UNITS = {"fifo": Fifo, "engine": lambda: ComputeEngine(ENGINE)}
#: the families of Yosys; of several devices those that differ in registers or memories, without those for which a
#: multiplier in look-up tables takes minutes (pp3 of QuickLogic)
FAMILIES = (
    "synth_ice40 -dsp", "synth_ecp5", "synth_nexus", "synth_gowin", "synth_gatemate", "synth_microchip", "synth_sf2",
    "synth_intel_alm", "synth_intel -family max10", "synth_xilinx -family xc7", "synth_xilinx -family xcup",
    "synth_efinix", "synth_quicklogic -family qlf_k6n10f", "synth_anlogic",
    "synth_lattice -family xo2", "synth_nanoxplore", "synth_fabulous", "synth_analogdevices", "synth_achronix")


@pytest.fixture(scope="module")
def stripped() -> dict[str, Design]:
    return {name: without_initial_values(emit(unit())) for name, unit in UNITS.items()}


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.removeprefix("synth_"))
@pytest.mark.parametrize("unit", ["fifo", pytest.param("engine", marks=pytest.mark.long)])
def test_every_family_takes_it(unit: str, family: str, stripped: dict[str, Design], tmp_path: Path) -> None:
    """Synthesis ends without an error, and the netlist has no unknown value, loop or second driver."""
    design = stripped[unit]
    (tmp_path / "design.v").write_text(design.verilog)
    run_yosys({unit: ["read_verilog design.v", f"{family} -top {design.top}", "check -assert", "stat"]}, tmp_path)


@pytest.mark.parametrize("family", ["synth_microchip", "synth_sf2"])
def test_some_families_refuse_initial_values(family: str, tmp_path: Path) -> None:
    """Why there is the option: where a family learns to take them, it leaves this list."""
    design = emit(Fifo())
    (tmp_path / "design.v").write_text(design.verilog)
    with pytest.raises(ToolError):
        run_yosys({family: ["read_verilog design.v", f"{family} -top {design.top}"]}, tmp_path)


def test_nothing_has_a_value_before_the_reset(stripped: dict[str, Design]) -> None:
    """No register has one, a memory's word only in simulations; nothing else changes."""
    full = emit(ComputeEngine(ENGINE))
    assert sum(len(re.findall(r"(?m)^  reg .* = ", text)) for text in full.modules.values()) > 50
    for name, text in stripped["engine"].modules.items():
        assert not re.search(r"(?m)^\s*(output )?reg [^;]*=", text), name
        guarded = re.findall(r"(?m)^`ifndef SYNTHESIS\n  initial \w+ = .*;\n`endif$", text)
        assert len(guarded) == text.count("initial ") == full.modules[name].count("initial ")
        bare = re.sub(r"(?m)^(  reg .*?) = \d+'[hd][0-9a-f]+;$", r"\1;", full.modules[name])
        assert re.sub(r"(?m)^`(ifndef SYNTHESIS|endif)\n", "", text) == bare


def test_tables_of_memories_that_are_only_read_stay() -> None:
    design = emit(Lookup(contents=[3, 1, 4, 1]))
    text = "".join(design.modules.values())
    assert "initial begin" in text
    assert re.findall(r"(?s)initial begin.*?end", "".join(without_initial_values(design).modules.values())) == \
        re.findall(r"(?s)initial begin.*?end", text)


SHORT = [b.name for b in BLOCKS.values() if b.folder in ("tile/engine", "memory", "bus")]


@pytest.mark.skipif(shutil.which("iverilog") is None, reason="Icarus is not installed")
@pytest.mark.parametrize("name", SHORT)
def test_a_reset_of_three_cycles_makes_every_handshake_known(name: str, tmp_path: Path) -> None:
    """In four states, with inputs at rest: what steers a stream or a bus is known after the reset, and stays so."""
    design = without_initial_values(emit(BLOCKS[name].unit(BLOCKS[name].params())))
    ports = design.ports[design.top]
    watched = [p.name for p in ports if p.direction == "output" and re.search(r"(valid|ready|done|refused)$", p.name)]
    pins, wires = [], ""
    for p in ports:
        wires += f"  wire [{p.width - 1}:0] {p.name};\n" if p.direction == "output" else ""
        value = {"clock": "clk", "reset": "rst"}.get(p.role, f"{p.width}'b0") if p.direction == "input" else p.name
        pins.append(f".{p.name}({value})")
    checks = "".join(f'      if (^{w} === 1\'bx) $display("unknown {w}");\n' for w in watched)
    (tmp_path / "bench.v").write_text(f"""module bench;
  reg clk = 0, rst = 1; always #5 clk = ~clk;
{wires}  {design.top} dut({", ".join(pins)});
  initial begin
    repeat (3) @(posedge clk);
    #1 rst = 0;
    repeat (20) begin
      @(negedge clk);
{checks}    end
    $display("watched {len(watched)}");
    $finish;
  end
endmodule
""")
    (tmp_path / "design.v").write_text(design.simulation)
    subprocess.run(["iverilog", "-g2005", "-o", "sim", "-s", "bench", "bench.v", "design.v"], cwd=tmp_path,
                   check=True)
    done = subprocess.run(["vvp", "-n", "sim"], cwd=tmp_path, check=True, capture_output=True, text=True, timeout=60)
    assert done.stdout.split("\n") == [f"watched {len(watched)}", ""]


def test_the_command_writes_it(tmp_path: Path) -> None:
    assert main(["verilog", "fifo", "--no-initial-values", "-o", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / "fifo.v").read_text() == without_initial_values(emit(Fifo())).modules["fifo"]
