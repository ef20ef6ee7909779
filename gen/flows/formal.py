"""Proof that the emitted Verilog is the hardware that the flat elaboration describes."""

import re
from collections.abc import Iterator

from gen.emit.emit import Design, to_rtlil
from gen.emit.names import renamed
from gen.emit.process import Progress, scratch
from gen.emit.yosys import run_yosys
from gen.errors import ToolError
from rtl.unit import Unit

__all__ = ["prove_equivalent"]


def prove_equivalent(unit: Unit, design: Design, *, timeout: float = 600,
                     progress: Progress | None = None) -> int:
    """Prove by induction that the Verilog of ``design`` equals the flat elaboration of ``unit``.

    The reference is Amaranth's own elaboration without a platform, everything in place, which shares none of
    the emitter's instances, clean-up or naming. Registers of both sides are matched by name, their initial
    values compared, and every next state and output proven equal. Memories are taken apart into registers, so
    prove parameters with small ones; contents that were never written count as undefined.

    Parameters
    ----------
    unit: Unit
        Not yet elaborated, with the parameters of the unit that ``design`` was emitted from.
    design: Design
        What :func:`gen.emit.emit` made.

    Returns
    -------
    int
        How many bits of outputs and registers were proven equal.

    Raises
    ------
    ToolError
        They are not proven equal, or the proof did not end within ``timeout`` seconds.
    """
    with scratch() as folder:
        (folder / "gold.il").write_text(to_rtlil(unit, design.top))
        (folder / "gate.v").write_text(
            "".join([*design.models.values(),
                     *(renamed(text, design.origins[name]) for name, text in design.modules.items())]))
        (folder / "registers").write_text(
            "".join(f"{design.top}/\\{path}{name}\n" for path, module in _paths(design, design.top)
                    for name in _registers(design, module)))
        log = run_yosys({design.top: _script(design)}, folder, timeout=timeout, progress=progress)
        _compare_initial(design.top, *((folder / f"{side}.init").read_text() for side in ("gold", "gate")))
    unproven = re.findall(r"Unproven \$equiv \S+ \\(\S+)_gold", log[design.top])
    proven = re.search(r"Of those cells (\d+) are proven", log[design.top])
    if unproven or proven is None:
        some = ", ".join(sorted(set(unproven))[:3])
        raise ToolError(f"the Verilog of {design.top} is not proven equal to its flat elaboration: "
                        f"{len(unproven)} bits are open, among them of {some}")
    return int(proven[1])


def _paths(design: Design, module: str, path: str = "") -> Iterator[tuple[str, str]]:
    """Path (with a trailing dot) and module of every unit, the top's path being empty."""
    yield path, module
    for instance, child in design.instances[module]:
        yield from _paths(design, child, f"{path}{instance}.")


def _registers(design: Design, module: str) -> Iterator[str]:
    """Hierarchical names of a module's registers, and its outputs if a vendor's block may hold their registers."""
    yield from design.origins[module].values()
    if any(f"  {block} #(" in design.modules[module] for block in design.models):
        yield from (port.name for port in design.ports[module] if port.direction == "output")


def _script(design: Design) -> list[str]:
    top = design.top
    units = " ".join(f"{top}.{path[:-1]}" for path, _ in _paths(design, top) if path)
    # the emitter joins equal registers of one unit, so the reference has to
    merge = ["flatten -noscopeinfo", "opt_clean", "opt_merge"]
    within = [f"setattr -mod -set keep_hierarchy 1 {units}", *merge,
              f"setattr -mod -unset keep_hierarchy {units}"] if units else merge
    flat = [
        "flatten -noscopeinfo", f"hierarchy -check -top {top}", "memory_collect",
        "setparam -set INIT 1'x t:$mem_v2 r:WR_PORTS>0 %i",
        # a net has many names: the one of its register is to stand for all of them, on both sides
        "select -set registers -read registers", "rename -hide w:* @registers %d"]
    plain = ["memory_map", "opt_clean", "opt_expr -keepdc", "wreduce -keepdc t:$mul t:$add t:$sub %u %u",
             "opt_clean"]

    def side(name: str, read: str, first: list[str]) -> list[str]:
        return [read, f"hierarchy -check -top {top}", "proc -norom", *first, *flat,
                f"dump -o {name}.init @registers", *plain, f"rename {top} {name}",
                f"design -stash {name}"]

    return [
        *side("gold", "read_rtlil gold.il", within),
        *side("gate", "read_verilog gate.v", []),
        "design -copy-from gold -as gold gold", "design -copy-from gate -as gate gate",
        "equiv_make gold gate eq", "hierarchy -top eq", "equiv_struct", "equiv_simple", "equiv_induct",
        "equiv_status"]


def _compare_initial(top: str, gold: str, gate: str) -> None:
    """Induction says nothing about where the registers start: compare that here."""
    pattern = re.compile(r"attribute \\init (\S+)\n(?:\s*attribute .*\n)*\s*wire .*\\(\S+)$", re.MULTILINE)
    want, have = ({name: value for value, name in pattern.findall(side)} for side in (gold, gate))
    for name in want.keys() & have.keys():
        if _bits(want[name]) != _bits(have[name]):
            raise ToolError(f"register {name} of {top} starts as {have[name]} in the Verilog, "
                            f"not as {want[name]}")


def _bits(constant: str) -> str:
    width, quote, bits = constant.partition("'")
    return bits if quote else f"{int(width):032b}"
