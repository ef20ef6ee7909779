"""``speculoos bench``: cycles and utilisation, measured in the RTL."""

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from gen.errors import ToolError
from speculoos.arguments import add_build_dir, build_dir
from speculoos.bench import engine as bench
from speculoos.bench import manager as bench_manager
from speculoos.bench import pim as bench_pim
from speculoos.report import Report

if TYPE_CHECKING:
    from gen.emit.emit import Design
    from sim_models.params.manager.manager import ManagerParams
    from sim_models.params.pim.stack.pim_stack import PimStackParams
    from sim_models.params.tile.engine.compute_engine import ComputeEngineParams
    from tb.manager.manager_meter import ManagerMeter
    from tb.pim.stack.stack_meter import StackMeter
    from tb.tile.engine.engine_meter import EngineMeter

__all__ = ["EXAMPLES", "add_arguments", "run", "with_engines"]

EXAMPLES = """\
examples:
  speculoos bench engine --json bench.json --plot bench.png
  speculoos bench engine --m 9 --k 64 --n 172
  speculoos bench engine --m 1-17 --k 96 --n 256 --mode auto,systolic
  speculoos bench engine --baselines --plot baselines.png
  speculoos bench manager --json manager.json --plot manager.png --timeline run.json
  speculoos bench pim --plain --json pim.json --plot pim.png"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What :mod:`speculoos.bench.engine` asks for, and the build folder."""
    bench.add_arguments(parser)
    bench_manager.add_arguments(parser)
    bench_pim.add_arguments(parser)
    add_build_dir(parser)


def run(args: argparse.Namespace, report: Report) -> int:
    """Measure; engines are built when the arguments have been checked."""
    from gen.config.config import resolve
    from sim_models.params.manager.manager import ManagerParams
    from sim_models.params.pim.stack.pim_stack import PimStackParams
    params = resolve(args.design, args.settings).params
    if type(params) is PimStackParams:
        return with_engines(args, lambda _: bench_pim.run(args, report, _stack(args), params))
    if type(params) is ManagerParams:
        return with_engines(args, lambda _: bench_manager.run(args, report, _manager(args), params))
    return with_engines(args, lambda make: bench.run(args, report, make))


def _manager(args: argparse.Namespace) -> "Callable[[ManagerParams, int, int], ManagerMeter]":
    def make(p: "ManagerParams", tokens: int, prompts: int) -> "ManagerMeter":
        from gen.flows.doctor import require
        require("g++", "make", "perl", "verilator")
        from tb.manager.manager_meter import ManagerMeter
        return ManagerMeter(p, build_dir(args), tokens=tokens, prompts=prompts)

    return make


def _stack(args: argparse.Namespace) -> "Callable[[PimStackParams], StackMeter]":
    def make(p: "PimStackParams") -> "StackMeter":
        from gen.flows.doctor import require
        require("g++", "make", "perl", "verilator")
        from tb.pim.stack.stack_meter import StackMeter
        return StackMeter(p, build_dir(args), seed=args.seed)

    return make


def with_engines(args: argparse.Namespace, work: "Callable[[Callable[..., EngineMeter]], int]") -> int:
    """Do some work that needs Verilated engines.

    Raises
    ------
    ToolError
        A tool is missing, an engine cannot be built, or what it does differs from its model.
    """
    from tb.common.native import NativeTimeout

    def make(p: "ComputeEngineParams", design: "Design | None" = None) -> "EngineMeter":
        from gen.flows.doctor import require
        require("g++", "make", "perl", "verilator")
        from tb.tile.engine.engine_meter import EngineMeter
        return EngineMeter(p, build_dir(args), seed=args.seed, design=design)

    try:
        return work(make)
    except (AssertionError, NativeTimeout) as e:      # a value, a cycle count or a stream rule
        raise ToolError(f"the RTL differs from its model: {e}") from e
