"""What the ports mean: complete, and the same in layouts, ports, package, template, page and drawings."""

import dataclasses
import enum
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from amaranth.hdl import Module, Shape, Value
from amaranth.lib import data
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from gen.emit.emit import Design, Port, emit
from gen.emit.names import verilog_name
from gen.errors import ToolError, UserError
from gen.flows.check import check_slang, check_verilator
from gen.products.constraints import constraint_files
from gen.products.interface import interface, leaves
from gen.products.package import Types, package
from gen.products.page import page
from gen.products.template import template
from rtl.parts.meanings import Struct, meanings
from rtl.pim.stack.layouts import stack_command
from rtl.registry import BLOCKS
from rtl.unit import Unit
from sim_models.params.pim.channel.pseudo_channel import PseudoChannelParams
from sim_models.params.pim.stack.pim_stack import PimStackParams
from tests.gen.emit_units import Named, TwoClocks


def described(unit: Unit) -> Design:
    """A design with the ports of its signature, clock and reset; it is not elaborated, which would take long."""
    unit.__dict__["_MustUse__used"] = True
    ports = [Port("clk", "input", 1, False, "clock"), Port("rst", "input", 1, False, "reset")]
    for name, _, member, value in unit.flat_members():
        shape = Value.cast(value).shape()
        ports += [Port(name, "input" if member.flow == In else "output", shape.width,
                       shape.signed)] * (shape.width > 0)
    top = unit.unit_name
    return Design(top, {}, {top: tuple(ports)}, {}, {top: unit.block}, {}, {}, {}, unit)


def made(name: str, **settings: Any) -> Design:
    """A registered block, described."""
    return described(BLOCKS[name].unit(BLOCKS[name].params(**settings)))


@pytest.fixture(scope="module")
def designs() -> dict[str, Design]:
    """Every registered block with its default parameters."""
    return {name: made(name) for name in BLOCKS}


def without_meaning(shape: Any) -> list[str]:
    """Fields and codes in a shape that nothing is said about."""
    if isinstance(shape, data.ArrayLayout):
        return without_meaning(shape.elem_shape)
    if isinstance(shape, enum.EnumMeta):
        texts = meanings(shape)
        return [f"{shape.__name__}.{code.name}" for code in shape if not texts.get(code.name)]
    if not isinstance(shape, data.StructLayout):
        return []
    if not isinstance(shape, Struct):
        return [f"{shape} has no name"]
    unknown = sorted(set(shape.texts) - {str(name) for name, _ in shape} - {"int8"})
    return [f"{shape.name}.{n} is no field" for n in unknown] + [
        missing for n, field in shape
        for missing in ([f"{shape.name}.{n}"] * (not shape.texts.get(str(n))) + without_meaning(field.shape))]


@pytest.mark.parametrize("name", BLOCKS)
def test_everything_has_a_meaning(name: str, designs: dict[str, Design]) -> None:
    design = designs[name]
    members = interface(design)
    assert {m.port for m in members} == {p.name for p in design.ports[design.top] if p.role == "data" and not (
        p.name.endswith(("__valid", "__ready")))}
    for member in members:
        assert member.meaning, f"{name}.{member.name} has no meaning"
        assert without_meaning(member.shape) == []
    text = page(design)
    for member in members:
        assert f"| `{member.port}` | {member.direction} | {member.width}" in text
        for leaf in leaves(member.shape):
            bits = f"{leaf.low + leaf.width - 1}:{leaf.low}" if leaf.width > 1 else str(leaf.low)
            assert f"| {bits} | `{leaf.path}` | " in text
    assert "## Timing" in text
    assert "```text\ncycle  " in text
    assert not re.search(r":\w+:`|(?<!`)``(?!`)", text)


def test_codes_of_a_wider_field_are_on_the_page(designs: dict[str, Design]) -> None:
    for name in ("buffer_die_sfu", "pim_stack"):
        text = page(designs[name])
        assert "### Codes of `SfuOp`" in text
        assert "| 5 | SOFTMAX | e^(scalar x) / sum; -inf is masked. |" in text


def test_what_has_no_meaning_is_found() -> None:
    assert without_meaning(data.StructLayout({"a": 1})) == ["StructLayout({'a': 1}) has no name"]
    assert without_meaning(Struct("s", "", {"a": 1, "b": 2}, {"a": "x", "c": "y"})) == ["s.c is no field", "s.b"]


def sv_path(path: str) -> str:
    """A path in the package's types, where reserved names have an underscore behind them."""
    return ".".join(map(verilog_name, path.split(".")))


def positions(design: Design) -> str:
    """A module that elaborates only if the package's fields lie where Amaranth's layouts have them."""
    types, checks = Types(design), []
    for member in interface(design):
        kind = f"{design.top}_pkg::{types.of[member.name]}"
        checks.append(f'if ($bits({kind}) != {member.width}) $error("{kind} is not as wide as its port");')
        for n, leaf in enumerate(leaves(member.shape)):
            function, field = f"f_{member.name}_{n}", sv_path(leaf.path)
            want = ((1 << leaf.width) - 1) << leaf.low
            checks.append(
                f"function automatic logic [{member.width - 1}:0] {function}();\n    {kind} x;\n    x = '0;\n"
                f"    x.{field} = type(x.{field})'({leaf.width}'h{(1 << leaf.width) - 1:x});\n"
                "    return x;\n"
                f"  endfunction\n  if ({function}() != {member.width}'h{want:x}) "
                f'$error("{member.name}.{leaf.path} is elsewhere");')
    return f"module {design.top}_positions;\n  " + "\n  ".join(checks) + "\nendmodule\n"


def slang(folder: Path, files: dict[str, str]) -> str:
    """What slang says about files."""
    script = ("import sys\nfrom pyslang.driver import Driver\nd = Driver()\nd.addStandardArgs()\n"
              "ok = d.parseCommandLine('slang -Wno-width-expand ' + ' '.join(sys.argv[1:]))\n"
              "ok = ok and d.processOptions() and d.parseAllSources()\n"
              "sys.exit(0 if ok and d.runFullCompilation(True) else 1)\n")
    for name, text in files.items():
        (folder / name).write_text(text)
    done = subprocess.run([sys.executable, "-c", script, *files], cwd=folder, capture_output=True, text=True)
    return done.stdout + done.stderr + f"exit {done.returncode}"


def test_fields_lie_where_the_layouts_have_them(designs: dict[str, Design], tmp_path: Path) -> None:
    packages = {f"{d.top}_pkg.sv": package(d) for d in designs.values()}
    checks = {f"{d.top}_positions.sv": positions(d) for d in designs.values()}
    assert sum(text.count("function automatic") for text in checks.values()) > 150
    assert slang(tmp_path, packages | checks) == "exit 0"
    # fields the other way round, and one that is narrower, are noticed
    text = packages["shared_pool_pkg.sv"]
    field, other = "    logic [16:0] token;", "    logic [15:0] h;"
    assert field in text
    assert other in text
    for wrong, said in ((text.replace(field, "#").replace(other, field).replace("#", other), "is elsewhere"),
                        (text.replace(field, "    logic [15:0] token;"), "is not as wide as its port")):
        assert said in slang(tmp_path, {"shared_pool_pkg.sv": wrong,
                                        "shared_pool_positions.sv": checks["shared_pool_positions.sv"]})


STACK = PimStackParams()


class Breakout(Unit):
    """Gives every field of a command to a stack on a port of its own."""

    block = "breakout"

    def __init__(self) -> None:
        self.leaves = list(leaves(stack_command(STACK)))
        super().__init__(PseudoChannelParams(), {
            "command": In(stack_command(STACK)),
            **{f"o_{leaf.path.replace('.', '_')}": Out(Shape.cast(leaf.shape).width) for leaf in self.leaves}})

    @property
    def unit_name(self) -> str:
        return self.block

    def body(self, platform: Any) -> Module:
        m = Module()
        for leaf in self.leaves:
            value: Any = self.command  # pyright: ignore[reportAttributeAccessIssue]
            for part in leaf.path.split("."):
                value = value[part]
            m.d.comb += getattr(self, f"o_{leaf.path.replace('.', '_')}").eq(value)
        return m


def test_the_package_speaks_of_the_bits_of_the_verilog(tmp_path: Path) -> None:
    """Values go into a struct of the package; the generated Verilog takes it apart again."""
    unit = Breakout()
    design = emit(unit)
    fields = [(leaf, leaf.path.replace(".", "_")) for leaf in unit.leaves]
    values = {name: (0x9E3779B97F4A7C15 * (n + 1) >> 7) & ((1 << leaf.width) - 1)
              for n, (leaf, name) in enumerate(fields)}
    wires = "".join(f"  wire [{leaf.width - 1}:0] {name};\n" for leaf, name in fields)
    pins = ", ".join(f".o_{name}({name})" for _, name in fields)
    sets = "".join(f"    command.{leaf.path} = {leaf.width}'h{values[name]:x};\n" for leaf, name in fields)
    prints = "".join(f'    $display("{name} %0h", {name});\n' for _, name in fields)
    bench = (f"module bench;\n  import breakout_pkg::*;\n  stack_command_t command;\n{wires}"
             f"  breakout dut (.command(command), {pins});\n"
             f"  initial begin\n{sets}    #1;\n{prints}  end\nendmodule\n")
    # Icarus lets no bits into an enum; what is tested is where they lie
    kind = re.compile(r"(?s)typedef enum logic (\[\d+:0\] )?\{.*?\} (\w+);")
    plain, enums = kind.subn(r"typedef logic \1\2;", package(design))
    assert enums == 5
    files = {"breakout_pkg.sv": plain, "breakout.v": design.modules["breakout"], "bench.sv": bench}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    subprocess.run(["iverilog", "-g2012", "-o", "sim", *files], cwd=tmp_path, check=True)
    out = subprocess.run(["vvp", "sim"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert {n: int(v, 16) for n, v in (line.split() for line in out.splitlines())} == values
    assert len(values) > 20


@pytest.mark.parametrize("check", [check_slang, check_verilator])
def test_a_package_that_does_not_fit_is_refused(check: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    block = BLOCKS["shared_pool"]
    design = emit(block.unit(block.params()))
    check(design)
    monkeypatch.setattr("gen.flows.check.package", lambda d: package(d).replace("logic [16:0] token", "logic token"))
    with pytest.raises(ToolError, match=r"_typed\.sv:.*pool_entry_t has 40 bits, insert__payload has 56 bits"):
        check(design)


def test_template_is_a_line_for_each_port() -> None:
    design = made("fifo")
    text = template(design)
    assert "\n// stream i: Words that enter at the tail.\nwire [7:0] i__payload;  // input\n" in text
    for port in design.ports["fifo"]:
        assert f"  .{port.name}({port.name})" in text


@pytest.mark.parametrize("name", ["float_to_half", "half_to_float", "float_comparator"])
def test_pipeline_drawing_is_what_the_block_does(name: str, designs: dict[str, Design]) -> None:
    (drawing,) = re.findall(r"(?s)```text\n(cycle.*?)```", page(designs[name]))
    rows = {line.split()[0]: line[line.index("  "):].strip() for line in drawing.splitlines()}
    levels = {row: [int(rows[row][4 * n + 2] == "~") for n in range(len(rows[row]) // 4)]
              for row in ("enable", "i_valid", "o_valid")}
    unit: Any = BLOCKS[name].unit(BLOCKS[name].params())
    seen: list[int] = []

    async def bench(ctx: Any) -> None:
        for enable, valid in zip(levels["enable"], levels["i_valid"], strict=True):
            ctx.set(unit.enable, enable)
            ctx.set(unit.i_valid, valid)
            seen.append(ctx.get(unit.o_valid))
            await ctx.tick()

    run(unit, bench)
    assert seen == levels["o_valid"]
    assert 1 in seen


def run(unit: Any, bench: Any) -> None:
    """Simulate a unit in Python."""
    simulator = Simulator(unit)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


#: small parameters of the blocks that answer, and what keeps random inputs meaningful
SMALL: dict[str, dict[str, Any]] = {
    "ram": {"depth": 8}, "pe": {}, "intensity_scheduler": {}, "bank_pe": {}, "shared_pool": {},
}


def trace(name: str, changed: str, at: int, seed: int, length: int) -> list[dict[str, int]]:
    """Outputs of a block under random inputs, one of which is another in cycle ``at``."""
    import numpy as np
    block = BLOCKS[name]
    unit: Any = block.unit(block.params(**SMALL[name]))
    rng = np.random.default_rng(seed)
    signals = [(".".join(map(str, path)), member.flow, value)
               for path, member, value in unit.signature.flatten(unit)]
    inputs = [(path, value) for path, flow, value in signals if flow == In]
    outputs: list[dict[str, int]] = []

    async def bench(ctx: Any) -> None:
        for cycle in range(length):
            for path, value in inputs:
                bits = int.from_bytes(rng.bytes(64), "little") & ((1 << Shape.cast(value.shape()).width) - 1)
                if path in ("read_en", "enable", "step", "round", "dynamic") and Shape.cast(value.shape()).width == 1:
                    bits = 1
                other = int.from_bytes(rng.bytes(64), "little") & ((1 << Shape.cast(value.shape()).width) - 1)
                if cycle == at and path == changed:
                    bits = other
                raw = value.as_value() if hasattr(value, "as_value") else value
                ctx.set(raw, bits if not Shape.cast(raw.shape()).signed or bits < 1 << (len(raw) - 1)
                        else bits - (1 << len(raw)))
            outputs.append({path: ctx.get(value.as_value() if hasattr(value, "as_value") else value)
                            for path, flow, value in signals if flow == Out})
            await ctx.tick()

    run(unit, bench)
    return outputs


@pytest.mark.parametrize("name", ["ram", "pe", "intensity_scheduler"])
def test_answers_come_when_the_page_says(name: str) -> None:
    """The first output that a changed input changes is so many cycles later."""
    block = BLOCKS[name]
    answers = block.unit(block.params(**SMALL[name])).answers()
    assert answers
    for question, reply, cycles in answers:
        delays = []
        for seed in range(80):
            at, length = 20, 24 + cycles
            before, after = (trace(name, changed, at, seed, length) for changed in ("", question))
            delays += [n - at for n in range(length) if before[n][reply] != after[n][reply]][:1]
            if len(delays) == 5:
                break
        assert delays
        assert min(delays) == cycles, f"{name}: {reply} follows {question} after {min(delays)}, not {cycles}"


def test_constraints() -> None:
    design = emit(TwoClocks())
    files, top = constraint_files(design, 125.0), design.top
    clocks = [p.name for p in design.ports[top] if p.role == "clock"]
    assert len(clocks) == 2
    for end in ("xdc", "sdc"):
        for clock in clocks:
            assert f"create_clock -name {clock} -period 8.000 [get_ports {{{clock}}}]\n" in files[f"{top}.{end}"]
        assert "set_clock_groups -asynchronous" in files[f"{top}.{end}"]
    assert f'FREQUENCY PORT "{clocks[0]}" 125 MHZ;\n' in files[f"{top}.lpf"]
    assert f"set_frequency {clocks[0]} 125\n" in files[f"{top}.pcf"]
    fifo = constraint_files(made("fifo"))
    assert "create_clock -name clk -period 10.000 [get_ports {clk}]\n" in fifo["fifo.sdc"]
    assert "set_false_path -from [get_ports {rst}]\n" in fifo["fifo.sdc"]
    assert "set_false_path -from [get_ports {rst}]\n" in fifo["fifo.xdc"]


@pytest.mark.parametrize("mhz", [0.0, -1.0, float("nan"), float("inf"), 1e5])
def test_frequencies_that_no_clock_has_are_refused(mhz: float) -> None:
    with pytest.raises(UserError) as error:
        constraint_files(described(Named()), mhz)
    assert str(error.value) == f"a clock has more than 0 and at most 10000 MHz, not {mhz:g}"


def test_registers_are_on_the_page() -> None:
    design = made("manager_registers")
    assert "\n## Registers\n\nWords of 32 bits on AXI4-Lite;" in page(design)
    assert dataclasses.is_dataclass(design.unit.register_table()[0])
    with_registers = [name for name in BLOCKS if made(name).unit.register_table()]
    assert with_registers == ["manager_registers", "saddle_manager"]
