"""Compares the Verilog that two checkouts write, design by design.

``python -m scripts.compare_verilog OLD NEW`` takes the ``speculoos`` commands of both (``.venv/bin/speculoos``). The
designs are the blocks and presets that either lists, and each set of parameters that this checkout's benches run.
It prints what differs and ends with 1 then: after a change that only moves code, nothing may.
"""

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from rtl.registry import BLOCKS
from tb.common.runner import variants

__all__ = ["designs", "differences", "write"]


def designs(command: str) -> list[list[str]]:
    """Arguments of ``speculoos verilog`` for every design that ``command`` knows."""
    listed = json.loads(subprocess.run([command, "list", "--json", "-"], check=True, capture_output=True,
                                       text=True).stdout)
    names = [row["name"] for row in (*listed["blocks"], *listed["presets"])]
    settings = [[name, *(word for key, value in changes.items() for word in ("--set", f"{key}={_toml(value)}"))]
                for name in names if name in BLOCKS for changes in variants(name).values() if changes]
    return [[name] for name in names] + settings


def write(command: str, arguments: list[str]) -> dict[str, str]:
    """Texts of a design's Verilog files, or its error under the name ``error``."""
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "out"
        done = subprocess.run([command, "verilog", *arguments, "-o", str(out)], capture_output=True, text=True)
        if done.returncode:
            return {"error": done.stderr.strip()}
        return {file.name: file.read_text() for file in sorted(out.rglob("*.v"))}


def differences(old: dict[str, str], new: dict[str, str]) -> list[str]:
    """Names of the files that are not the same text in both."""
    return [name for name in sorted({*old, *new}) if old.get(name) != new.get(name)]


def main() -> int:
    """Compare and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("old", help="the speculoos command of the checkout before the change")
    parser.add_argument("new", help="the speculoos command of the checkout after it")
    args = parser.parse_args()
    work = designs(args.old)
    work += [design for design in designs(args.new) if design not in work]
    files, differing, refused = 0, 0, 0
    for number, design in enumerate(work):
        print(f"{number + 1}/{len(work)} {shlex.join(design)}", file=sys.stderr)
        old, new = write(args.old, design), write(args.new, design)
        files, refused = files + len(old), refused + ("error" in old)
        for name in differences(old, new):
            differing += 1
            print(f"{shlex.join(design)}: {name} differs")
    print(f"{len(work)} designs, {files} files, {refused} refused, {differing} differ")
    return 1 if differing or not files else 0


def _toml(value: object) -> str:
    return json.dumps(value) if isinstance(value, bool) else str(value)


if __name__ == "__main__":
    sys.exit(main())
