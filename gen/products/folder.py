"""Writing a folder of products: all of it or nothing."""

import hashlib
import json
import os
import pathlib
import tempfile
from collections.abc import Mapping

from gen.errors import UserError

__all__ = ["MANIFEST", "FileSet", "replace_folder", "sha256"]

MANIFEST = "manifest.json"
#: what a manifest of ours says under "generator"
GENERATOR = "speculoos"

#: relative path and text of each file
FileSet = Mapping[str, str]


def sha256(text: str) -> str:
    """Hash of a file's text."""
    return hashlib.sha256(text.encode()).hexdigest()


def replace_folder(out_dir: pathlib.Path, files: FileSet, *, force: bool = False) -> None:
    """Write ``files`` so that ``out_dir`` holds them and nothing else.

    Everything goes to a temporary folder beside ``out_dir``, which then takes its place. An earlier folder of
    ours is replaced, unless a file in it was edited since; one with anything else in it is left alone.

    Parameters
    ----------
    out_dir:
        Folder to make or replace; folders above it are made.
    files:
        Relative path and text of each file, the manifest included.
    force: bool
        Replace edited files, too.

    Raises
    ------
    UserError
        ``out_dir`` is not ours to replace (exit code 2), or cannot be written (exit code 1).
    """
    try:
        target = out_dir.resolve()
    except (OSError, RuntimeError):                     # Python 3.13 raises the former
        raise UserError(f"{out_dir} is a symbolic link that leads to itself: a folder was wanted") from None
    _check_replaceable(target, out_dir, files, force)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as work:
            fresh, old = pathlib.Path(work, "new"), pathlib.Path(work, "old")
            for name, text in files.items():
                path = fresh / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(text.encode())
            try:
                if target.exists():
                    target.rename(old)
                fresh.rename(target)
            except BaseException:       # an interrupt, too, at whichever of the two
                if old.exists() and not target.exists():
                    old.rename(target)
                raise
    except OSError as error:
        raise UserError(f"cannot write {out_dir}: {error.strerror or error}", exit_code=1) from None


def _check_replaceable(target: pathlib.Path, shown: pathlib.Path, files: FileSet, force: bool) -> None:
    if target == pathlib.Path.cwd():
        raise UserError(f"{shown} is the current folder, which cannot be replaced: name a folder below it")
    try:
        if not target.exists() or (target.is_dir() and not os.listdir(target)):
            return
        if not target.is_dir():
            raise UserError(f"{shown} is a file: a folder was wanted")
        ours = _manifest_digests(target)
        present = {p.relative_to(target).as_posix(): p for p in sorted(target.rglob("*")) if not p.is_dir()}
        if ours is None:
            raise UserError(f"{shown} holds files but no manifest of Speculoos: choose a new or empty folder")
        foreign = sorted(present.keys() - ours.keys() - {MANIFEST})
        if foreign:
            raise UserError(f"{shown} holds {foreign[0]}, which Speculoos did not write: move it, or choose "
                            f"another folder")
        edited = [] if force else [
            str(shown / name) for name, path in present.items() if name in ours and
            hashlib.sha256(path.read_bytes()).hexdigest() not in (ours[name], sha256(files.get(name, "")))]
    except OSError as error:
        raise UserError(f"cannot read {shown}: {error.strerror or error}", exit_code=1) from None
    if edited:
        raise UserError(f"{', '.join(edited)} {'was' if len(edited) == 1 else 'were'} edited since Speculoos wrote "
                        f"{'it' if len(edited) == 1 else 'them'}: choose another folder, or let "
                        f"`speculoos verilog --force` replace this one")


def _manifest_digests(folder: pathlib.Path) -> dict[str, str] | None:
    """Files that the manifest in ``folder`` lists, with their digests; None when there is none of ours."""
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
        if manifest["generator"] == GENERATOR:
            return {name: file["sha256"] for name, file in manifest["files"].items()}
    except (FileNotFoundError, NotADirectoryError, ValueError, TypeError, KeyError, AttributeError):
        pass
    return None
