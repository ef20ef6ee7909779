"""The pages on the architecture and on adding a block, and the maps of the folders, are true."""

import ast
import re
from pathlib import Path

import pytest

from rtl.registry import BLOCKS

ROOT = Path(__file__).parents[2]
ARCHITECTURE, ADD = (ROOT / "docs" / f"{name}.md" for name in ("architecture", "add_a_block"))
LAYERS = ("sim_models", "rtl", "gen", "tb", "speculoos")
FOLDERS = sorted({file.parent.relative_to(ROOT) for layer in LAYERS for file in (ROOT / layer).rglob("*.py")})
_PATH = re.compile(rf"`((?:{'|'.join(LAYERS)}|tests|docs)(?:/[\w.]+)*)`")


@pytest.mark.parametrize("page", [ARCHITECTURE, ADD], ids=lambda p: p.stem)
def test_every_path_exists(page: Path) -> None:
    named = _PATH.findall(page.read_text(encoding="utf-8"))
    assert len(named) >= 8
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_every_folder_of_blocks_is_in_the_architecture() -> None:
    words = set(re.findall(r"\w+", ARCHITECTURE.read_text(encoding="utf-8")))
    missing = {block.folder for block in BLOCKS.values()
               if not words & {file.stem for file in (ROOT / "rtl" / block.folder).glob("*.py")}}
    assert missing <= {"memory", "bus"}         # storage and buses are in no drawing


def test_every_unit_drawn_exists() -> None:
    """A word with an underscore in a drawing is the file of a unit."""
    drawings = re.findall(r"(?s)```\n(.*?)```", ARCHITECTURE.read_text(encoding="utf-8"))
    words = {word for drawing in drawings for word in re.findall(r"\b[a-z]+(?:_[a-z]+)+\b", drawing)}
    units = {file.stem for file in (ROOT / "rtl").rglob("*.py")}
    assert len(words) >= 15
    assert words - units == set()


def test_the_layers_are_those_of_the_rule() -> None:
    from tests.test_imports import ALLOWED
    assert f"`{' -> '.join(ALLOWED)}`" in ARCHITECTURE.read_text(encoding="utf-8")


def test_the_places_of_a_block_are_those_of_the_registry() -> None:
    text, block = ADD.read_text(encoding="utf-8"), BLOCKS["fifo"]
    rows = re.findall(r"\| \d\. [\w ]+ \| `([^`]+)` \| `([^`]+)` \|", text)
    modules = (block.params.__module__, block.golden, type(block.unit(block.params())).__module__, block.bench)
    computed = [f"{module.replace('.', '/')}.py" for module in modules]
    assert [example for pattern, example in rows if "<block>" in pattern] == computed
    for pattern, example in rows:
        if "<block>" in pattern:
            assert pattern.replace("<folder>", block.folder).replace("<block>", block.name) == example


@pytest.mark.parametrize("folder", FOLDERS, ids=str)
def test_a_folder_has_a_map(folder: Path) -> None:
    """A folder says what it is in at most six lines, names its folders, and names nothing that is not in it."""
    text = ast.get_docstring(ast.parse((ROOT / folder / "__init__.py").read_text(encoding="utf-8")))
    assert text, f"{folder}/__init__.py says nothing"
    if folder == Path("tb/common"):         # the page of the test library
        return
    assert len(text.splitlines()) <= 6
    inside = {entry.stem for entry in (ROOT / folder).iterdir()}
    named = {name for name in re.findall(r"``(\w+)``", text) if name not in ALSO.get(str(folder), ())}
    assert named - inside == set()
    folders = {entry.name for entry in (ROOT / folder).iterdir() if (entry / "__init__.py").exists()}
    if folder.parts[0] in ("rtl", "gen", "speculoos") or len(folder.parts) == 1:
        assert folders - named <= ({*MIRRORED} if folder == Path("tb") else set())


#: folders of benches are those of the hardware
MIRRORED = ("tile", "manager", "pim", "sfu", "arith", "memory", "bus")
#: what a map names that is no file of its folder
ALSO = {"speculoos": ("speculoos",), "sim_models/golden": ("rtl",), "tb": ("rtl",)}
