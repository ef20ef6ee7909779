"""Which inputs of a block reach which outputs within a cycle, found in the generated netlist.

The Verilog is read back, flattened and walked from every input bit through cells that have no clock. Cells that work
bit by bit are followed bit by bit; all others as if every input bit reached every output bit. So a path that is found
may be none, but none is missed.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from gen.emit.process import scratch
from gen.emit.yosys import run_yosys

__all__ = ["combinational_paths"]

_REGISTERS = {"$dff", "$dffe", "$sdff", "$sdffe", "$sdffce"}
_BITWISE = {"$not", "$pos", "$buf", "$and", "$or", "$xor", "$xnor", "$mux", "$pmux", "$bwmux"}
_WHOLE = {"$add", "$sub", "$neg", "$mul", "$shl", "$shr", "$sshl", "$sshr", "$shift", "$shiftx", "$eq", "$ne", "$lt",
          "$le", "$gt", "$ge", "$logic_not", "$logic_and", "$logic_or", "$reduce_and", "$reduce_or", "$reduce_xor",
          "$reduce_xnor", "$reduce_bool"}

#: a net's number, or a constant as text
_Bit = int | str


def combinational_paths(verilog: str, top: str) -> set[tuple[str, str]]:
    """Pairs of input and output port of a module between which there may be a path within a cycle.

    Raises
    ------
    ValueError
        The netlist has a cell of a kind that this does not know.
    """
    with scratch() as folder:
        (folder / "design.v").write_text(verilog)
        run_yosys({top: [
            "read_verilog -nomem2reg design.v", f"hierarchy -check -top {top}", "proc", "flatten -noscopeinfo",
            "memory_collect", "opt_expr", "opt_clean", "write_json netlist.json"]}, folder)
        module = json.loads((folder / "netlist.json").read_text())["modules"][top]
    after: dict[int, set[int]] = defaultdict(set)
    for cell in module["cells"].values():
        for source, sink in _arcs(cell):
            if isinstance(source, int) and isinstance(sink, int):
                after[source].add(sink)
    outputs: dict[int, set[str]] = defaultdict(set)
    for name, port in module["ports"].items():
        if port["direction"] != "input":
            for bit in port["bits"]:
                if isinstance(bit, int):
                    outputs[bit].add(name)
    return {(name, output) for name, port in module["ports"].items() if port["direction"] == "input"
            for output in _reached(port["bits"], after, outputs)}


def _reached(start: Iterable[_Bit], after: dict[int, set[int]], outputs: dict[int, set[str]]) -> set[str]:
    seen = {bit for bit in start if isinstance(bit, int)}
    left, found = list(seen), set[str]()
    while left:
        bit = left.pop()
        found |= outputs.get(bit, set())
        new = after.get(bit, set()) - seen
        seen |= new
        left += new
    return found


def _arcs(cell: dict[str, Any]) -> Iterator[tuple[_Bit, _Bit]]:
    """Pairs of bits of a cell, from an input to an output that follows it within the cycle."""
    kind, pins = cell["type"], cell["connections"]
    if kind in _REGISTERS:
        return
    if kind == "$mem_v2":
        yield from _memory(cell)
        return
    if kind not in _BITWISE | _WHOLE:
        raise ValueError(f"a netlist of known cells was wanted, a cell {kind} came")
    inputs = [bits for name, bits in pins.items() if cell["port_directions"][name] == "input"]
    out = pins["Y"]
    if kind in _WHOLE:
        yield from ((source, sink) for bits in inputs for source in bits for sink in out)
        return
    for name, bits in pins.items():
        if name == "Y":
            continue
        if name == "S" and kind != "$bwmux":
            yield from ((source, sink) for source in bits for sink in out)
        else:
            # operands that are too short are extended with their last bit; $pmux has several side by side
            wide = bits + bits[-1:] * (len(out) - len(bits))
            yield from ((source, out[i % len(out)]) for i, source in enumerate(wide))


def _memory(cell: dict[str, Any]) -> Iterator[tuple[_Bit, _Bit]]:
    """A read port without a clock follows its address."""
    pins, parameters = cell["connections"], cell["parameters"]
    width, address, ports, clocked = (int(parameters[n], 2) for n in ("WIDTH", "ABITS", "RD_PORTS", "RD_CLK_ENABLE"))
    for port in range(ports):
        if not clocked >> port & 1:
            for source in (*pins["RD_ADDR"][port * address:(port + 1) * address], pins["RD_EN"][port]):
                yield from ((source, sink) for sink in pins["RD_DATA"][port * width:(port + 1) * width])
