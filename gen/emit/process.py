"""Runs outside tools: bounded in time, and gone with all their children when the caller stops.

:func:`interruptible` makes the first SIGINT, SIGTERM or SIGHUP end the whole process within seconds. A watching
thread ends the children at once, since Python cannot interrupt a main thread that is inside a long C call. What is
half made by then is removed, see :func:`unfinished` and :func:`scratch`.
"""

import contextlib
import os
import pathlib
import select
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from types import FrameType
from typing import IO, Any, TypeVar

from gen.errors import ToolError, naming

__all__ = ["Progress", "Stopped", "check_stopped", "interruptible", "run_child", "run_process", "scratch",
           "side_by_side", "stopping", "unfinished"]

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

#: called with one line that says what is going on
Progress = Callable[[str], None]
#: seconds from a signal to an end by force
GRACE = 2.0

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: programs at work, in whichever thread
_children: set["subprocess.Popen[Any]"] = set()
#: held while a program starts, so that none escapes
_starting = threading.Lock()
#: set while nothing may start any more
_stopped = threading.Event()
#: folders to remove unless they get finished
_unfinished: set[pathlib.Path] = set()


class Stopped(KeyboardInterrupt):
    """The process was asked to end; everything cleans up after itself as for Ctrl-C."""

    def __init__(self, number: int = signal.SIGINT) -> None:
        super().__init__()
        self.number = number


class _Handler:
    """Raises :class:`Stopped` in the main thread for the first signal, and not while a program starts there."""

    def __init__(self) -> None:
        self.number: int | None = None
        self.deferred = False

    def __call__(self, number: int, _: FrameType | None = None) -> None:
        if self.number is None:
            self.number = number
            _stopped.set()
            if not self.deferred:
                raise Stopped(number)


#: at work within :func:`interruptible`
_handler: _Handler | None = None


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Let the first signal that asks the process to end do so, within :data:`GRACE` seconds and a little.

    The main thread gets :class:`Stopped`, children are killed, and whoever is still at work after :data:`GRACE`
    seconds is ended with the process (exit code 128 + the signal's number). A signal that is ignored, as SIGHUP
    under nohup, stays so. Elsewhere than in the main thread this does nothing.
    """
    global _handler
    if threading.current_thread() is not threading.main_thread() or _handler is not None:
        yield
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    handler = _handler = _Handler()
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    ours = [n for n, action in before.items() if action in (signal.SIG_DFL, signal.default_int_handler)]
    wakeup = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in ours:
        signal.signal(number, handler)
    watcher = threading.Thread(target=_watch, args=(reader, ours), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, before[number])
        signal.set_wakeup_fd(wakeup)
        os.close(writer)
        watcher.join()
        os.close(reader)
        if handler.number is not None:
            _remove_unfinished()
        _handler = None
        _stopped.clear()


def _watch(reader: int, ours: Sequence[int]) -> None:
    """Wait for one of our signals, end the children, and the process if it does not end by itself."""
    number = 0
    while number not in ours:
        byte = os.read(reader, 1)
        if not byte:
            return
        number = byte[0]
    _stopped.set()
    end = time.monotonic() + GRACE
    while (left := end - time.monotonic()) > 0:
        _kill_children()
        if select.select([reader], [], [], min(left, 0.1))[0] and not os.read(reader, 1):
            return
    _kill_children()
    _remove_unfinished()
    with contextlib.suppress(OSError, ValueError):
        os.write(2, b"speculoos: interrupted\n")
    os._exit(128 + number)


@contextlib.contextmanager
def stopping() -> Iterator[None]:
    """End all programs, let none start, and have who waits in other threads give up, until the body has ended."""
    before = _stopped.is_set()
    _stopped.set()
    _kill_children()
    try:
        yield
    finally:
        if not before:
            _stopped.clear()


def side_by_side(function: Callable[[_Item], _Result], items: Sequence[_Item], jobs: int,
                 on_result: Callable[[int, _Item, _Result], None]) -> None:
    """Call a function for each item, some at a time, and end their programs if anything is raised.

    Parameters
    ----------
    function:
        Called in other threads.
    items:
        What it is called with.
    jobs:
        Calls at a time.
    on_result:
        Called in this thread with (finished, item, result) as each call ends.
    """
    with ThreadPoolExecutor(jobs) as pool:
        futures = {pool.submit(function, item): item for item in items}
        try:
            for count, future in enumerate(as_completed(futures), 1):
                on_result(count, futures[future], future.result())
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            # An interrupt reaches this thread alone: the others work on, with compilers, simulators and locks.
            with stopping():
                while not all(f.done() for f in futures):
                    time.sleep(0.05)
            raise


def check_stopped() -> None:
    """Raise :class:`Stopped` if the process was asked to end; who waits in a loop calls this."""
    if _stopped.is_set():
        raise Stopped((_handler and _handler.number) or signal.SIGINT)


def _kill_children() -> None:
    mine = _starting.acquire(timeout=0.5)       # an interrupted main thread may never give it back
    for child in list(_children):
        _kill(child)
    if mine:
        _starting.release()


def _remove_unfinished() -> None:
    for folder in list(_unfinished):
        shutil.rmtree(folder, ignore_errors=True)


def _kill(child: "subprocess.Popen[Any]") -> None:
    """End a program and whatever it started, if it is still there."""
    if child.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)


@contextlib.contextmanager
def unfinished(path: pathlib.Path) -> Iterator[None]:
    """Remove a folder if the body does not come to its end, for whichever reason."""
    _unfinished.add(path)
    try:
        with naming(path):
            yield
    except BaseException:
        shutil.rmtree(path, ignore_errors=True)
        raise
    finally:
        _unfinished.discard(path)


@contextlib.contextmanager
def scratch() -> Iterator[pathlib.Path]:
    """A temporary folder, gone afterwards."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="speculoos-"))
    _unfinished.add(path)
    try:
        with naming(path):
            yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        _unfinished.discard(path)


@contextlib.contextmanager
def _session(command: Sequence[str | os.PathLike[str]], **options: Any) -> "Iterator[subprocess.Popen[Any]]":
    """A process in a session of its own, gone with all its children when the context ends."""
    mine = _handler if threading.current_thread() is threading.main_thread() else None
    with _starting:
        check_stopped()
        if mine:
            mine.deferred = True
        try:
            process = subprocess.Popen(command, start_new_session=True, stdin=subprocess.DEVNULL, **options)
            _children.add(process)
        finally:
            if mine:
                mine.deferred = False
    try:
        check_stopped()
        yield process
    finally:
        _kill(process)
        process.wait()
        _children.discard(process)
    check_stopped()


def run_child(command: Sequence[str | os.PathLike[str]], *, cwd: pathlib.Path, env: Mapping[str, str], log: IO[str],
              timeout: float | None = None) -> int:
    """Run a program to its end, its output in a file.

    Parameters
    ----------
    log:
        Takes its output.
    timeout:
        Seconds.

    Returns
    -------
    int
        The exit code, negative for a signal.

    Raises
    ------
    subprocess.TimeoutExpired
        It was stopped.
    """
    with _session(command, cwd=cwd, env=dict(env), stdout=log, stderr=subprocess.STDOUT) as child:
        return child.wait(timeout)


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
            with _session(command, cwd=cwd, env=env, stdout=log, stderr=subprocess.STDOUT) as process:
                _wait(process, tool, timeout, tick)
        except OSError as error:
            raise ToolError(f"{tool} cannot be started: {error.strerror or error}") from None
        log.seek(0)
        return process.returncode, log.read()


def _last_line(fd: int) -> str:
    size = os.fstat(fd).st_size
    lines = os.pread(fd, 2000, max(0, size - 2000)).decode(errors="replace").split("\n")
    return next((line for line in reversed(lines) if line.strip()), "")


def _wait(process: "subprocess.Popen[Any]", tool: str, timeout: float, tick: Callable[[], None]) -> None:
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
