"""Runs outside tools: bounded in time, and gone with all their children when the caller stops."""

import contextlib
import os
import pathlib
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from gen.errors import ToolError

__all__ = ["Progress", "run_process"]

#: called with one line that says what is going on
Progress = Callable[[str], None]


@contextlib.contextmanager
def _session(command: Sequence[str | os.PathLike[str]], **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A process in a session of its own, gone with all its children when the context ends."""
    process = subprocess.Popen(command, start_new_session=True, text=True, **options)
    try:
        yield process
    finally:
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def run_process(command: Sequence[str | os.PathLike[str]], *, tool: str, cwd: pathlib.Path | None = None,
                env: Mapping[str, str] | None = None, timeout: float = 600,
                progress: Progress | None = None) -> tuple[int, str]:
    """Run a tool to its end.

    Parameters
    ----------
    command:
        Program and arguments.
    tool: str
        Its name for people.
    timeout: float
        Seconds until it and its children are killed.
    progress: callable, optional
        Gets the last line that the tool printed, about once a second.

    Returns
    -------
    tuple[int, str]
        Exit code; standard output and error together.

    Raises
    ------
    ToolError
        The tool cannot be started or did not end in time.
    """
    with tempfile.TemporaryFile("w+", errors="replace") as log:
        def tick() -> None:
            if progress:
                progress(_last_line(log.fileno()))

        try:
            with _session(command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=log,
                          stderr=subprocess.STDOUT) as process:
                _wait(process, tool, timeout, tick)
        except OSError as error:
            raise ToolError(f"{tool} cannot be started: {error.strerror or error}") from None
        log.seek(0)
        return process.returncode, log.read()


def _last_line(fd: int) -> str:
    size = os.fstat(fd).st_size
    lines = os.pread(fd, 2000, max(0, size - 2000)).decode(errors="replace").split("\n")
    return next((line for line in reversed(lines) if line.strip()), "")


def _wait(process: subprocess.Popen[str], tool: str, timeout: float, tick: Callable[[], None]) -> None:
    end = time.monotonic() + timeout
    pause = 0.01
    while True:
        try:
            process.wait(pause)
            return
        except subprocess.TimeoutExpired:
            if time.monotonic() > end:
                raise ToolError(f"{tool} did not finish within {timeout:g} s and was stopped") from None
            tick()
            pause = min(pause * 2, 1.0)
