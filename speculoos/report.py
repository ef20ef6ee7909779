"""What a command says: tables and progress for people, one JSON document for machines."""

import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

from gen.errors import UserError

__all__ = ["Report", "plain_table", "write_atomic"]


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

    def line(self, text: str = "") -> None:
        """Print one line."""
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
        table = Table(title=title or None, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
        for name, is_right in zip(columns, right, strict=True):
            table.add_column(name, justify="right" if is_right else "left", overflow="fold")
        for row in cells:
            table.add_row(*map(Text, row))
        Console(file=self.stream).print(table)

    @contextlib.contextmanager
    def progress(self, label: str, total: int) -> Iterator["Progress"]:
        """A progress bar on a terminal, nothing elsewhere; the body calls :meth:`Progress.step`."""
        if not self.rich:
            yield Progress()
            return
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Bar(*columns, console=Console(file=self.stream), transient=True) as bar:
            task = bar.add_task(label, total=total)
            yield Progress(lambda text: bar.update(task, advance=1, description=text or label))

    @contextlib.contextmanager
    def status(self, label: str) -> Iterator[Callable[[str], None] | None]:
        """On a terminal, a line that shows what the yielded function is told; elsewhere None."""
        if not self.rich:
            yield None
            return
        from rich.console import Console
        from rich.text import Text
        with Console(file=self.stream).status(label) as status:
            yield lambda text: status.update(Text(f"{label}: {text}", overflow="ellipsis", no_wrap=True))

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
    """Counts finished pieces of work; see :meth:`Report.progress`."""

    def __init__(self, advance: Any = None) -> None:
        self._advance = advance

    def step(self, text: str = "") -> None:
        """One more piece is done; ``text`` says what comes now."""
        if self._advance is not None:
            self._advance(text)


def write_atomic(path: Path, content: str | bytes, overwrite: bool = True) -> None:
    """Write a whole file or nothing; text as UTF-8.

    Raises
    ------
    UserError
        The file cannot be written, or it exists and is not to be overwritten.
    """
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


def _check_target(path: Path) -> None:
    if path.is_dir():
        raise UserError(f"--json needs a file, {path} is a folder")
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
