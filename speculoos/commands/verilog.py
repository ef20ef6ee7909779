"""``speculoos verilog``: everything on disk that belongs to one design."""

import argparse
from pathlib import Path

from gen.config.schema import CLOCK_MHZ
from gen.errors import UserError
from speculoos.arguments import add_design
from speculoos.report import Report

__all__ = ["EXAMPLES", "add_arguments", "run"]

EXAMPLES = """\
The folder is made, or replaced if Speculoos wrote it; a folder with anything else in it is left alone, and so is
one with files that were edited since, unless --force is given. docs/products.md says what each file is for.

examples:
  speculoos verilog engine -o out
  speculoos verilog pe_array --set rows=4 --set cols=4 -o out
  speculoos verilog engine_small --prefix small_ -o out
  speculoos verilog engine --no-initial-values -o out"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A design and a folder."""
    add_design(parser)
    parser.add_argument("-o", "--output", metavar="DIR", type=Path, help="folder to write; it must be given")
    parser.add_argument("--prefix", metavar="P",
                        help="put P before the name of every module, so that designs can share a build")
    parser.add_argument("--no-initial-values", action="store_true",
                        help="leave out the values that registers have before the reset, which some tools refuse")
    parser.add_argument("--clock", metavar="MHZ", type=_megahertz, default=CLOCK_MHZ,
                        help=f"clock frequency for the constraint files (default: {CLOCK_MHZ:g})")
    parser.add_argument("--force", action="store_true",
                        help="replace files of the folder that were edited since Speculoos wrote them")


def run(args: argparse.Namespace, report: Report) -> int:
    """Emit, write, and name every file."""
    from gen.config.config import resolve
    from gen.flows.doctor import require
    config = resolve(args.design, args.settings)
    if args.output is None:     # said after what is wrong with the design
        raise UserError("a folder to write was wanted, as in -o DIR")
    if args.prefix == "":
        raise UserError("--prefix needs at least one character")
    require("amaranth", "pyosys")
    from gen.emit.emit import emit
    from gen.emit.initial import without_initial_values
    from gen.emit.rename import renamed
    from gen.products import write_products
    design = renamed(emit(config.block.unit(config.params)), top=config.top, prefix=args.prefix or "")
    if args.no_initial_values:
        design = without_initial_values(design)
    files = write_products(design, args.output, force=args.force, clock_mhz=args.clock)
    for name in files:
        report.line(f"wrote {args.output / name}")
    report.data.update(design=config.name, block=config.block.name, top=design.top,
                       folder=str(args.output), files=files)
    return 0


def _megahertz(text: str) -> float:
    """A clock frequency, as the ``type`` of an argument."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 10_000:
        raise argparse.ArgumentTypeError(f"a clock of more than 0 and at most 10000 MHz was wanted, not {text!r}")
    return value
