"""Arguments that several sub-commands share."""

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path

from gen.errors import UserError

__all__ = ["LARGEST_SEED", "add_build_dir", "add_design", "build_dir", "check_distinct", "check_folder", "integer",
           "refuse", "seed"]

#: seeds that every tool in the chain takes
LARGEST_SEED = (1 << 31) - 1


def add_design(parser: argparse.ArgumentParser, optional: bool = False, also: str = "") -> None:
    """A design by name or file, and ``--set``."""
    parser.add_argument("design", metavar="DESIGN", nargs="?" if optional else None,
                        help=f"a block, a preset or a TOML file{also} (see `speculoos list`)")
    parser.add_argument("--set", metavar="NAME=VALUE", action="append", default=[], dest="settings",
                        help="replace a parameter; may be given several times")


def add_build_dir(parser: argparse.ArgumentParser) -> None:
    """Where compiled models go."""
    parser.add_argument("--build-dir", metavar="DIR", type=Path, default=Path("build"),
                        help="folder for compiled models and results (default: build)")


def seed(text: str) -> int:
    """A seed, as the ``type`` of an argument."""
    if not text.isascii() or not text.isdecimal() or int(text) > LARGEST_SEED:
        raise argparse.ArgumentTypeError(f"a seed is an integer from 0 to {LARGEST_SEED}, not {text!r}")
    return int(text)


def integer(least: int, most: int) -> Callable[[str], int]:
    """The ``type`` of an argument that is an integer from ``least`` to ``most``."""
    def parse(text: str) -> int:
        if not text.isascii() or not text.isdecimal() or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"an integer from {least} to {most} was wanted, not {text!r}")
        return int(text)
    return parse


def refuse(option: str, given: object, reason: str) -> None:
    """Refuse an option that was given and has no effect.

    Raises
    ------
    UserError
        ``given`` is true.
    """
    if given:
        raise UserError(f"{option} has no effect here: {reason}")


def check_distinct(files: Mapping[str, Path | None], inputs: Mapping[str, Path | None] | None = None) -> None:
    """Refuse two outputs, or an output and an input, that are one file.

    Parameters
    ----------
    files, inputs:
        Option to file, None where it was not given.

    Raises
    ------
    UserError
        One would be written over the other.
    """
    seen: dict[Path, str] = {path.resolve(): option for option, path in (inputs or {}).items() if path}
    for option, path in files.items():
        if path is None:
            continue
        other = seen.setdefault(path.resolve(), option)
        if other != option:
            raise UserError(f"{other} and {option} name the same file {path}: one would be written over the other")


def check_folder(option: str, path: Path) -> None:
    """Refuse a folder that cannot be written to, before long work; makes nothing.

    Raises
    ------
    UserError
        It, or the folder that it is to be made in, is no folder, not writable or full.
    """
    from gen.flows.doctor import Missing, build_folder
    try:
        build_folder(path)()
    except Missing as e:
        raise UserError(f"{option} {path}: {e}") from e


def build_dir(args: argparse.Namespace) -> Path:
    """The build folder, made if it is missing.

    Raises
    ------
    UserError
        It cannot be made or written to.
    """
    import tempfile
    path: Path = args.build_dir
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise UserError(f"--build-dir {path}: the folder cannot be made: {e.strerror}") from e
    try:
        tempfile.TemporaryFile(dir=path).close()        # permissions do not tell all, as in /proc
    except OSError as e:
        raise UserError(f"--build-dir {path}: the folder is not writable: {e.strerror}") from e
    return path
