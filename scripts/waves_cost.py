"""What recording costs a build: ``python -m scripts.waves_cost BLOCK...`` prints it for each block.

Processor seconds of Verilator and the C++ compiler, without and with waves, at the block's default sizes. Verilator's
own runtime is compiled once for all blocks, before.
"""

import argparse
import resource
import tempfile
from pathlib import Path

from rtl.registry import BLOCKS
from speculoos.report import Report
from tb.common.runner import build
from tb.common.waves import Recording


def seconds(block: str, waves: Recording | None, root: Path) -> float:
    """Processor seconds of one build."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    build(BLOCKS[block].unit(BLOCKS[block].params()), waves=waves, build_root=root)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Build each block twice."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("blocks", metavar="BLOCK", nargs="+", choices=list(BLOCKS))
    args = parser.parse_args()
    report, rows = Report(), []
    with tempfile.TemporaryDirectory() as folder:
        for waves in (None, Recording()):
            seconds("ram", waves, Path(folder))     # and the runtime
        for block in args.blocks:
            plain, recorded = (seconds(block, waves, Path(folder)) for waves in (None, Recording()))
            rows.append([block, f"{plain:.1f}", f"{recorded:.1f}", f"{recorded / plain:.2f}"])
    report.table(["block", "without", "with waves", "ratio"], rows)


if __name__ == "__main__":
    main()
