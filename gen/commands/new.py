"""``speculoos new``: a configuration file with every parameter explained."""

import argparse
import dataclasses
from pathlib import Path

from gen.errors import UserError
from gen.report import Report

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
    from gen.config import presets, resolve
    from gen.schema import is_name
    from gen.template import render
    from rtl.registry import BLOCKS
    if not is_name(args.name):
        raise UserError(f"a name must be lower-case letters, digits and underscores, not {args.name!r}")
    if args.name in BLOCKS or args.name in presets():
        kind = "block" if args.name in BLOCKS else "preset"
        raise UserError(f"{args.name} is the name of a {kind} already, the new design needs another")
    config = dataclasses.replace(resolve(args.source), name=args.name)
    path = args.output or Path(f"{args.name}.toml")
    try:
        # Mode x fails when the file is there, also if it appeared a moment ago.
        with open(path, "x", encoding="utf-8") as f:
            f.write(render(config))
    except FileExistsError as e:
        raise UserError(f"{path} exists already and is not overwritten") from e
    except OSError as e:
        raise UserError(f"{path} cannot be written: {e.strerror}") from e
    report.line(f"wrote {path}")
    report.line(f"next: speculoos check {path}")
    report.data["files"] = [str(path)]
    return 0
