"""Runs a test bench of this folder against the echo; builds are kept and reused between runs."""

from pathlib import Path
from typing import Any

from tb.common.runner import BenchResult, build, run_unit
from tests.designs.units import Echo

__all__ = ["BUILDS", "fresh_builds", "run_echo"]

BUILDS = Path(__file__).resolve().parents[2] / "build" / "tests"


def run_echo(bench: str, out: Path, **options: Any) -> BenchResult:
    """Run ``tests/designs/<bench>.py``."""
    return run_unit(Echo(), f"tests.designs.{bench}", block="echo", out=out,
                    **{"build_root": BUILDS, "seed": 5, **options})


def fresh_builds(folder: Path) -> Path:
    """A new folder of builds with nothing in it but Verilator's compiled runtime, most of a small build's time."""
    folder.mkdir(parents=True)
    build(Echo(), build_root=BUILDS)
    for shared in BUILDS.glob("runtime-*/ok"):
        (folder / shared.parent.name).symlink_to(shared.parent, target_is_directory=True)
    return folder
