"""Bring the pages of measured figures up to date: run the commands that they name, put in what these print and draw.

    python -m scripts.performance [performance] [manager] [pim_stack]

A block of a page begins with ``<!-- output: COMMAND -->`` and ends with ``<!-- end -->``; what lies between is
replaced. The figures are cycles of the RTL, so they are the same on every machine.
"""

import contextlib
import io
import re
import shlex
import sys
from pathlib import Path

from speculoos.cli import main
from speculoos.report import write_atomic

__all__ = ["PAGES", "commands", "refresh"]

_DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGES = {name: _DOCS / f"{name}.md" for name in ("performance", "manager", "pim_stack")}
_BLOCK = re.compile(r"(<!-- output: (.+?) -->\n).*?(<!-- end -->)", re.DOTALL)


def commands(text: str) -> list[str]:
    """The commands of a page, in order."""
    return [match[2] for match in _BLOCK.finditer(text)]


def refresh(text: str) -> str:
    """A page with its blocks made anew.

    Raises
    ------
    SystemExit
        A command failed.
    """
    def block(match: re.Match[str]) -> str:
        print(match[2], file=sys.stderr, flush=True)
        name, *arguments = shlex.split(match[2])
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            code = main(arguments)
        if name != "speculoos" or code:
            sys.exit(f"{match[2]!r} ended with code {code}")
        lines = [line for line in out.getvalue().splitlines() if not line.startswith(("wrote ", "next: "))]
        shown = "\n".join(lines).strip("\n")
        return f"{match[1]}```text\n$ {match[2]}\n{shown}\n```\n{match[3]}"
    return _BLOCK.sub(block, text)


if __name__ == "__main__":
    for page in sys.argv[1:] or PAGES:
        if page not in PAGES:
            sys.exit(f"{', '.join(PAGES)} was wanted, not {page}")
        write_atomic(PAGES[page], refresh(PAGES[page].read_text(encoding="utf-8")))
        print(f"wrote {PAGES[page]}")
