"""``speculoos demo``: a language model's matrices through the engine's Verilog."""

import argparse

from speculoos.arguments import add_build_dir, check_folder
from speculoos.bench.engine import maker
from speculoos.bench.measured import checked
from speculoos.demo import demo
from speculoos.report import Report

__all__ = ["EXAMPLES", "add_arguments", "run"]

EXAMPLES = """\
The models' int8 weights and the activations of a real prompt are computed by the simulated Verilog of three
engines; every bit of every result is compared. Exit code 0 says that everything was equal.

examples:
  speculoos demo
  speculoos demo --prompt "In the beginning" --tokens 80
  speculoos demo --model stories260K.bin --tokenizer tok512.bin --prompt "Once upon a time\""""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What :mod:`speculoos.demo.demo` asks for, and the build folder."""
    demo.add_arguments(parser)
    add_build_dir(parser)


def run(args: argparse.Namespace, report: Report) -> int:
    """Run the demonstration, if it can be run at all: texts and Verilog alone take a while."""
    from gen.flows.doctor import require
    require("amaranth", "pyosys", "g++", "make", "perl", "verilator")
    check_folder("--build-dir", args.build_dir)
    check_folder("--output", args.output)
    return checked(lambda: demo.run(args, report, maker(args)))
