"""``speculoos sim``: cocotb regressions on Verilator."""

import argparse
from typing import TYPE_CHECKING, Any

from gen.errors import UserError
from speculoos.arguments import add_build_dir, add_design, build_dir, integer, refuse, seed
from speculoos.report import Report

if TYPE_CHECKING:
    from gen.config.config import Config
    from sim_models.params.base import Params
    from tb.common.runner import BenchResult
    from tb.common.waves import Recording

__all__ = ["EXAMPLES", "add_arguments", "run"]

EXAMPLES = """\
A block alone is run with every set of parameters that its bench names. --set, --test and --waves narrow
this to one run: the block's defaults, changed by --set.

examples:
  speculoos sim compute_engine
  speculoos sim pe_array --set rows=4 --seed 7 --waves
  speculoos sim pe_array --test scenarios --waves --from 100 --to 200
  speculoos sim --list fifo
  speculoos sim all"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Block, seed, and what narrows a run."""
    add_design(parser, optional=True, also=", or `all`")
    parser.add_argument("--seed", type=seed, metavar="N", help="seed of everything random (default: drawn)")
    parser.add_argument("--test", metavar="NAME", help="run the tests of this name alone")
    parser.add_argument("--list", action="store_true", help="show the blocks with their tests and variants")
    parser.add_argument("--waves", action="store_true", help="record registers and ports, and save a view of them")
    cycle = integer(1, 1 << 40)
    parser.add_argument("--from", type=cycle, metavar="CYCLE", dest="first",
                        help="with --waves: first cycle of each test to record")
    parser.add_argument("--to", type=cycle, metavar="CYCLE", dest="last",
                        help="with --waves: last cycle of each test to record")
    parser.add_argument("--scope", metavar="INSTANCE", help="with --waves: this instance below the top alone (a.b)")
    parser.add_argument("--depth", type=integer(1, 100), metavar="N",
                        help="with --waves: levels of hierarchy (default: all)")
    parser.add_argument("--nets", action="store_true",
                        help="with --waves: also the nets inside modules (takes longer to build)")
    parser.add_argument("--jobs", type=integer(1, 64), metavar="N",
                        help="runs side by side, where there are several (default: 2)")
    add_build_dir(parser)


def run(args: argparse.Namespace, report: Report) -> int:
    """Run the benches, print a line for each; 1 when any failed."""
    from gen.flows.doctor import require
    if args.list:
        return _list(args, report)
    if args.design is None:
        raise UserError("a design was wanted, or `all`, or --list; see `speculoos sim --help`")
    recording = _recording(args)
    config = _config(args)
    require("g++", "make", "perl", "verilator", "cocotb")
    work = _work(args, config)
    root = build_dir(args)
    results = _run_all(args, report, work, root, recording)
    report.table(["module", "tests", "failed", "comparisons", "cycles", "seed", "seconds"], [
        [r.unit_name, r.tests, len(r.failures), r.comparisons, r.cycles, r.seed, round(r.seconds, 1)]
        for r in results])
    for result in results:
        _explain(report, result)
    failed = [r for r in results if not r.ok]
    report.line()
    report.line(f"{len(failed)} of {len(results)} runs failed" if failed else
                f"all {len(results)} runs passed, {sum(r.comparisons for r in results)} comparisons")
    report.data["ok"] = not failed
    report.data["rows"] = [_as_json(r) for r in results]
    return 1 if failed else 0


def _recording(args: argparse.Namespace) -> "Recording | None":
    """What to record, None for nothing."""
    if args.waves:
        from tb.common.waves import Recording
        return Recording(args.first, args.last, args.scope or "", args.depth or 0, args.nets)
    for option, given in (("--from", args.first), ("--to", args.last), ("--scope", args.scope),
                          ("--depth", args.depth), ("--nets", args.nets)):
        refuse(option, given, "it narrows --waves")
    return None


def _list(args: argparse.Namespace, report: Report) -> int:
    """Show each block's variants and tests."""
    for option, given in (("--set", args.settings), ("--seed", args.seed is not None), ("--test", args.test),
                          ("--waves", args.waves), ("--jobs", args.jobs)):
        refuse(option, given, "--list runs nothing")
    _recording(args)
    from rtl.registry import BLOCKS
    from tb.common.runner import variants
    chosen = [args.design] if args.design not in (None, "all") else list(BLOCKS)
    for name in chosen:
        if name not in BLOCKS:
            from gen.config.config import guess
            raise UserError(f"--list shows blocks, and there is no block {name!r}{guess(name, BLOCKS)}")
    rows = [{"block": name, "variants": variants(name), "tests": _tests(BLOCKS[name].bench)} for name in chosen]
    report.table(["block", "variants", "tests"],
                 [[row["block"], ", ".join(row["variants"]), ", ".join(row["tests"])] for row in rows])
    report.data["rows"] = rows
    return 0


def _config(args: argparse.Namespace) -> "Config | None":
    """The design to run, None for all blocks."""
    from gen.config.config import resolve
    if args.design != "all":
        return resolve(args.design, args.settings)
    if args.settings or args.test is not None or args.waves:
        raise UserError("--set, --test and --waves need one block, not `all`")
    return None


def _work(args: argparse.Namespace, config: "Config | None") -> "list[tuple[str, Params]]":
    """What to run: (block, parameters) pairs."""
    from gen.config.config import guess
    from rtl.registry import BLOCKS
    if config is None:
        return [pair for name in BLOCKS for pair in _variants(name)]
    if args.design in BLOCKS and not (args.settings or args.test is not None or args.waves):
        return _variants(args.design)
    refuse("--jobs", args.jobs, "a preset, a file, --set, --test and --waves make one run alone")
    if args.test is not None:
        names = _tests(config.block.bench)
        if args.test not in names:
            raise UserError(f"the bench of {config.block.name} has no test {args.test!r}"
                            f"{guess(args.test, names)}, only {', '.join(names)}")
    return [(config.block.name, config.params)]


def _variants(block: str) -> "list[tuple[str, Params]]":
    from rtl.registry import BLOCKS
    from tb.common.runner import variants
    return [(block, BLOCKS[block].params(**changes)) for changes in variants(block).values()]


def _tests(bench: str) -> list[str]:
    """Names of a bench's tests: what cocotb's decorator has turned into an object of its own."""
    import importlib
    members = vars(importlib.import_module(bench)).items()
    return [name for name, member in members if type(member).__module__.partition(".")[0] == "cocotb"]


def _run_all(args: argparse.Namespace, report: Report, work: "list[tuple[str, Params]]",
             root: Any, recording: "Recording | None") -> "list[BenchResult]":
    from tb.common.runner import regress, run_bench
    if len(work) == 1:
        block, params = work[0]
        with report.status(f"running {params.unit_name(block)}"):
            return [run_bench(block, params, seed=args.seed, waves=recording, test=args.test, build_root=root)]
    with report.progress("benches", len(work)) as progress:
        return regress(work, args.jobs or 2, build_root=root, seed=args.seed,
                       on_result=lambda done, total, result: progress.step(result.unit_name))


def _explain(report: Report, result: "BenchResult") -> None:
    if result.waves:
        report.line(f"wrote {result.waves} and its view {result.view}")
    for failure in result.failures:
        report.line(f"\n{result.unit_name}{': ' + failure.test if failure.test else ''}: {failure.message}")
    if result.failures:
        report.line(f"repeat: {result.repeat}")
    if result.record:
        report.line(f"record: {result.record}")


def _as_json(result: "BenchResult") -> dict[str, Any]:
    return {"block": result.block, "module": result.unit_name, "tests": result.tests, "ok": result.ok,
            "failures": [{"test": f.test, "message": f.message} for f in result.failures],
            "comparisons": result.comparisons, "cycles": result.cycles, "seed": result.seed,
            "seconds": round(result.seconds, 3), "waves": result.waves and str(result.waves),
            "view": result.view and str(result.view), "repeat": result.repeat, "record": result.record}
