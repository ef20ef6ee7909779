"""Random TOML documents in every style of writing the same thing, for the tests of :mod:`gen.config.locate`."""

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

__all__ = ["documents"]

Draw = Callable[[st.SearchStrategy[Any]], Any]

NAMES = st.one_of(st.sampled_from(["a", "b-1", "rows", "1979", "true"]),
                  st.text(st.characters(codec="utf-8", exclude_characters="\r\x7f"), max_size=4))
TEXTS = st.one_of(
    st.sampled_from(['"', "'", "''", '""', "#]", "},{", "a = 1", "\\", "[x]", "\n[y]\n", "é漢"]),
    st.text(st.characters(codec="utf-8", min_codepoint=32, exclude_characters="\x7f"), max_size=6))
SCALARS = st.sampled_from(["1", "0x1f", "1_000", "6.5e-3", "inf", "true", "1979-05-27",
                           "1979-05-27 07:32:00Z", "07:32:00.5"])
#: what may stand between the tokens of a line, and between the elements of an array
SPACES = st.sampled_from(["", " ", "\t ", "  "])
BREAKS = st.sampled_from(["", " ", "\n", " # comment ]},\n", "\n\t\n"])
LINE_ENDS = st.sampled_from(["\n", " # c = 1\n", "\n\n", "\n# [not.a.table]\n", "\t\n"])
TREES = st.recursive(st.just(None), lambda inner: st.one_of(
    st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)), max_leaves=8)


@st.composite
def documents(draw: Draw) -> str:
    """A valid document; some of its values are arrays, tables, and tables in arrays, nested."""
    tree = draw(st.dictionaries(NAMES, TREES, max_size=5))
    return draw(LINE_ENDS) + _table(draw, tree, [])


def _table(draw: Draw, tree: dict[str, Any], path: list[str]) -> str:
    """The body of a table and, after it, those of its sub-tables that are written with a header."""
    body, below = "", ""
    for name, value in tree.items():
        if isinstance(value, dict) and draw(st.booleans()):
            below += _header(draw, [*path, name], "[", "]") + _table(draw, value, [*path, name])
        elif _tables(value) and draw(st.booleans()):
            for element in value:
                below += _header(draw, [*path, name], "[[", "]]") + _table(draw, element, [*path, name])
        else:
            body += _pairs(draw, [name], value)
    return body + below


def _tables(value: Any) -> bool:
    """Whether ``value`` can be an array of tables."""
    return isinstance(value, list) and value != [] and all(isinstance(v, dict) for v in value)


def _pairs(draw: Draw, names: list[str], value: Any) -> str:
    if value and isinstance(value, dict) and draw(st.booleans()):
        return "".join(_pairs(draw, [*names, name], inner) for name, inner in value.items())
    return f"{draw(SPACES)}{_key(draw, names)}={draw(SPACES)}{_value(draw, value)}{draw(LINE_ENDS)}"


def _header(draw: Draw, names: list[str], opening: str, closing: str) -> str:
    return f"{draw(SPACES)}{opening}{draw(SPACES)}{_key(draw, names)}{closing}{draw(LINE_ENDS)}"


def _key(draw: Draw, names: list[str]) -> str:
    return ".".join(f"{_name(draw, name)}{draw(SPACES)}" for name in names)


def _name(draw: Draw, name: str) -> str:
    bare = name.isascii() and name.replace("-", "a").replace("_", "a").isalnum()
    if bare and draw(st.booleans()):
        return name
    if "'" not in name and name.isprintable() and draw(st.booleans()):
        return f"'{name}'"
    return _basic(name)


def _basic(text: str) -> str:
    plain = {'"': '\\"', "\\": "\\\\"}
    return '"' + "".join(plain.get(c, c if c.isprintable() else f"\\U{ord(c):08x}") for c in text) + '"'


def _value(draw: Draw, value: Any) -> str:
    if isinstance(value, list):
        inner = ",".join(draw(BREAKS) + _value(draw, v) + draw(BREAKS) for v in value)
        return f"[{inner}{draw(st.sampled_from([',', ''])) if value else ''}{draw(BREAKS)}]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{draw(SPACES)}{_key(draw, [n])}={draw(SPACES)}{_value(draw, v)}{draw(SPACES)}"
                              for n, v in value.items()) + "}"
    return draw(SCALARS) if draw(st.booleans()) else _string(draw, draw(TEXTS))


def _string(draw: Draw, text: str) -> str:
    style = draw(st.sampled_from(["basic", "literal", "long basic", "long literal"]))
    if style == "literal" and "'" not in text and "\n" not in text:
        return f"'{text}'"
    if style == "long literal" and "'''" not in text and not text.endswith("'"):
        return f"'''{text}'''"
    if style == "long basic" and "\\" not in text and '"""' not in text:
        # Up to two quotes may stand before the three that end the string.
        return f'"""{text}"""'
    return _basic(text)
