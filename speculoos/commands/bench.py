"""``speculoos bench``: cycles and utilisation, measured in the RTL."""

import argparse
import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gen.errors import UserError
from speculoos.arguments import add_build_dir, add_design, check_distinct
from speculoos.bench.measured import checked
from speculoos.report import Report

if TYPE_CHECKING:
    from gen.config.config import Config

__all__ = ["EXAMPLES", "add_arguments", "add_arguments_of", "run"]

EXAMPLES = """\
Each kind of design has options of its own: `speculoos bench engine --help` shows those of an engine.

examples:
  speculoos bench engine --json bench.json --plot bench.png
  speculoos bench engine --m 9 --k 64 --n 172
  speculoos bench engine --m 1-17 --k 96 --n 256 --mode auto,systolic
  speculoos bench engine --baselines --plot baselines.png
  speculoos bench manager --json manager.json --plot manager.png --timeline run.json
  speculoos bench pim --plain --json pim.json --plot pim.png"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What every kind of design takes."""
    add_design(parser)
    parser.add_argument("--plot", type=Path, metavar="FILE.png", help="also draw the results")
    add_build_dir(parser)


def add_arguments_of(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> None:
    """Add the options that belong to the design, which comes first on the command line.

    Raises
    ------
    UserError
        The first argument is an option, no design, or a design that nothing measures.
    """
    from gen.config.config import resolve
    if not arguments or arguments[0] in ("-h", "--help"):
        return
    if arguments[0].startswith("-"):
        raise UserError(f"bench takes the design first, as in `speculoos bench engine --m 9`, not {arguments[0]!r}")
    parser.prog += f" {arguments[0]}"
    _module(resolve(arguments[0])).add_arguments(parser.add_argument_group("options of this kind of design"))


def run(args: argparse.Namespace, report: Report) -> int:
    """Measure; simulators are built when the arguments have been checked."""
    from gen.config.config import resolve
    config = resolve(args.design, args.settings)
    module = _module(config)
    check_distinct({"--json": report.json_file, "--plot": args.plot})
    return checked(lambda: module.run(args, report, module.maker(args), config))


def _module(config: "Config") -> Any:
    """What measures a design."""
    from rtl.registry import BLOCKS
    if config.block.benchmark is None:
        measured = [b.name for b in BLOCKS.values() if b.benchmark]
        raise UserError(f"bench measures a {', '.join(measured[:-1])} or {measured[-1]}, and {config.name} is a "
                        f"{config.block.name}")
    return importlib.import_module(f"speculoos.bench.{config.block.benchmark}")
