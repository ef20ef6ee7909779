"""Runs a test bench of this folder against the echo; builds are kept and reused between runs."""

from pathlib import Path
from typing import Any

from tb.common.runner import BenchResult, run_unit
from tests.designs.units import Echo

__all__ = ["BUILDS", "run_echo"]

BUILDS = Path(__file__).resolve().parents[2] / "build" / "tests"


def run_echo(bench: str, out: Path, **options: Any) -> BenchResult:
    """Run ``tests/designs/<bench>.py``."""
    return run_unit(Echo(), f"tests.designs.{bench}", block="echo", out=out,
                    **{"build_root": BUILDS, "seed": 5, **options})
