"""Imports go only upwards in the list of layers: models, hardware, generator, benches and tests."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

#: what each layer may import, of this project and of others: never of a layer above it
ALLOWED: dict[str, set[str]] = {
    "sim_models": {"sim_models", "numpy"},
    "rtl": {"rtl", "sim_models.params", "sim_models.spec", "sim_models.numerics", "amaranth"},
    "gen": {"gen", "rtl", "sim_models", "amaranth", "numpy", "pyosys", "pyslang"},
    "tb": {"tb", "gen", "rtl", "sim_models", "amaranth", "cocotb", "cocotb_tools", "filelock", "find_libpython",
           "numpy", "pyosys", "vcd"},
    "speculoos": {"speculoos", "tb", "gen", "rtl", "sim_models", "numpy", "rich", "matplotlib"},
}


def modules() -> list[Path]:
    """Every file whose imports the rule governs."""
    return [p for folder in ALLOWED for p in sorted((ROOT / folder).rglob("*.py"))]


def imports(tree: ast.AST, package: str) -> Iterator[tuple[str, int]]:
    """Dotted names that are imported anywhere in a file, also inside functions and for type checking."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")[:len(package.split(".")) - node.level + 1]
                base = ".".join([*parents, base] if base else parents)
            # `from sim_models import perf` imports sim_models.perf as far as the rule is concerned.
            yield from ((f"{base}.{alias.name}", node.lineno) for alias in node.names)


def refused(source: str, file: Path) -> list[str]:
    """The imports of a file that its layer does not allow."""
    folder = file.parts[0]
    allowed = ALLOWED[folder]
    return [f"{file}:{line}: {folder} must not import {name}"
            for name, line in imports(ast.parse(source), ".".join(file.parent.parts))
            if name.partition(".")[0] not in sys.stdlib_module_names
            and not any(name == a or name.startswith(f"{a}.") for a in allowed)]


@pytest.mark.parametrize("file", modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_go_upwards(file: Path) -> None:
    assert refused(file.read_text(encoding="utf-8"), file.relative_to(ROOT)) == []


def test_the_rule_governs_something() -> None:
    assert {p.relative_to(ROOT).parts[0] for p in modules()} == set(ALLOWED)


@pytest.mark.parametrize(("file", "source", "bad"), [
    ("sim_models/golden/x.py", "from rtl.tile.engine.pe import PE", "rtl.tile.engine.pe.PE"),
    ("sim_models/golden/x.py", "import torch", "torch"),
    ("rtl/tile/x.py", "from sim_models.golden.tile.engine.pe import PE", "sim_models.golden.tile.engine.pe.PE"),
    ("rtl/tile/x.py", "from sim_models import perf", "sim_models.perf"),
    ("rtl/tile/x.py", "def f():\n import gen.emit", "gen.emit"),
    ("sim_models/golden/x.py", "from ..params import base\nfrom . import y\nimport torch.nn", "torch.nn"),
    ("gen/x.py", "if TYPE_CHECKING:\n from tb.common import runner", "tb.common.runner"),
    ("gen/x.py", "from speculoos import report", "speculoos.report"),
    ("tb/x.py", "from speculoos.bench import meter", "speculoos.bench.meter"),
    ("speculoos/commands/x.py", "from tests import designs", "tests.designs"),
])
def test_the_rule_notices(file: str, source: str, bad: str) -> None:
    assert [r.rpartition(" ")[2] for r in refused(source, Path(file))] == [bad]


@pytest.mark.parametrize(("file", "source"), [
    ("sim_models/golden/x.py", "import math\nimport numpy as np\nfrom sim_models.params.tile.engine import pe"),
    ("rtl/tile/x.py", "import amaranth.hdl\nfrom .pe import PE\nfrom sim_models.numerics import tables"),
    ("speculoos/commands/x.py", "from tb.common.runner import regress"),
])
def test_the_rule_lets_pass(file: str, source: str) -> None:
    assert refused(source, Path(file)) == []
