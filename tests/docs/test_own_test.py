"""The page of own tests: its test runs from an installed wheel, outside the checkout, and can fail."""

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A user's folder with the test of the page, and the package unpacked from its wheel."""
    work = tmp_path_factory.mktemp("own")
    source = work / "source"
    files = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "pyproject.toml", "README.md", "LICENSE",
                            "rtl", "gen", "tb", "sim_models", "speculoos"],
                           cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    for name in files:
        if (ROOT / name).exists():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    subprocess.run([*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", work / "dist", source], check=True)
    (wheel,) = (work / "dist").glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", work / "venv"], check=True)
    site = next((work / "venv" / "lib").glob("python*/site-packages"))
    subprocess.run([*pip, "install", "--no-deps", "--no-index", "--target", site, wheel], check=True)
    # other packages are those of the environment at work, whose link to the checkout is left out
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    code = re.search(r"(?ms)^```python\n(.*?)^```$", (ROOT / "docs" / "own_test.md").read_text())
    assert code is not None
    (work / "user").mkdir()
    (work / "user" / "my_fifo_test.py").write_text(code[1])
    return work


def _run(folder: Path) -> subprocess.CompletedProcess[str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    return subprocess.run([folder / "venv" / "bin" / "python", "my_fifo_test.py"], cwd=folder / "user", env=env,
                          capture_output=True, text=True, check=False)


def test_own_test_passes_from_the_wheel(folder):
    done = _run(folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "1 tests, 200 comparisons, seed 1, waves None\n"
    where = subprocess.run([folder / "venv" / "bin" / "python", "-c", "import tb; print(tb.__file__)"],
                           cwd=folder / "user", capture_output=True, text=True, check=True).stdout
    assert where.startswith(str(folder))


def test_own_test_fails_where_block_and_expectation_differ(folder):
    script = folder / "user" / "my_fifo_test.py"
    text = script.read_text()
    script.write_text(text.replace("np.array(want)", "np.array(want[:7] + [-1] + want[8:])"))
    done = _run(folder)
    script.write_text(text)
    assert done.returncode == 1
    assert re.match(r"keeps_the_order: words\[7\]: got \d+ \(0x[0-9a-f]+\), want -1 .*; 1 of 200 differ, shape "
                    r"\(200,\); came in cycle \d+ of the test, at \d+ ns\n", done.stdout)
