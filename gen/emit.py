"""From a Unit to Verilog: one module per unique component and parameters."""

import dataclasses
import pathlib
import re
import subprocess
import sys
import tempfile
from typing import Any

from amaranth.back import rtlil
from amaranth.hdl import ClockSignal, Instance, ResetSignal, Value
from amaranth.hdl._ir import PortDirection
from amaranth.lib.wiring import In

from rtl.unit import Unit

__all__ = ["Design", "emit"]


@dataclasses.dataclass(frozen=True)
class Design:
    """Emitted Verilog: ``modules`` maps module name to text, leaves first; ``top`` names the last one."""

    top: str
    modules: dict[str, str]

    @property
    def verilog(self) -> str:
        """All modules in one text."""
        return "\n".join(self.modules.values())


class Emitter:
    """The platform during emission: turns each child Unit into an instance of its module."""

    def __init__(self) -> None:
        self.done: dict[str, tuple[str, list[str]]] = {}
        self.current: Unit | None = None

    def add(self, unit: Unit) -> tuple[str, list[str]]:
        name = unit.unit_name
        if name not in self.done:
            ports = {"__".join(map(str, p)): (Value.cast(v), PortDirection.Input if m.flow == In
                                              else PortDirection.Output)
                     for p, m, v in unit.signature.flatten(unit)}
            outer, self.current = self.current, unit
            text = rtlil.convert(unit, name=name, platform=self, ports=ports, emit_src=False)
            self.current = outer
            body = re.search(rf"(?ms)^module \\{re.escape(name)}\n(.*?)^end$", text)[1]
            inputs = re.findall(r"(?m)^  wire width 1 input \d+  \\(\S+)$", body)
            self.done[name] = text, [w for w in inputs if w not in ports]
        return name, self.done[name][1]

    def instance_of(self, unit: Unit) -> Instance:
        name, clocks = self.add(unit)
        args: list[Any] = [("i" if m.flow == In else "o", "__".join(map(str, p)), v)
                           for p, m, v in unit.signature.flatten(unit)]
        for wire in clocks:
            domain, _, kind = wire.rpartition("_")
            args.append(("i", wire, (ClockSignal if kind == "clk" else ResetSignal)(domain or "sync")))
        return Instance(name, *args)


FINISH = r'''
import sys; from pyosys import libyosys as ys
src, dst, top = sys.argv[1:]; d = ys.Design()
at = "-remove generator -remove top -remove src -remove amaranth.hierarchy -remove amaranth.decoding"
for c in (f"read_rtlil {src}", f"hierarchy -top {top}", "proc -norom", "memory_collect",
          "setparam -set INIT 1'x t:$mem_v2", f"attrmap {at}", f"attrmap -modattr {at}",
          "rename -hide w:*$*", "opt_clean", "autoname", f"write_verilog {dst}"): d.run_pass(c)
'''


def _ident(m: Any) -> str:
    return re.sub(r"\W+", "_", m[1].replace("$", "")).strip("_") + " "


def emit(unit: Unit) -> Design:
    """Emit ``unit`` and everything below it."""
    e = Emitter()
    top, _ = e.add(unit)
    with tempfile.TemporaryDirectory() as t:
        il, v = pathlib.Path(t, "d.il"), pathlib.Path(t, "d.v")
        il.write_text("\n".join(x[0] for x in e.done.values()))
        subprocess.run([sys.executable, "-c", FINISH, il, v, top], check=True, stdout=subprocess.DEVNULL)
        s = v.read_text()
    s = re.sub(r"\A/\*.*?\*/\n+", "", s)
    s = re.sub(r"(?m)^ *\(\* (?:enum_|full_case|hdlname).*\*\)\n", "", s)
    s = re.sub(r"\\(\S+) ", _ident, s)
    texts = {m[1]: m[0] for m in re.finditer(r"(?ms)^(?:\(\*[^\n]*\n)*module (\w+)\(.*?^endmodule\n", s)}
    return Design(top, {n: texts[n] for n in e.done})
