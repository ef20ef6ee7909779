"""The texts of a design's products: Verilog, file list, FuseSoC core, manifest."""

import json
import pathlib
from collections.abc import Mapping
from importlib import metadata
from typing import Any

from gen.config.schema import CLOCK_MHZ
from gen.emit.emit import Design
from gen.errors import UserError
from gen.products.constraints import constraint_files
from gen.products.core import core, model_file
from gen.products.folder import GENERATOR, MANIFEST, FileSet, replace_folder, sha256
from gen.products.package import package
from gen.products.page import page
from gen.products.registers import c_header, system_rdl
from gen.products.template import template

__all__ = ["render", "write_products"]

#: what Verilator -Wall may say about generated Verilog
WAIVER = pathlib.Path(__file__).parent.parent / "verilator.vlt"
#: tools whose version decides the text of the Verilog
TOOLS = ("amaranth", "pyosys", "speculoos")


def write_products(design: Design, out_dir: str | pathlib.Path, *,
                   extra: FileSet | None = None, force: bool = False,
                   clock_mhz: float = CLOCK_MHZ) -> dict[str, str]:
    """Write everything that belongs to ``design``.

    One ``.v`` file per module, the page, package, template and constraints of the top, file list, FuseSoC core,
    Verilator waiver, registers, and ``manifest.json``; docs/products.md says what each is. The same design gives the
    same bytes wherever and whenever it is written.

    Parameters
    ----------
    design: Design
        From :func:`gen.emit.emit`.
    out_dir:
        Folder to make, or to replace if Speculoos wrote it.
    extra:
        Further files, by relative path; they enter the manifest.
    force: bool
        Replace files in ``out_dir`` that were edited since Speculoos wrote them.
    clock_mhz: float
        Frequency for the constraint files, in MHz.

    Returns
    -------
    dict[str, str]
        What was written: relative path and SHA-256 of each file.

    Raises
    ------
    UserError
        The folder is not ours to replace or cannot be written; nothing is left behind.
    """
    files = render(design, extra, clock_mhz)
    replace_folder(pathlib.Path(out_dir), files, force=force)
    return {name: sha256(text) for name, text in files.items()}


def render(design: Design, extra: FileSet | None = None, clock_mhz: float = CLOCK_MHZ) -> dict[str, str]:
    """All files of ``design``: relative path and text."""
    top = design.top
    files = {f"{name}.v": text for name, text in design.modules.items()}
    files[f"{top}.f"] = "".join(f"{name}.v\n" for name in design.modules)
    if design.models:
        files |= {model_file(name): text for name, text in design.models.items()}
        files[f"{top}.sim.f"] = "".join(f"{model_file(name)}\n" for name in design.models) + files[f"{top}.f"]
    files[f"{top}.vlt"] = WAIVER.read_text()
    files |= {f"{top}.core": core(design), f"{top}.md": page(design), f"{top}_pkg.sv": package(design),
              f"{top}_inst.v": template(design), **constraint_files(design, clock_mhz)}
    table = design.unit.register_table()
    if table:
        files |= {f"{top}.rdl": system_rdl(table, top), f"{top}.h": c_header(table, top)}
    for name, text in (extra or {}).items():
        if name in files or name == MANIFEST:
            raise UserError(f"{name} would be written twice", exit_code=1)
        files[name] = text
    return dict(sorted(files.items())) | {MANIFEST: _manifest(design, files)}


def _manifest(design: Design, files: FileSet) -> str:
    top = design.top
    manifest: dict[str, Any] = {
        "generator": GENERATOR,
        "block": design.blocks[top],
        "top": top,
        "parameters": design.params[top],
        "ports": _ports(design, top),
        "modules": {name: {
            "file": f"{name}.v", "block": design.blocks[name], "parameters": design.params[name],
            "ports": _ports(design, name), "instances": dict(design.instances[name]),
        } for name in design.modules},
        "files": {name: {"sha256": sha256(text)} for name, text in sorted(files.items())},
        "tools": {tool: metadata.version(tool) for tool in TOOLS},
    }
    return json.dumps(manifest, indent=2) + "\n"


def _ports(design: Design, module: str) -> list[Mapping[str, Any]]:
    return [{"name": p.name, "direction": p.direction, "width": p.width, "signed": p.signed, "role": p.role}
            for p in design.ports[module]]
