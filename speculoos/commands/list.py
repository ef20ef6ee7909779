"""``speculoos list``: the blocks of the registry and the presets."""

import argparse

from speculoos.report import Report

__all__ = ["EXAMPLES", "add_arguments", "run"]

EXAMPLES = "example: speculoos list --json -"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Nothing but ``--json``."""


def run(args: argparse.Namespace, report: Report) -> int:
    """Print both tables."""
    from gen.config.config import load, presets
    from rtl.registry import BLOCKS
    configs = [load(path) for path in presets().values()]
    report.table(["block", "folder", "what", "source"],
                 [[b.name, f"rtl/{b.folder}", b.summary, b.source] for b in BLOCKS.values()])
    report.line()
    report.table(["preset", "block", "what"], [[c.name, c.block.name, c.description] for c in configs])
    report.data["blocks"] = [{"name": b.name, "folder": b.folder, "summary": b.summary, "source": b.source}
                             for b in BLOCKS.values()]
    report.data["presets"] = [{"name": c.name, "block": c.block.name, "description": c.description}
                              for c in configs]
    return 0
