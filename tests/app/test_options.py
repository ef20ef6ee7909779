"""Options that have no effect on a design are refused, whichever command and kind of design."""

from pathlib import Path

import pytest

from speculoos.cli import main

ALONE = "--jobs has no effect here: a preset, a file, --set, --test and --waves make one run alone"
#: command, what it says; each would do its work without the last option
REFUSED = [
    ("synth pe --target xc7 --place", "--place has no effect here: place and route is there for --target ecp5, not "
                                      "for xc7"),
    ("synth pe --target osu018 --no-dsp", "--no-dsp has no effect here: there are no DSP blocks among the standard "
                                          "cells of osu018"),
    ("synth ram --compare", "--compare needs a block with both array modes, and ram has none"),
    ("sim all --set rows=4", "--set, --test and --waves need one block, not `all`"),
    ("sim all --waves", "--set, --test and --waves need one block, not `all`"),
    ("sim pe --waves --jobs 4", ALONE),
    ("sim engine_small --jobs 4", ALONE),
    ("sim --list pe --set acc_width=24", "--set has no effect here: --list runs nothing"),
    ("sim --list --seed 0", "--seed has no effect here: --list runs nothing"),
    ("sim --list pe --test x", "--test has no effect here: --list runs nothing"),
    ("sim --list pe --waves", "--waves has no effect here: --list runs nothing"),
    ("sim --list pe --from 5", "--from has no effect here: it narrows --waves"),
    ("sim --list --jobs 2", "--jobs has no effect here: --list runs nothing"),
    ("synth pe_array --compare --set modes=vector", "--set modes=vector has no effect here: --compare synthesises "
                                                    "all three modes"),
    ("check --schema --set rows=4", "--set needs DESIGN"),
    ("check pe --prompt x", "--prompt needs --model"),
    ("check pe --tokenizer t.bin", "--tokenizer needs --model"),
    ("check --schema --prompt x", "--prompt needs --model"),
    ("check --model m.bin --set rows=4", "--set needs DESIGN"),
    ("verilog pe -o out --target xc7", "unknown option '--target'"),
    ("new mine --set rows=4", "unknown option '--set'; see `speculoos new --help`"),
    ("list --set rows=4", "unknown option '--set'; see `speculoos list --help`"),
    ("doctor --set rows=4", "unknown option '--set'; see `speculoos doctor --help`"),
    ("bench engine --tau 0.2", "unknown option '--tau'"),
    ("bench engine --batch 3", "unknown option '--batch'; see `speculoos bench engine --help`"),
    ("bench engine --timeline t.json", "unknown option '--timeline'"),
    ("bench pim --m 3", "unknown option '--m'; see `speculoos bench pim --help`"),
    ("bench manager --m 3", "unknown option '--m'"),
    ("bench manager --plain", "unknown option '--plain'"),
]


@pytest.mark.parametrize(("command", "message"), REFUSED, ids=[command for command, _ in REFUSED])
def test_option_without_effect_is_refused(command: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                          capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(command.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"speculoos: error: {message}")
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("command", "message"), [
    ("bench pim --json a.png --plot ./a.png", "--json and --plot name the same file a.png"),
    ("bench manager --json t.json --timeline t.json", "--json and --timeline name the same file t.json"),
    ("bench manager --plot t.png --timeline t.json", "--plot and the picture of --timeline name the same file t.png"),
    ("bench manager --record r.json --json r.json", "--json and --record name the same file r.json"),
    ("bench manager --traces r.json --timeline r.json", "--traces and --timeline name the same file r.json"),
])
def test_files_that_would_be_written_over_are_refused(command: str, message: str, tmp_path: Path,
                                                      monkeypatch: pytest.MonkeyPatch,
                                                      capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(command.split()) == 2
    assert capsys.readouterr().err == f"speculoos: error: {message}: one would be written over the other\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("jobs", ["0", "65", "-1", "x", "1.5"])
def test_number_of_jobs_is_wrong_in_one_line(jobs: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", "pe", f"--jobs={jobs}"]) == 2
    assert capsys.readouterr().err == (f"speculoos: error: argument --jobs: an integer from 1 to 64 was wanted, not "
                                       f"{jobs!r}; see `speculoos sim --help`\n")
