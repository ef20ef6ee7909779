"""The table of kinds of fault names tests that exist."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "known_faults.md"
TEST = re.compile(r"`((?:tests|tb)/\S+\.py)::(\w+)`")


def _rows() -> list[tuple[str, list[tuple[str, str]]]]:
    lines = [line.strip("|").split("|") for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    return [(cells[0].strip(), TEST.findall(cells[1])) for cells in lines if cells[0].strip() != "kind of fault"]


def _functions(path: Path) -> set[str]:
    """Test functions of a module."""
    body = ast.parse(path.read_text()).body
    return {node.name for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and (node.name.startswith("test_") or node.decorator_list)}


def test_every_kind_has_tests() -> None:
    rows = _rows()
    assert len(rows) == len({kind for kind, _ in rows}) > 35
    assert not [kind for kind, tests in rows if not tests]


@pytest.mark.parametrize("path", sorted({path for _, tests in _rows() for path, _ in tests}))
def test_tests_exist(path: str) -> None:
    named = {name for _, tests in _rows() for file, name in tests if file == path}
    assert named <= _functions(ROOT / path)
