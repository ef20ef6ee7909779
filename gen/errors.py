"""What a user may be told: one sentence, an exit code, never a traceback."""

import contextlib
import os
from collections.abc import Iterator

__all__ = ["STANDARD_OUTPUT", "EmitError", "ToolError", "UserError", "naming"]

#: what standard output is called in messages
STANDARD_OUTPUT = "standard output"


class UserError(Exception):
    """Something the user can put right.

    Parameters
    ----------
    message: str
        One sentence: what was wanted and what came.
    exit_code: int, optional
        Exit code of the command line: 2 = bad input, 1 = the work failed (default: the class's).
    """

    exit_code = 2

    def __init__(self, message: str, exit_code: int | None = None) -> None:
        super().__init__(message)
        if exit_code is not None:
            self.exit_code = exit_code


class EmitError(UserError):
    """A unit cannot be written as Verilog."""


class ToolError(UserError):
    """An outside tool is missing, failed, or took too long."""

    exit_code = 1


@contextlib.contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Give an ``OSError`` of the body that names no file, as that of a full disk, this one's name."""
    try:
        yield
    except OSError as e:
        if e.filename is None:
            e.filename = os.fspath(path)
        raise
