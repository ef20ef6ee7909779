"""The registry: one name, many places, and each of them exists."""

import ast
import dataclasses
import importlib
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from gen.emit.names import check_name
from rtl.registry import BLOCKS, Block
from rtl.unit import Unit
from sim_models.params.base import Params

ROOT = Path(__file__).parents[1]
ALL = pytest.mark.parametrize("block", BLOCKS.values(), ids=lambda b: b.name)


def test_names_are_keys() -> None:
    assert BLOCKS
    assert {name: block.name for name, block in BLOCKS.items()} == {name: name for name in BLOCKS}


@ALL
@pytest.mark.filterwarnings("ignore:.* created but never used")
def test_block_is_in_all_its_places(block: Block) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9_]*", block.name)
    assert check_name(block.name) is None
    assert find_spec(block.golden), f"{block.name} has no golden model"
    assert find_spec(block.bench), f"{block.name} has no bench"
    assert issubclass(block.params, Params)
    unit = block.unit(block.params())
    assert isinstance(unit, Unit)
    assert unit.unit_name == unit.block == block.name
    assert type(unit).__doc__


@ALL
def test_block_is_described(block: Block) -> None:
    assert block.summary
    assert block.summary[-1] != "."
    assert block.source


@ALL
def test_params_are_described(block: Block) -> None:
    fields = dataclasses.fields(block.params)
    assert fields
    for field in fields:
        assert field.metadata["doc"]
        if type(field.default) is int:
            low, high = field.metadata["low"], field.metadata["high"]
            assert low <= field.default <= high


@ALL
def test_tags_tell_parameters_apart(block: Block) -> None:
    tags = [f.metadata["tag"] or f.name for f in dataclasses.fields(block.params)]
    assert len(set(tags)) == len(tags)
    assert not any(re.match(rf"{a}\d", b) for a in tags for b in tags)


def units() -> dict[str, str]:
    """Folder of each file below rtl/ that defines a Unit."""
    found = {}
    for file in sorted((ROOT / "rtl").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ClassDef) and "Unit" in [ast.unparse(b) for b in node.bases]:
                found[file.stem] = file.parent.relative_to(ROOT / "rtl").as_posix()
    return found


def test_every_unit_is_a_block_or_part_of_one() -> None:
    """A Unit that is not registered is the part of another: some other file of rtl/ imports it."""
    found = units()
    assert {b.name: b.folder for b in BLOCKS.values()}.items() <= found.items()
    sources = {file.stem: file.read_text() for file in (ROOT / "rtl").rglob("*.py")}
    for name in set(found) - set(BLOCKS):
        module = f"rtl.{found[name].replace('/', '.')}.{name}"
        assert any(re.search(rf"\b{module}\b", text) for other, text in sources.items() if other != name), (
            f"{module} is neither in the registry nor used")


@ALL
def test_golden_model_does_not_know_the_hardware(block: Block) -> None:
    source = Path(str(importlib.import_module(block.golden).__file__)).read_text()
    assert "amaranth" not in source


def test_names_that_tools_would_cut_are_short_and_differ() -> None:
    common = {"rcd": 64, "rp": 1, "ras": 128, "ccd": 64, "cl": 64, "rtp": 1, "wr": 128, "wtr": 128, "rfc": 2048,
              "refi": 65535, "lanes": 4, "rows": 64, "columns": 128, "open_rows": 1, "format": "fp16"}
    params = BLOCKS["pim_stack"].params
    names = {params(**common, accumulators=n, buffer_words=m, sfu_length=s).unit_name("pim_stack")
             for n in (64, 128, 256) for m in (2048, 4096) for s in (8, 64)}
    assert len(names) == 12
    assert all(len(name) <= 100 and check_name(name) is None for name in names)
    assert any(len(name) == 100 for name in names)
