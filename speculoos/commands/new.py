"""``speculoos new``: a configuration file with every parameter explained."""

import argparse
import dataclasses
from pathlib import Path

from gen.errors import UserError
from speculoos.report import Report, write_atomic

__all__ = ["EXAMPLES", "add_arguments", "run"]

EXAMPLES = "example: speculoos new my_engine --from engine_small"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Name, source and file."""
    parser.add_argument("name", metavar="NAME", help="name of the new design")
    parser.add_argument("--from", metavar="DESIGN", default="engine", dest="source",
                        help="preset, block or file to start from (default: engine)")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path,
                        help="file to write (default: NAME.toml)")


def run(args: argparse.Namespace, report: Report) -> int:
    """Write the file, never over another."""
    from gen.config.config import presets, resolve, why_not_a_top
    from gen.config.schema import is_name
    from gen.config.template import render
    from rtl.registry import BLOCKS
    if not is_name(args.name):
        raise UserError(f"a name must be lower-case letters, digits and underscores, not {args.name!r}")
    if args.name in BLOCKS or args.name in presets():
        kind = "block" if args.name in BLOCKS else "preset"
        raise UserError(f"{args.name} is the name of a {kind} already, the new design needs another")
    config = dataclasses.replace(resolve(args.source), name=args.name)
    reason = why_not_a_top(args.name, config.block.name, config.params)
    if reason:
        raise UserError(f"{args.name} cannot be the name of a top module, because {reason}: choose another")
    path = args.output or Path(f"{args.name}.toml")
    if not path.parent.is_dir():
        raise UserError(f"{path}: there is no folder {path.parent}")
    write_atomic(path, render(config), overwrite=False)
    report.line(f"wrote {path}")
    report.line(f"next: speculoos check {path}")
    report.data["files"] = [str(path)]
    return 0
