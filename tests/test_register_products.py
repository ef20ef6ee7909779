"""The Manager's registers: one table, and everything that is made of it agrees with the hardware's layouts."""

import re
import subprocess
from pathlib import Path

import pytest

from gen.cli import main
from gen.products.registers import c_header, markdown, system_rdl
from rtl.manager.registers import COUNTERS, registers
from rtl.manager_layouts import manager_counters, manager_settings
from sim_models.golden import manager as golden
from sim_models.params.manager import ManagerParams

PARAMS = [ManagerParams(), ManagerParams(request_width=1, lane_width=0, entries=1, draft_width=1, token_width=1),
          ManagerParams(request_width=8, lane_width=4, entries=4096, draft_width=6, token_width=32)]


@pytest.mark.parametrize("p", PARAMS, ids=["default", "smallest", "largest"])
def test_table_covers_settings_and_counters(p: ManagerParams) -> None:
    table = registers(p)
    addresses = [r.address for r in table]
    assert addresses == sorted(set(addresses))
    assert all(a % 4 == 0 and a < 256 for a in addresses)
    fields = {f.name: f.width for r in table if r.writable for f in r.fields}
    assert fields == {str(name): field.width for name, field in manager_settings(p)}
    assert [f.name for r in table if r.name.startswith("count_") for f in r.fields] == list(COUNTERS)
    assert [str(name) for name, _ in manager_counters()] == list(COUNTERS) == list(golden.COUNTERS)
    for r in table:
        ends = [0]
        for f in r.fields:
            assert f.low >= ends[-1]
            assert f.reset < 1 << f.width
            ends.append(f.low + f.width)
        assert ends[-1] <= 32


def test_header_compiles_and_says_what_the_table_says(tmp_path: Path) -> None:
    table = registers(ManagerParams())
    (tmp_path / "regs.h").write_text(c_header(table, "regs"))
    names = [(f"REGS_{r.name}_{f.name}".upper(), r, f) for r in table for f in r.fields]
    prints = "".join(f'printf("%u %u %u\\n", REGS_{r.name.upper()}, {n}_SHIFT, {n}_MASK);' for n, r, _ in names)
    (tmp_path / "main.c").write_text(f'#include <stdio.h>\n#include "regs.h"\n#include "regs.h"\n'
                                     f"int main(void) {{ {prints} return 0; }}\n")
    subprocess.run(["gcc", "-Wall", "-Wextra", "-Werror", "-Wno-format", "-o", "main", "main.c"], cwd=tmp_path,
                   check=True)
    out = subprocess.run(["./main"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    got = [tuple(map(int, line.split())) for line in out.splitlines()]
    assert got == [(r.address, f.low, ((1 << f.width) - 1) << f.low) for _, r, f in names]


def test_rdl_and_markdown_name_every_field() -> None:
    table = registers(ManagerParams())
    rdl, page = system_rdl(table, "regs"), markdown(table, "regs")
    assert rdl.count("{") == rdl.count("}")
    found = re.findall(r"\\(\w+)\[(\d+):(\d+)\]", rdl)
    assert found == [(f.name, str(f.low + f.width - 1), str(f.low)) for r in table for f in r.fields]
    assert [int(a, 16) for a in re.findall(r"@ (0x\w+);", rdl)] == [r.address for r in table]
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| 0x")]
    assert [row[3] for row in rows] == [f.name for r in table for f in r.fields]


def test_verilog_command_writes_them(tmp_path: Path) -> None:
    assert main(["verilog", "manager_registers", "-o", str(tmp_path / "out")]) == 0
    names = {file.name for file in (tmp_path / "out").iterdir()}
    assert {"manager_registers.v", "manager_registers.rdl", "manager_registers.h", "manager_registers.md",
            "axi_lite.v"} <= names
