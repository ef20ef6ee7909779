"""Tables of the documentation that are made from the code, between markers in the Markdown files.

``python -m gen.config.document FILE...`` brings them up to date; a test refuses files that are not.
"""

import dataclasses
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gen.config.config import load, presets
from gen.config.schema import TOP_LEVEL, ModelParams, derived, span
from rtl.registry import BLOCKS, Block
from sim_models.params.base import Params

__all__ = ["refresh", "tables"]

_MARKED = re.compile(r"(<!-- table: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


def tables() -> dict[str, str]:
    """Every table by the name that its marker has.

    These are ``keys``, ``blocks``, ``presets``, ``model``, and ``params``, a section for each block.
    """
    configs = [load(path) for path in presets().values()]
    return {
        "keys": _table(["key", "what it is", "needed"], [
            [f"`{key}`", doc, "yes" if needed else "no"] for key, (doc, needed) in TOP_LEVEL.items()]),
        "blocks": _table(["block", "folder", "what", "source"], [
            [f"`{b.name}`", f"`rtl/{b.folder}`", b.summary, b.source] for b in BLOCKS.values()]),
        "presets": _table(["preset", "block", "what"], [
            [f"`{c.name}`", f"`{c.block.name}`", c.description] for c in configs]),
        "model": _fields(ModelParams, with_default=False),
        "params": "".join(map(_block, BLOCKS.values())),
    }


def refresh(text: str) -> str:
    """A Markdown text with its marked tables made anew.

    Raises
    ------
    KeyError
        A marker names no table.
    """
    made = tables()
    return _MARKED.sub(lambda m: m[1] + made[m[2]] + m[3], text)


def _block(block: Block) -> str:
    figures = [[f"`{k}`", _cell(v), doc] for k, (v, doc) in derived(block.params()).items()]
    follows = f"\nWhat follows:\n\n{_table(['figure', 'by default', 'what it is'], figures)}" if figures else ""
    return f"### `{block.name}`\n\n{_fields(block.params)}{follows}\n"


def _fields(kind: type[Params], with_default: bool = True) -> str:
    rows = [[f"`{f.name}`", span(f), _cell(f.default), f.metadata["doc"]] for f in dataclasses.fields(kind)]
    columns = ["parameter", "values", "default", "what it is"]
    if not with_default:
        rows, columns = [[*row[:2], row[3]] for row in rows], [*columns[:2], columns[3]]
    return _table(columns, rows)


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _cell(value: Any) -> str:
    return f"`{str(value).lower()}`"


if __name__ == "__main__":
    for name in sys.argv[1:]:
        path = Path(name)
        path.write_text(refresh(path.read_text(encoding="utf-8")), encoding="utf-8")
