"""No result depends on a word that a memory of the array or the engine reads while it is written.

The memories say so with an attribute (``no_rw_check``), so that no synthesizer spends logic on the old word. In here
such a read gives the inverse of the old word, in every memory with that attribute.
"""

import re
from collections.abc import Callable

import pytest

from gen.emit.emit import emit
from rtl.tile.engine.compute_engine import ComputeEngine
from rtl.tile.engine.pe_array import PEArray
from rtl.unit import Unit
from tb.common.native import NativeSim, compile_native
from tb.common.runner import unit_ports
from tests.designs.run import BUILDS
from tests.rtl.tile.engine.test_compute_engine_mutation import ENGINE, engine_stimulus
from tests.rtl.tile.engine.test_pe_array_mutation import ARRAY, array_stimulus

UNITS: dict[str, tuple[Callable[[], Unit], Callable[[], Callable[[NativeSim], None]]]] = {
    "array": (lambda: PEArray(ARRAY), array_stimulus),
    "engine": (lambda: ComputeEngine(ENGINE), engine_stimulus),
}
_MEMORY = re.compile(r"\(\* no_rw_check = \S+ \*\)\n  reg \[\d+:0\] (\w+) \[\d+:0\];\n"
                     r"  always @\(posedge clk\) begin\n    if \((.+)\)\n      \1\[(.+)\] <= .+;\n  end\n")


def inverting(text: str, *, whatever_is_written: bool = False) -> str:
    """Verilog whose marked memories return the inverse of a word that is read while it is written.

    With ``whatever_is_written`` they do so while any word is written, which must be noticed.
    """
    modules = text.split("\nendmodule\n")
    for n, module in enumerate(modules):
        for name, enable, address in _MEMORY.findall(module):
            read = re.compile(rf"<= {name}\[(.+)\];")
            assert len(read.findall(module)) == 1
            same = "" if whatever_is_written else f" && ({address}) == (\\1)"
            module = read.sub(rf"<= (({enable}){same}) ? ~{name}[\1] : {name}[\1];", module)
        modules[n] = module
    return "\nendmodule\n".join(modules)


def _simulation(unit: str, **how: bool) -> NativeSim:
    design = emit(UNITS[unit][0]())
    text = inverting(design.simulation, **how)
    assert text.count("? ~") - design.simulation.count("? ~") == text.count("no_rw_check")
    return NativeSim(compile_native(text, design.top, unit_ports(design.unit), BUILDS), seed=1)


@pytest.mark.parametrize("unit", UNITS)
def test_nothing_depends_on_a_collision(unit: str) -> None:
    UNITS[unit][1]()(_simulation(unit))


@pytest.mark.parametrize("unit", UNITS)
def test_a_word_that_is_wrong_while_others_are_written_is_noticed(unit: str) -> None:
    with pytest.raises(AssertionError):
        UNITS[unit][1]()(_simulation(unit, whatever_is_written=True))


def test_every_memory_of_the_engine_is_marked() -> None:
    """All but the queues, whose reads have no clock."""
    design = emit(ComputeEngine(ENGINE))
    memory = re.compile(r"reg \[\d+:0\] \w+ \[\d+:0\];")
    memories = {name: len(memory.findall(text)) for name, text in design.modules.items()}
    marked = {name: text.count("no_rw_check") for name, text in design.modules.items()}
    assert {name: n for name, n in memories.items() if n and not marked[name]}.keys() == {
        name for name in design.modules if name.startswith("fifo")}
    assert sum(marked.values()) >= 4
