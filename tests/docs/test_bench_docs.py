"""The page of measured figures is made of what commands print."""

import shlex

import pytest

from scripts.performance import PAGES, commands, refresh
from speculoos.cli import COMMANDS


@pytest.mark.parametrize(("page", "least", "says"), [
    ("performance", 4, "SPECTRA's Fig. 6"), ("manager", 1, "SADDLE Fig. 14"), ("pim_stack", 2, "SADDLE Fig. 9"),
])
def test_a_page_names_commands_and_their_output(page: str, least: int, says: str) -> None:
    text = PAGES[page].read_text(encoding="utf-8")
    found = commands(text)
    assert len(found) >= least
    for command in found:
        program, name, *_ = shlex.split(command)
        assert (program, name in COMMANDS) == ("speculoos", True)
        assert f"<!-- output: {command} -->\n```text\n$ {command}\n" in text
    assert says in text


def test_a_block_is_made_anew() -> None:
    text = "before\n<!-- output: speculoos list -->\nstale line\n<!-- end -->\nafter\n"
    new = refresh(text)
    assert new.startswith("before\n<!-- output: speculoos list -->\n```text\n$ speculoos list\nblock ")
    assert new.endswith("\n```\n<!-- end -->\nafter\n")
    assert "stale line" not in new
    assert refresh(new) == new


@pytest.mark.parametrize("command", ["speculoos bench pe", "other list"])
def test_a_command_that_fails_ends_it(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match=f"'{command}' ended with code"):
        refresh(f"<!-- output: {command} -->\n<!-- end -->\n")
    assert command in capsys.readouterr().err
