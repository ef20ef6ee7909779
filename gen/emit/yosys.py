"""Runs Yosys (the pyosys wheel, never a ``yosys`` on the PATH) outside this process."""

import json
import pathlib
import re
import sys
from collections.abc import Mapping, Sequence

from gen.emit.process import Progress, run_process, scratch
from gen.errors import ToolError

__all__ = ["run_yosys"]

WORKER = pathlib.Path(__file__).with_name("yosys_worker.py")
_PASS = re.compile(r"(?m)^\d+(?:\.\d+)*\. Executing ([^(:\n]+?)(?: pass)? ?(?=[(:.\n])")


def run_yosys(jobs: Mapping[str, Sequence[str]], folder: pathlib.Path, *, timeout: float = 600,
              progress: Progress | None = None) -> dict[str, str]:
    """Run Yosys scripts, each on a fresh design.

    Parameters
    ----------
    jobs: mapping of name to commands
        What to run, in this order; the name appears in errors.
    folder:
        Where file names in the commands start; Yosys cannot read a path with a space in it.
    timeout: float
        Seconds for all of them together.
    progress: callable, optional
        Gets the name of the pass at work, about once a second.

    Returns
    -------
    dict[str, str]
        The log of each job.

    Raises
    ------
    ToolError
        A job failed (the message holds Yosys' last error line) or time ran out.
    """
    with scratch() as own:
        logs = {name: own / f"{k}.log" for k, name in enumerate(jobs)}
        request = own / "jobs.json"
        request.write_text(json.dumps([[name, str(logs[name]), list(commands)]
                                       for name, commands in jobs.items()]))

        def report(_: str) -> None:
            running = [log for log in logs.values() if log.exists()]
            passes = _PASS.findall(_tail(running[-1])) if running else []
            if progress and passes:
                progress(f"Yosys: {passes[-1]}")

        code, output = run_process([sys.executable, WORKER, request], tool="Yosys", timeout=timeout,
                                   cwd=folder, progress=report)
        texts = {name: log.read_text(errors="replace") for name, log in logs.items() if log.exists()}
        if code:
            failed = re.search(r"(?m)^failed (.*)$", output)
            name = failed[1] if failed else ""
            where = f" on {name}" if name else ""
            raise ToolError(f"Yosys failed{where}: {_error_line(texts.get(name, output))}")
        return texts


def _error_line(log: str) -> str:
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    errors = [line for line in lines if "ERROR" in line]
    return ((errors or lines or ["it said nothing"])[-1]).removeprefix("ERROR: ")


def _tail(path: pathlib.Path) -> str:
    with path.open("rb") as f:
        f.seek(max(0, path.stat().st_size - 4000))
        return f.read().decode(errors="replace")
