"""The run of the long tests: what has passed is not run again, what has failed is, and says how to repeat it."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def soak(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script, with tests of which one fails."""
    spec = importlib.util.spec_from_file_location("soak", Path(__file__).parents[2] / "scripts" / "soak.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "NOTES", tmp_path)
    monkeypatch.setattr(module, "long_tests", lambda seed, only: [n for n in ("t::good", "t::bad") if only in n])
    monkeypatch.setattr(module, "run", lambda test, seed: (test != "t::bad", 90.0, f"output of {test}"))
    return module


def test_a_failure_is_shown_and_run_again(soak: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert soak.soak(7, "", 1) == 1
    out = capsys.readouterr().out
    assert out.startswith("soak: seed 7, 2 of 2 tests to run; no earlier run tells how long they take\n")
    assert "1/2 passed   90.0 s  t::good; left: about 2 minutes\n" in out
    assert "2/2 FAILED   90.0 s  t::bad\noutput of t::bad\n" in out
    assert out.endswith("repeat: .venv/bin/python -m pytest 't::bad' --soak 7\nsoak: seed 7, 1 passed, 1 failed\n")
    assert soak.soak(7, "", 1) == 1
    assert capsys.readouterr().out.startswith("soak: seed 7, 1 of 2 tests to run; about 2 minutes\n1/1 FAILED")


def test_what_has_passed_is_left_out(soak: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert [soak.soak(7, "good", 2), soak.soak(7, "good", 2)] == [0, 0]
    assert "soak: seed 7, 0 of 1 tests to run; nothing is left\n" in capsys.readouterr().out


def test_a_name_that_no_test_has(soak: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert soak.soak(7, "nonsense", 1) == 2
    assert capsys.readouterr().err == "soak: no test with a long form has 'nonsense' in its name\n"
