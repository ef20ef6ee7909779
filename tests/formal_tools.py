"""Proves properties of units with Yosys and ABC, which come in the same package."""

import importlib.util
import pathlib
import re
import tempfile
from typing import Any

from amaranth.back import rtlil
from amaranth.hdl import ClockDomain, Module, Value

from gen.emit.process import run_process
from gen.emit.yosys import run_yosys

__all__ = ["Bounded", "Proven", "Violated", "check"]


class Proven(str):
    """No violation can ever happen."""


class Bounded(str):
    """No violation happens within the frames looked at."""


class Violated(str):
    """A violation happens; says in which frame."""


def check(specification: Any, inputs: list[Any], *, frames: int | None = None, simplify: bool = False,
          timeout: float = 300) -> Proven | Bounded | Violated:
    """Check the assertions of a module under its assumptions, from reset on.

    Registers start at their initial values, memories with any contents.

    Parameters
    ----------
    specification:
        An elaboratable with ``Assert`` and ``Assume``.
    inputs:
        Signals that may have any value in any cycle.
    frames: int, optional
        Look at so many cycles (bounded model checking, ABC ``bmc3``); else prove for all (ABC ``pdr``).
    simplify: bool
        First join what is always equal (ABC ``dc2``, ``scorr``): worth its time in large circuits.
    timeout: float
        Seconds.

    Raises
    ------
    RuntimeError
        ABC did not come to a result.
    """
    m = Module()
    m.domains.sync = domain = ClockDomain("sync", reset_less=True)
    m.submodules.top = specification
    with tempfile.TemporaryDirectory(prefix="speculoos-") as temporary:
        folder = pathlib.Path(temporary)
        ports = [domain.clk, *(Value.cast(i) for i in inputs)]
        (folder / "spec.il").write_text(rtlil.convert(m, name="top", ports=ports, emit_src=False))
        run_yosys({"top": [
            "read_rtlil spec.il", "hierarchy -top top", "proc -norom", "flatten", "memory_collect",
            "setparam -set INIT 1'x t:$mem_v2", "memory_map", "chformal -cover -remove", "chformal -lower",
            "opt -full", "techmap", "opt -fast", "dffunmap", "aigmap", "opt_clean",
            "write_aiger -I -B -zinit spec.aig"]}, folder, timeout=timeout)
        abc = pathlib.Path(importlib.util.find_spec("pyosys").origin).with_name("yosys-abc")  # type: ignore
        engine = f"pdr -T {timeout:.0f}" if frames is None else f"bmc3 -F {frames} -T {timeout:.0f}"
        smaller = "dc2; scorr; " if simplify else ""
        _, text = run_process([str(abc), "-c", f"read_aiger spec.aig; fold; strash; {smaller}print_stats; {engine}"],
                              tool="ABC", cwd=folder, timeout=timeout + 60)
    violated = re.search(r"Output .* was asserted in frame (\d+)", text)
    if violated:
        return Violated(f"in cycle {violated[1]}")
    if frames is None and "Property proved" in text:
        return Proven("for all cycles")
    if frames is not None and re.search(rf"No output asserted in {frames} frames", text):
        return Bounded(f"within {frames} cycles")
    raise RuntimeError(f"ABC came to no result: {text[-400:]}")
