"""Bytes of files, and whose fault an error is."""

import contextlib
import mmap
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from sim_models.transformer.checkpoint import CheckpointError

__all__ = ["Raw", "map_file", "named", "write_file"]

Raw = bytes | mmap.mmap
"""What a parser reads from; a slice of it is bytes."""


def map_file(path: str | os.PathLike[str]) -> Raw:
    """Map a file into memory, so that nothing is read but what a parser looks at.

    Raises
    ------
    CheckpointError
        There is no such file, it cannot be read, or it is a device or pipe, which might never end.
    """
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise CheckpointError(f"{os.fspath(path)} is not a regular file")
            return mmap.mmap(file.fileno(), found.st_size, access=mmap.ACCESS_READ) if found.st_size else b""
    except IsADirectoryError:
        raise CheckpointError(f"{os.fspath(path)} is not a regular file") from None
    except OSError as error:
        raise CheckpointError(f"{os.fspath(path)}: cannot be read: {error.strerror}") from None


@contextlib.contextmanager
def named(path: str | os.PathLike[str]) -> Iterator[None]:
    """Put the file's name before the message of a :class:`CheckpointError`."""
    try:
        yield
    except CheckpointError as error:
        raise CheckpointError(f"{os.fspath(path)}: {error}") from None


def write_file(path: str | os.PathLike[str], data: bytes) -> None:
    """Write ``data`` beside ``path`` and put it in place in one step.

    Raises
    ------
    CheckpointError
        The file cannot be written; what was there before still is.
    """
    path = Path(path)
    part = path.with_name(path.name + ".part")
    try:
        part.write_bytes(data)
        part.replace(path)
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be written: {error.strerror}") from None
    finally:
        part.unlink(missing_ok=True)
