"""How docstrings speak: short first sentences, short module pages, no figures that a command should print."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = [file for layer in ("sim_models", "rtl", "gen", "tb", "speculoos")
         for file in sorted((ROOT / layer).rglob("*.py"))]
#: words of a first sentence, lines of a module's docstring
WORDS, LINES = 20, 25
#: areas and frequencies of what was synthesised: `speculoos synth` prints those
FIGURE = re.compile(r"(?i)\b\d[\d,.]*\s+(?:LUTs?|FFs?|MHz|LUTRAM|DSPs?|BRAMs?|flip-flops)\b")


def docstrings(source: str) -> Iterator[tuple[str, str]]:
    """Name and docstring of a module, its classes and functions."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            text = ast.get_docstring(node)
            if text:
                yield getattr(node, "name", "module"), text


def complaints(source: str) -> list[str]:
    """What is against the rules in a file."""
    found = []
    for name, text in docstrings(source):
        first = re.split(r"(?<=[.:;])\s|\n\n", text.strip(), maxsplit=1)[0]
        if len(first.split()) > WORDS:
            found.append(f"{name}: the first sentence has {len(first.split())} words, at most {WORDS}: {first}")
        if name == "module" and len(text.splitlines()) > LINES:
            found.append(f"{name}: {len(text.splitlines())} lines, at most {LINES}")
        found += [f"{name}: a figure that `speculoos synth` prints: {m[0]}" for m in FIGURE.finditer(text)]
    return found


@pytest.mark.parametrize("file", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_docstrings_keep_the_rules(file: Path) -> None:
    assert complaints(file.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(("source", "complaint"), [
    (f'"""{"word " * 21}."""', "first sentence has"),
    ('"""A block."""\ndef f():\n    """' + "word " * 30 + '"""', "f: the first sentence"),
    ('"""A block.\n' + "line\n" * 25 + '"""', "26 lines"),
    ('"""A block.\n\nCost: 3,470 LUTs."""', "3,470 LUTs"),
    ('class A:\n    """A block at 93 MHz."""', "93 MHz"),
])
def test_what_is_against_the_rules_is_noticed(source: str, complaint: str) -> None:
    assert any(complaint in c for c in complaints(source))
