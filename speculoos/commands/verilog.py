"""``speculoos verilog``: everything on disk that belongs to one design."""

import argparse
from pathlib import Path

from speculoos.arguments import add_design
from speculoos.report import Report

__all__ = ["EXAMPLES", "add_arguments", "run"]

EXAMPLES = """\
The folder is made, or replaced if Speculoos wrote it; a folder with anything else in it is left alone.

examples:
  speculoos verilog engine -o out
  speculoos verilog pe_array --set rows=4 --set cols=4 -o out"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A design and a folder."""
    add_design(parser)
    parser.add_argument("-o", "--output", metavar="DIR", type=Path, required=True, help="folder to write")


def run(args: argparse.Namespace, report: Report) -> int:
    """Emit, write, and name every file."""
    from gen.config.config import resolve
    from gen.flows.doctor import require
    config = resolve(args.design, args.settings)
    require("amaranth", "pyosys")
    from gen.emit.emit import emit
    from gen.products import write_products
    design = emit(config.block.unit(config.params))
    extra = {}
    if config.block.name in ("manager_registers", "saddle_manager"):
        from gen.products.registers import register_files
        from sim_models.params.manager.manager import ManagerParams
        assert isinstance(config.params, ManagerParams)
        extra = register_files(config.params, design.top)
    files = write_products(design, args.output, extra=extra)
    for name in files:
        report.line(f"wrote {args.output / name}")
    report.data.update(design=config.name, block=config.block.name, top=design.top,
                       folder=str(args.output), files=files)
    return 0
