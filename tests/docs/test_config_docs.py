"""The documentation's tables are those of the code."""

import dataclasses
import re
from pathlib import Path

import pytest

from gen.config.document import refresh, tables
from rtl.registry import BLOCKS

ROOT = Path(__file__).parents[2]
#: every page that has a marked table
PAGES = [p for p in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")) if "<!-- table: " in p.read_text()]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_tables_are_current(page: Path) -> None:
    text = page.read_text()
    assert text == refresh(text), f"bring it up to date with: python -m gen.config.document {page.relative_to(ROOT)}"


def test_every_block_and_parameter_is_documented() -> None:
    text = (ROOT / "docs" / "configuration.md").read_text()
    sections = dict(re.findall(r"(?ms)^### `(\w+)`\n(.*?)(?=^##)", text))
    assert list(sections) == list(BLOCKS)
    for name, block in BLOCKS.items():
        for field in dataclasses.fields(block.params):
            assert f"\n| `{field.name}` |" in sections[name]


def test_stale_table_is_noticed() -> None:
    text = "<!-- table: keys -->\n| old |\n<!-- end -->\n"
    assert refresh(text) == f"<!-- table: keys -->\n{tables()['keys']}<!-- end -->\n"
    with pytest.raises(KeyError, match="nothing"):
        refresh("<!-- table: nothing -->\n<!-- end -->\n")
