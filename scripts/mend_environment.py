"""Brings the absolute paths in ``.venv`` up to date after a copy or a move: mend_environment.py OLD_CHECKOUT.

Runs in the checkout, with the system's Python and nothing but its library. The file that names the old place comes
last, so that an interrupted run is repeated.
"""

import os
import re
import shutil
import sys
from pathlib import Path

__all__ = ["mend"]


def mend(checkout: Path, old: str) -> None:
    """Write the path of ``checkout`` wherever scripts and links of its environment have ``old``."""
    venv = checkout / ".venv"
    packages = [p for folder in venv.glob("lib/python*/site-packages") for pattern in
                ("*.pth", "__editable__*", "*.dist-info/direct_url.json") for p in folder.glob(pattern)]
    pattern = re.compile(re.escape(old.encode()) + rb"(?![^/'\"\s])")
    for path in [*(venv / "bin").iterdir(), *packages, venv / "pyvenv.cfg"]:
        if path.is_symlink() or not path.is_file():
            continue
        before = path.read_bytes()
        after = pattern.sub(lambda _: os.fsencode(checkout), before)
        if after != before and b"\0" not in before:
            fresh = path.with_name(f".{path.name}.new")     # a file of its own, should the old one be a hard link
            fresh.write_bytes(after)
            shutil.copymode(path, fresh)
            fresh.replace(path)


if __name__ == "__main__":
    mend(Path.cwd(), sys.argv[1])
