"""A copied or moved checkout mends its environment, or its command says what to do."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from speculoos import cli

ROOT = Path(__file__).parents[2]
PACKAGES = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
FINDER = f"{PACKAGES}/__editable___speculoos_finder.py"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with a current environment, in which ``tool`` prints where it runs."""
    folder = tmp_path / "a"
    (folder / "scripts").mkdir(parents=True)
    for name in ("scripts/environment.sh", "scripts/mend_environment.py", "pyproject.toml", "constraints.txt"):
        shutil.copy2(ROOT / name, folder / name)
    venv = folder / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    tool = venv / "bin" / "tool"
    tool.write_text(f"#!{venv}/bin/python\nimport sys; print(sys.prefix)\n")
    tool.chmod(0o755)
    (venv / FINDER).write_text(f"MAPPING = {{'gen': '{folder}/gen'}}\nOTHER = '{folder}2/gen'\n")
    stamp = subprocess.run("cat pyproject.toml constraints.txt scripts/environment.sh | cksum", shell=True,
                           cwd=folder, capture_output=True, text=True, check=True).stdout
    (venv / ".speculoos-demo").write_text(stamp)
    return folder


def environment(folder: Path) -> str:
    """What making the environment says."""
    return subprocess.run([folder / "scripts" / "environment.sh", "demo"], capture_output=True, text=True,
                          check=True, cwd="/").stdout


def test_current_environment_is_left_alone(checkout: Path) -> None:
    before = {p: p.stat().st_mtime_ns for p in checkout.rglob("*")}
    assert environment(checkout) == ""
    assert {p: p.stat().st_mtime_ns for p in checkout.rglob("*")} == before


@pytest.mark.parametrize("gone", [False, True], ids=["copied", "moved"])
def test_environment_is_mended(gone: bool, checkout: Path, tmp_path: Path) -> None:
    there = tmp_path / "b with & blank"
    shutil.copytree(checkout, there, symlinks=True)
    if gone:
        shutil.rmtree(checkout)
    assert environment(there) == f"Mending the environment in .venv, which was made for {checkout}\n"
    said = subprocess.run([there / ".venv" / "bin" / "python", there / ".venv" / "bin" / "tool"], capture_output=True,
                          text=True, check=True).stdout
    assert said == f"{there}/.venv\n"
    assert (there / ".venv" / "bin" / "tool").read_text().startswith(f"#!{there}/.venv/bin/python\n")
    assert (there / ".venv" / FINDER).read_text() == (f"MAPPING = {{'gen': '{there}/gen'}}\n"
                                                      f"OTHER = '{checkout}2/gen'\n")
    assert environment(there) == ""
    assert gone or str(there) not in (checkout / ".venv" / "bin" / "tool").read_text()


def test_command_of_a_copy_does_not_run_the_original(tmp_path: Path) -> None:
    (tmp_path / "speculoos").mkdir()
    (tmp_path / "speculoos" / "cli.py").write_text("")
    command = tmp_path / ".venv" / "bin" / "speculoos"
    command.parent.mkdir(parents=True)
    command.write_text(f"#!{sys.executable}\nimport sys; from speculoos.cli import main; sys.exit(main())\n")
    command.chmod(0o755)
    done = subprocess.run([command, "list"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"speculoos: error: {tmp_path} is a copy, and its environment runs the code of "
        f"{Path(cli.__file__).parents[1]}: run `scripts/environment.sh demo` there, which mends it\n")
