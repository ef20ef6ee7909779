"""How to install what is missing: the same words wherever something is."""

import shlex
import sys
from pathlib import Path

__all__ = ["pip_command"]


def pip_command(package: str, *options: str) -> str:
    """The command that installs a Python package into this environment.

    A checkout has the pinned versions in ``constraints.txt``; an installed wheel does not.
    """
    constraints = Path(__file__).resolve().parents[1] / "constraints.txt"
    pinned = ["-c", str(constraints)] if constraints.is_file() else []
    return shlex.join([sys.executable, "-m", "pip", "install", *options, *pinned, package])
