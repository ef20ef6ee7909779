"""The page of areas and the README's table: made of the file of figures, with every design in it."""

import hashlib

import pytest

from gen.emit.emit import emit
from rtl.registry import BLOCKS
from scripts import synthesis_page
from scripts.synthesis_page import FIGURES, NOT_SYNTHESISED, PAGE, README, figures_of, load, page, wanted

TEXTS = {path.name: path.read_text(encoding="utf-8") for path in (PAGE, README)}
ENTRIES = load()


@pytest.mark.parametrize("name", TEXTS)
def test_tables_are_made_of_the_figures(name: str) -> None:
    assert page(TEXTS[name], figures_of(ENTRIES)) == TEXTS[name]


def test_a_figure_that_is_edited_by_hand_is_noticed() -> None:
    text = TEXTS[PAGE.name]
    for part in synthesis_page.PARTS:
        begin = text.index(f"<!-- {part} -->")
        at = next(i for i in range(text.index("---", begin), len(text)) if text[i].isdigit())
        edited = text[:at] + str((int(text[at]) + 1) % 10) + text[at + 1:]
        assert page(edited, figures_of(ENTRIES)) == text


def test_nothing_but_what_is_wanted_was_measured() -> None:
    assert set(ENTRIES) <= {m.name for m in wanted()}
    assert list(ENTRIES) == sorted(ENTRIES)
    assert FIGURES.read_text(encoding="utf-8").endswith("}\n")


@pytest.mark.parametrize("block", BLOCKS)
def test_every_block_is_in_the_page(block: str) -> None:
    """With a row for each family, or named among those that have none or are to be measured again."""
    lines = TEXTS[PAGE.name].splitlines()
    rows = [line for line in lines if line.startswith(f"| `{block}` |")]
    waits = any(f"`{block}`" in line for line in lines if line.startswith("Not measured as they are now: "))
    assert len(rows) == (0 if waits or block in NOT_SYNTHESISED else 3)
    assert f"`{block}`" in TEXTS[PAGE.name]


def test_a_change_of_the_verilog_makes_a_figure_stale() -> None:
    """Small blocks' digests are those of their Verilog today."""
    for block in ("axi_lite", "fifo", "float_adder"):
        digest = hashlib.sha256(emit(BLOCKS[block].unit(BLOCKS[block].params())).verilog.encode()).hexdigest()[:16]
        assert {ENTRIES[f"blocks/{block}/{target}"]["digest"] for target in ("xcup", "xc7", "ecp5")} == {digest}
