"""``speculoos bench``: cycles and utilisation, measured in the RTL."""

import argparse

from gen import bench
from gen.commands.arguments import add_build_dir, build_dir
from gen.report import Report

__all__ = ["EXAMPLES", "add_arguments", "run"]

EXAMPLES = "example: speculoos bench engine --m 9 --k 64 --n 172 --json -"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What :mod:`gen.bench` asks for, and the build folder."""
    bench.add_arguments(parser)
    add_build_dir(parser)


def run(args: argparse.Namespace, report: Report) -> int:
    """Check the tools, then measure."""
    from gen.doctor import require
    require("g++", "make", "perl", "verilator")
    args.build_dir = build_dir(args)
    return bench.run(args, report)
