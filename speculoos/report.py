"""What a command says: tables and progress for people, one JSON document for machines."""

import contextlib
import json
import os
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

from gen.errors import STANDARD_OUTPUT, UserError, naming

__all__ = ["Report", "plain_table", "write_atomic"]

#: seconds between two lines about progress where no terminal shows a bar
_INTERVAL = 15.0


class Report:
    """The output of one command.

    Parameters
    ----------
    json_to:
        File for the JSON document, ``-`` for standard output (people's text then goes to standard error),
        None for no JSON.

    Attributes
    ----------
    data:
        The JSON document; commands fill it, :meth:`close` writes it.

    Raises
    ------
    UserError
        The JSON file cannot be written; found out before any work is done.
    """

    def __init__(self, json_to: str | None = None) -> None:
        self.data: dict[str, Any] = {}
        self.json_to = json_to
        self.stream: TextIO = sys.stderr if json_to == "-" else sys.stdout
        #: whether a person looks on: colours and moving bars only then
        self.rich = self.stream.isatty()
        if json_to not in (None, "-"):
            _check_target(Path(json_to))

    @property
    def json_file(self) -> Path | None:
        """File that the JSON document goes to, if it goes to a file."""
        return None if self.json_to in (None, "-") else Path(self.json_to)

    def line(self, text: str = "") -> None:
        """Print one line."""
        with naming(STANDARD_OUTPUT):
            print(text, file=self.stream, flush=True)

    def note(self, text: str) -> None:
        """Print what is going on, for someone who waits at a terminal."""
        if self.rich:
            self.line(text)

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[Any]], title: str = "") -> None:
        """Print a table; numbers stand to the right, floats with three decimals."""
        cells = [[_cell(value) for value in row] for row in rows]
        right = [bool(rows) and all(_numeric(row[i]) for row in rows) for i in range(len(columns))]
        if self.rich:
            self._rich_table(columns, cells, right, title)
        else:
            self.line(plain_table(columns, cells, right, title))

    def _rich_table(self, columns: Sequence[str], cells: list[list[str]], right: list[bool],
                    title: str) -> None:
        from rich.box import SIMPLE_HEAD
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text
        console = Console(file=self.stream)
        least = [max((len(word) for row in [columns, *cells] for word in row[i].split()), default=0)
                 for i in range(len(columns))]
        if sum(least) + 2 * len(least) > console.width:     # columns so narrow would break words
            self.line(listed(columns, cells, console.width, title))
            return
        table = Table(title=title or None, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
        for name, is_right, width in zip(columns, right, least, strict=True):
            table.add_column(name, justify="right" if is_right else "left", overflow="fold", min_width=width)
        for row in cells:
            table.add_row(*map(Text, row))
        console.print(table)

    @contextlib.contextmanager
    def progress(self, label: str, total: int | None) -> Iterator["Progress"]:
        """Show how much is done and how long the rest takes; the body calls :meth:`Progress.step`.

        ``total`` is None where nobody knows how much there is to do. On a terminal this is a bar, elsewhere a line
        on standard error every :data:`_INTERVAL` seconds.
        """
        progress = Progress(label, total)
        if not self.rich:
            with _lines(progress):
                yield progress
            return
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar
        from rich.table import Column
        what = TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis"))
        columns = (what, BarColumn(20), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
        with Bar(*columns, console=Console(file=self.stream), transient=True) as bar:
            task = bar.add_task(label, total=total)
            progress.show = lambda: bar.update(task, completed=progress.done, description=progress.what or label)
            yield progress

    @contextlib.contextmanager
    def status(self, label: str) -> Iterator[Callable[[str], None]]:
        """Show what the yielded function is told is going on."""
        with self.progress(label, None) as progress:
            yield progress.tell

    def close(self) -> None:
        """Write the JSON document, if one was asked for."""
        if self.json_to is None:
            return
        text = json.dumps(self.data, indent=1, allow_nan=False) + "\n"
        if self.json_to == "-":
            sys.stdout.write(text)
            sys.stdout.flush()
        else:
            write_atomic(Path(self.json_to), text)
            self.line(f"wrote {self.json_to}")


class Progress:
    """Counts finished pieces of work; see :meth:`Report.progress`.

    Attributes
    ----------
    what:
        What is going on.
    show:
        Called after each change.
    """

    def __init__(self, label: str, total: int | None) -> None:
        self.label = label
        self.total = total
        self.done = 0
        self.what = ""
        self.show: Callable[[], None] = lambda: None
        self._began = time.monotonic()

    def step(self, text: str = "") -> None:
        """One more piece is done; ``text`` names it."""
        self.done += 1
        self.tell(text)

    def tell(self, text: str) -> None:
        """Say what is going on."""
        self.what = text
        self.show()

    @property
    def line(self) -> str:
        """All of it in a line; the rest is taken to go on as fast as what is done."""
        spent = time.monotonic() - self._began
        what = f" ({self.what})" if self.what else ""
        if self.total is None:
            return f"{self.label}: {_duration(spent)}{what}"
        rest = f", about {_duration(spent / self.done * (self.total - self.done))} left" if self.done else ""
        return f"{self.label}: {self.done} of {self.total} done in {_duration(spent)}{rest}{what}"


@contextlib.contextmanager
def _lines(progress: Progress) -> Iterator[None]:
    """A line about progress on standard error every :data:`_INTERVAL` seconds."""
    ended = threading.Event()

    def work() -> None:
        while not ended.wait(_INTERVAL):
            with contextlib.suppress(OSError, ValueError):      # nobody listens
                print(progress.line, file=sys.stderr, flush=True)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    if minutes >= 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def write_atomic(path: Path, content: str | bytes, overwrite: bool = True) -> None:
    """Write a whole file or nothing; text as UTF-8.

    Raises
    ------
    UserError
        The file cannot be written, or it exists and is not to be overwritten.
    """
    if overwrite and path.exists() and not path.is_file():
        raise UserError(f"{path} cannot be written: a file was wanted, it is a folder or a device", 1)
    temporary = None
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as f:
            temporary = f.name
            f.write(content.encode() if isinstance(content, str) else content)
        # Temporary files are private; the result has the permissions of any other new file.
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        if overwrite:
            os.replace(temporary, path)
            temporary = None
        else:
            # Unlike a rename, a hard link fails when there is a file, even one that has just come.
            os.link(temporary, path)
    except FileExistsError as e:
        raise UserError(f"{path} exists already and is not overwritten") from e
    except OSError as e:
        raise UserError(f"{path} cannot be written: {e.strerror}", 1) from e
    finally:
        if temporary is not None:
            os.unlink(temporary)


def plain_table(columns: Sequence[str], cells: Sequence[Sequence[str]], right: Sequence[bool],
                title: str = "") -> str:
    """A table as aligned text, for files and pipes."""
    widths = [max(len(row[i]) for row in [columns, *cells]) for i in range(len(columns))]
    lines = [title] if title else []
    for row in [columns, *cells]:
        padded = [c.rjust(w) if r else c.ljust(w) for c, w, r in zip(row, widths, right, strict=True)]
        lines.append("  ".join(padded).rstrip())
    return "\n".join(lines)


def listed(columns: Sequence[str], cells: Sequence[Sequence[str]], width: int, title: str = "") -> str:
    """A table as paragraphs of ``column: cell``, for terminals that are too narrow for its columns."""
    lines = [title] if title else []
    for row in cells:
        if lines:
            lines.append("")
        for number, (name, cell) in enumerate(zip(columns, row, strict=True)):
            text = cell if number == 0 or not name else f"  {name}: {cell}"
            lines += textwrap.wrap(text, max(width, 12), subsequent_indent="    ", break_long_words=False,
                                   break_on_hyphens=False) or [""] * (number == 0)
    return "\n".join(lines)


def _check_target(path: Path) -> None:
    if path.is_dir():
        raise UserError(f"--json needs a file, {path} is a folder")
    if path.exists() and not path.is_file():
        raise UserError(f"--json needs a file, {path} is a device")
    if not path.parent.is_dir():
        raise UserError(f"--json {path}: there is no folder {path.parent}")
    if not os.access(path.parent, os.W_OK):
        raise UserError(f"--json {path}: the folder {path.parent} is not writable")


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.3f}"
    return "" if value is None else str(value)


def _numeric(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))
