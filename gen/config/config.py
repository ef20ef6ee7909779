"""Designs from TOML files, presets and block names: strict, and exact about the place of a mistake."""

import codecs
import dataclasses
import difflib
import re
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from gen.config.locate import Duplicate, KeyPath, Positions, line_column
from gen.config.schema import TOP_LEVEL, ModelParams, is_name
from gen.emit.names import check_name
from gen.errors import UserError
from rtl.registry import BLOCKS, Block
from sim_models.params.base import ParamError, Params

__all__ = ["PRESET_FOLDER", "Config", "guess", "load", "override", "parse", "parse_toml", "presets", "read_text",
           "resolve", "unknown_design"]

PRESET_FOLDER = Path(__file__).parents[1] / "presets"
#: a configuration is a page of text; anything longer is another kind of file
MAX_BYTES = 1 << 20

_P = TypeVar("_P", bound=Params)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config:
    """One design: a block and the parameters it is built with."""

    #: name of the design; the preset's or block's own name where it is one
    name: str
    description: str
    block: Block
    params: Params
    #: the parameters before any ``--set``
    base: Params
    #: shape of the model that benches run, if the design names one
    model: ModelParams | None = None

    @property
    def top(self) -> str:
        """Name of the top module.

        It is the design's name, with the parameters behind it that ``--set`` changed: another module has another
        name. A block without a file of its own is called as it is everywhere else.
        """
        return self.params.unit_name(self.name, self.base)


def resolve(target: str, settings: Sequence[str] = ()) -> Config:
    """The design that a command line names.

    Parameters
    ----------
    target:
        Name of a block (its default parameters) or of a preset, or a path to a TOML file.
    settings:
        ``NAME=VALUE`` pairs that replace parameters, as of ``--set``.

    Raises
    ------
    UserError
        There is no such design, its file is wrong, or a setting is.
    """
    found = presets()
    if target in BLOCKS:
        block = BLOCKS[target]
        config = Config(name=target, description=block.summary, block=block, params=block.params(),
                        base=block.params())
    elif target in found:
        config = load(found[target])
    elif target.endswith(".toml") or "/" in target or Path(target).exists():
        config = load(Path(target))
    else:
        raise unknown_design(target, "block or preset", [*BLOCKS, *found])
    return override(config, settings)


def presets() -> dict[str, Path]:
    """The presets that come with the project: name to file."""
    return {path.stem: path for path in sorted(PRESET_FOLDER.glob("*.toml"))}


def unknown_design(name: str, kind: str, known: Iterable[str]) -> UserError:
    """The error for a name that is none of ``known``."""
    return UserError(f"there is no {kind} {name!r}{guess(name, known)}; `speculoos list` shows them all")


def guess(word: str, known: Iterable[str]) -> str:
    """``, did you mean 'x'?`` when something in ``known`` is close to ``word``, else nothing."""
    close = difflib.get_close_matches(word.lower(), list(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def load(path: Path) -> Config:
    """Read one design from a file.

    Raises
    ------
    UserError
        The file cannot be read, is not TOML, or does not describe a design.
    """
    return parse(read_text(path), _shown(path))


def read_text(path: Path) -> str:
    """The text of a configuration file, with line ends made ``\\n``.

    Raises
    ------
    UserError
        There is no such file, it is something else than a file, too long, or not UTF-8.
    """
    shown = _shown(path)
    if path.is_dir():
        raise UserError(f"{shown} is a folder, a TOML file is needed")
    if not path.exists():
        raise UserError(f"{shown}: there is no such file")
    if not path.is_file():
        raise UserError(f"{shown} is not a regular file, a TOML file is needed")
    if path.stat().st_size > MAX_BYTES:
        raise UserError(f"{shown} has {path.stat().st_size} bytes, a configuration has at most {MAX_BYTES}")
    try:
        data = path.read_bytes()
    except OSError as e:
        raise UserError(f"{shown} cannot be read: {e.strerror}") from e
    data = data.removeprefix(codecs.BOM_UTF8)       # as some editors write it
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as e:
        before = data[:e.start].decode("utf-8")
        line, column = before.count("\n") + 1, e.start and len(before) - before.rfind("\n")
        raise UserError(f"{shown}:{line}:{column or 1}: the file is not UTF-8 text "
                        f"(byte 0x{data[e.start]:02x})") from e
    return text.replace("\r\n", "\n")


def parse(text: str, source: str) -> Config:
    """Read one design from TOML text; ``source`` stands for the file in messages.

    Raises
    ------
    UserError
        One sentence that starts with ``source:line:column:``.
    """
    return _Reader(parse_toml(text, source), Positions(text), source).config()


def parse_toml(text: str, source: str) -> dict[str, Any]:
    """Read TOML text; ``source`` stands for the file in messages.

    Raises
    ------
    UserError
        It is not TOML, nested too deeply, or an integer has more than the 64 bits of TOML.
    """
    try:
        document = tomllib.loads(text)
        if _large(document):
            raise ValueError
    except RecursionError as e:
        raise UserError(f"{source}: arrays or tables are nested too deeply") from e
    except ValueError as e:
        raise UserError(_toml_error(text, source, e)) from e
    return document


def _large(value: Any) -> bool:
    """Whether an integer in ``value`` has more than 64 bits."""
    if isinstance(value, dict | list):
        return any(map(_large, value.values() if isinstance(value, dict) else value))
    return isinstance(value, int) and value.bit_length() > 63


def override(config: Config, settings: Sequence[str]) -> Config:
    """Replace parameters by ``NAME=VALUE`` settings; all are applied before any is checked.

    Raises
    ------
    UserError
        A setting is malformed, names no parameter, or its value is refused.
    """
    changes: dict[str, Any] = {}
    known = {f.name: f for f in dataclasses.fields(config.params)}
    for setting in settings:
        name, equals, value = (part.strip() for part in setting.partition("="))
        if not (name and equals and value):
            raise UserError(f"--set needs NAME=VALUE, not {setting!r}")
        if name not in known:
            raise UserError(f"--set {setting}: {config.block.name} has no parameter {name!r}"
                            f"{guess(name, known)}")
        if name in changes:
            raise UserError(f"--set {setting}: {name} is set twice")
        changes[name] = value if isinstance(known[name].default, str) else _literal(value)
    try:
        return dataclasses.replace(config, params=config.params.replace(**changes))
    except ParamError as e:
        raise UserError(f"--set {' '.join(settings)}: {e}") from e


def _literal(value: str) -> Any:
    """A TOML number or truth value; any other text stays a string, for the parameter's check to refuse."""
    try:
        document = tomllib.loads(f"value = {value}")
    except (ValueError, RecursionError):
        return value
    return value if len(document) != 1 or _large(document) else document["value"]


def why_not_a_top(name: str, block: str, params: Params) -> str | None:
    """Why the top module of a design cannot have the design's name; None when it can."""
    reserved = check_name(name)
    if reserved:
        return f"it {reserved}"
    for other in BLOCKS.values():
        tags = "|".join(re.escape(f.metadata["tag"] or f.name) for f in dataclasses.fields(other.params))
        is_named = re.fullmatch(rf"{other.name}(?:_(?:{tags})[0-9a-z]+)*", name)
        if is_named and params.unit_name(block) != name:
            return f"generated modules of the block {other.name!r} have such names"
    return None


class _Reader:
    """One document on its way to a :class:`Config`."""

    def __init__(self, document: dict[str, Any], positions: Positions, source: str) -> None:
        self.document, self.positions, self.source = document, positions, source

    def config(self) -> Config:
        self._keys("", list(TOP_LEVEL), [])
        if "block" in self.document:
            block = self._string("block")
            if block not in BLOCKS:
                self._fail(("block",), f"there is no block {block!r}{guess(block, BLOCKS)}, "
                                       f"only {', '.join(BLOCKS)}")
        # what is wrong is said before what is missing
        self._keys("", list(TOP_LEVEL), [key for key, (_, required) in TOP_LEVEL.items() if required])
        name, block = self._string("name"), self._string("block")
        if not is_name(name):
            self._fail(("name",), f"name must be lower-case letters, digits and underscores, not {name!r}")
        description = self._string("description") if "description" in self.document else ""
        if "\n" in description:
            self._fail(("description",), "description must be one line")
        params = self._params("params", BLOCKS[block].params, required=False)
        reason = why_not_a_top(name, block, params)
        if reason:
            self._fail(("name",), f"name {name!r} cannot be that of the top module, because {reason}: choose another")
        model = self._params("model", ModelParams, required=True) if "model" in self.document else None
        return Config(name=name, description=description, block=BLOCKS[block], params=params, base=params,
                      model=model)

    def _params(self, table: str, kind: type[_P], required: bool) -> _P:
        given = self.document.get(table, {})
        if not isinstance(given, dict):
            self._fail((table,), f"{table} must be a table, not {_describe(given)}")
        names = [f.name for f in dataclasses.fields(kind)]
        self._keys(table, names, names if required else [])
        for name, value in given.items():
            if not isinstance(value, bool | int | str):
                want = {bool: "true or false", int: "an integer", str: "a string"}[type(getattr(kind, name))]
                self._fail((table, name), f"{name} must be {want}, not {_describe(value)}")
        try:
            return kind(**given)
        except ParamError as e:
            self._fail((table, e.name) if e.name and e.name in given else (table,), str(e))

    def _keys(self, table: str, known: list[str], required: list[str]) -> None:
        """Refuse unknown and missing keys of a table, or of the document (``""``)."""
        given = self.document.get(table, {}) if table else self.document
        path: KeyPath = (table,) if table else ()
        where = f" in [{table}]" if table else ""
        for key in given:
            if key not in known:
                hint = guess(key, known) or self._home(table, key) or f", only {', '.join(known)}"
                self._fail((*path, key), f"unknown key {key!r}{where}{hint}")
        missing = [key for key in required if key not in given]
        if missing:
            self._fail(path, f"missing key {missing[0]!r}{where}")

    def _home(self, table: str, key: str) -> str:
        """Where an unknown key would be right."""
        block = BLOCKS.get(str(self.document.get("block")))
        tables: dict[str, Any] = {"params": block.params if block else Params, "model": ModelParams}
        for name, kind in tables.items():
            if table != name and key in {f.name for f in dataclasses.fields(kind)}:
                return f", it belongs in [{name}]"
        return ", it belongs above the first table" if table and key in TOP_LEVEL else ""

    def _string(self, key: str) -> str:
        value = self.document[key]
        if not isinstance(value, str):
            self._fail((key,), f"{key} must be a string, not {_describe(value)}")
        return value

    def _fail(self, path: KeyPath, message: str) -> NoReturn:
        line, column = line_column(self.positions.text, self.positions.keys.get(path, 0))
        raise UserError(f"{self.source}:{line}:{column}: {message}")


def _toml_error(text: str, source: str, error: ValueError) -> str:
    """The sentence for text that is not TOML; for a duplicate, its place and that of the first."""
    if not isinstance(error, tomllib.TOMLDecodeError):
        return f"{source}: a number has too many digits"
    message = str(error)
    if message.startswith(("Cannot", "Duplicate")):
        try:
            Positions(text)
        except Duplicate as e:
            line, column = line_column(text, e.second)
            return (f"{source}:{line}:{column}: {'.'.join(map(str, e.path))} is already set in line "
                    f"{line_column(text, e.first)[0]}")
        except (ValueError, RecursionError):
            pass    # the document is broken further down too; tomllib's own place has to do
    place = re.fullmatch(r"(.*) \(at line (\d+), column (\d+)\)", message)
    line, column = map(int, place.groups()[1:]) if place else line_column(text, len(text))
    what = place[1] if place else message.removesuffix(" (at end of document)")
    return f"{source}:{line}:{column}: {what[0].lower()}{what[1:]}"


def _describe(value: Any) -> str:
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "an array"
    return f"the {type(value).__name__} {value}" if not isinstance(value, str | int | float) else repr(value)


def _shown(path: Path) -> str:
    """The path as the user wrote it; a preset's without the folder it is installed in."""
    return path.name if path.parent == PRESET_FOLDER else str(path)
