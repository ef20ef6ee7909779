"""``speculoos doctor``: one line for everything that is needed, with a hint where it is missing."""

import argparse
from concurrent.futures import ThreadPoolExecutor

from speculoos.arguments import add_build_dir
from speculoos.report import Report

__all__ = ["EXAMPLES", "add_arguments", "run"]

EXAMPLES = "exit code 1 when something needed is missing"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The build folder that is to be writable."""
    add_build_dir(parser)


def run(args: argparse.Namespace, report: Report) -> int:
    """Examine the machine."""
    from gen.flows.doctor import CHECKS, Check, build_folder, examine
    folder = Check("build folder", "keep compiled models", "name another one with --build-dir",
                   build_folder(args.build_dir))
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(examine, [*CHECKS, folder]))
    rows = []
    for result in results:
        state = "ok" if result.ok else "missing" if result.check.needed else "missing (optional)"
        hint = f"{result.problem}; to {result.check.purpose}, {result.check.hint}"
        rows.append([result.check.name, state, result.found or hint])
    report.table(["what", "state", "found or what to do"], rows)
    broken = [r.check.name for r in results if r.check.needed and not r.ok]
    report.line()
    report.line(f"missing: {', '.join(broken)}" if broken else "everything that is needed is here")
    report.data["ok"] = not broken
    report.data["checks"] = [{"name": r.check.name, "needed": r.check.needed, "ok": r.ok, "found": r.found,
                              "problem": r.problem, "purpose": r.check.purpose,
                              "hint": r.check.hint} for r in results]
    return 1 if broken else 0


