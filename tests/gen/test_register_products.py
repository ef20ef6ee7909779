"""The Manager's registers: one table, and everything that is made of it agrees with the hardware's layouts."""

import subprocess
from pathlib import Path

import pytest
from systemrdl import RDLCompileError, RDLCompiler
from systemrdl.messages import MessagePrinter, Severity
from systemrdl.node import AddrmapNode

from gen.products.registers import c_header, described, markdown, system_rdl
from rtl.manager.layouts import manager_counters, manager_settings
from rtl.manager.registers import registers
from sim_models.params.manager.manager import ManagerParams
from sim_models.spec.manager import COUNTERS
from speculoos.cli import main

PARAMS = [ManagerParams(), ManagerParams(request_width=1, lane_width=0, entries=1, draft_width=1, token_width=1),
          ManagerParams(request_width=8, lane_width=4, entries=4096, draft_width=6, token_width=32)]


@pytest.mark.parametrize("p", PARAMS, ids=["default", "smallest", "largest"])
def test_table_covers_settings_and_counters(p: ManagerParams) -> None:
    table = registers(p)
    addresses = [r.address for r in table]
    assert addresses == sorted(set(addresses))
    assert all(a % 4 == 0 and a < 256 for a in addresses)
    fields = {f.name: f.width for r in table if r.writable for f in r.fields}
    own = {"interrupt": 1, "acknowledged": 32, "error_interrupt": 1, "errors_acknowledged": 32}
    assert fields == own | {str(name): field.width for name, field in manager_settings(p)}
    assert [f.name for r in table if r.name.startswith("count_") for f in r.fields] == list(COUNTERS)
    assert [str(name) for name, _ in manager_counters()] == list(COUNTERS)
    for r in table:
        ends = [0]
        for f in r.fields:
            assert f.low >= ends[-1]
            assert f.lowest <= f.reset < 1 << f.width
            assert f.highest is None or not r.writable or f.reset <= f.highest < 1 << f.width
            ends.append(f.low + f.width)
        assert ends[-1] <= 32


def test_header_compiles_and_says_what_the_table_says(tmp_path: Path) -> None:
    table = registers(ManagerParams())
    (tmp_path / "regs.h").write_text(c_header(table, "regs"))
    names = [(f"REGS_{r.name}_{f.name}".upper(), r, f) for r in table for f in r.fields]
    prints = "".join(f'printf("%u %u %u %u\\n", REGS_{r.name.upper()}, {n}_SHIFT, {n}_MASK, '
                     f"{f'{n}_RESET' if r.writable else '0u'});" for n, r, _ in names)
    (tmp_path / "main.c").write_text(f'#include <stdio.h>\n#include "regs.h"\n#include "regs.h"\n'
                                     f"int main(void) {{ {prints} return 0; }}\n")
    subprocess.run(["gcc", "-Wall", "-Wextra", "-Werror", "-Wno-format", "-o", "main", "main.c"], cwd=tmp_path,
                   check=True)
    out = subprocess.run(["./main"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    got = [tuple(map(int, line.split())) for line in out.splitlines()]
    assert got == [(r.address, f.low, ((1 << f.width) - 1) << f.low, f.reset if r.writable else 0)
                   for _, r, f in names]


class Silent(MessagePrinter):
    """Keeps what the compiler says instead of printing it."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def print_message(self, severity: Severity, text: str, src_ref: object) -> None:
        self.said.append(f"{severity.name}: {text}")


def compiled(rdl: str, folder: Path) -> AddrmapNode:
    """What a SystemRDL compiler understands, without a word of complaint."""
    (folder / "regs.rdl").write_text(rdl)
    printer = Silent()
    compiler = RDLCompiler(message_printer=printer)
    try:
        compiler.compile_file(str(folder / "regs.rdl"))
        top = compiler.elaborate().top
    except RDLCompileError:
        pytest.fail(f"does not compile: {printer.said}")
    assert not printer.said
    return top


@pytest.mark.parametrize("p", PARAMS, ids=["default", "smallest", "largest"])
def test_rdl_compiles_and_says_what_the_table_says(p: ManagerParams, tmp_path: Path) -> None:
    table = registers(p)
    top = compiled(system_rdl(table, "regs"), tmp_path)
    assert top.inst_name == "regs"
    got = [(r.inst_name, r.absolute_address, r.size, r.has_sw_writable, r.get_property("desc"))
           for r in top.registers()]
    assert got == [(r.name, r.address, 4, r.writable, r.text) for r in table]
    for node, register in zip(top.registers(), table, strict=True):
        fields = [(f.inst_name, f.low, f.width, f.is_sw_readable, f.is_sw_writable, f.get_property("reset"),
                   f.get_property("desc")) for f in node.fields()]
        assert fields == [(f.name, f.low, f.width, True, register.writable, f.reset if register.writable else None,
                           described(f)) for f in register.fields]


@pytest.mark.parametrize(("old", "new", "said"), [
    ("[1:0] = 2'h1;", "[2:0] = 3'h1;", "overlaps"),
    ("@ 0x04;", "@ 0x00;", "overlaps"),
    ("= 1'h1;", "= 2'h2;", "reset"),
], ids=["overlap", "address", "reset"])
def test_the_compiler_would_notice(old: str, new: str, said: str, tmp_path: Path) -> None:
    rdl = system_rdl(registers(ManagerParams()), "regs")
    assert old in rdl
    with pytest.raises(pytest.fail.Exception, match=said):
        compiled(rdl.replace(old, new, 1), tmp_path)


def test_markdown_names_every_field() -> None:
    table = registers(ManagerParams())
    page = markdown(table)
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| 0x")]
    assert [row[3] for row in rows] == [f.name for r in table for f in r.fields]


@pytest.mark.parametrize("block", ["manager_registers", "saddle_manager"])
def test_verilog_command_writes_them(block: str, tmp_path: Path) -> None:
    assert main(["verilog", block, "-o", str(tmp_path / "out")]) == 0
    names = {file.name for file in (tmp_path / "out").iterdir()}
    assert {f"{block}.v", f"{block}.rdl", f"{block}.h", f"{block}.md", "axi_lite.v"} <= names
