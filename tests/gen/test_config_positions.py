"""Lines and columns of keys: random documents against tomllib, and hand-counted cases."""

import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings

from gen.config.locate import Duplicate, KeyPath, Positions, line_column
from tests.gen.toml_documents import documents


def paths(value: Any, path: KeyPath = ()) -> Iterator[KeyPath]:
    """Every key of what tomllib returns."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield (*path, name)
            yield from paths(inner, (*path, name))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from paths(inner, (*path, index))


def name_at(text: str, offset: int) -> str:
    """The key that starts at ``offset``, read by tomllib itself."""
    rest = text[offset:]
    for end in range(1, len(rest) + 1):
        if rest[end:end + 1] in (" ", "\t", "=", ".", "]"):
            try:
                return next(iter(tomllib.loads(f"{rest[:end]} = 0")))
            except tomllib.TOMLDecodeError:
                continue    # the end is inside a quoted key
    raise AssertionError(f"no key at {offset}: {rest[:20]!r}")


@given(documents())
@settings(max_examples=400, deadline=None)
@example("[[a]]\nb.c=1\n[[a.d]]\n[[a]]\n[a.d.e]\n")
@example('x = """a\\"""" # "\ny = \'\'\'b\'\'\'\'\'\n"é.\\"" = {c.d = [{e = 1}, [ # ]\n{f=2},],], g={}}\n')
def test_scanner_finds_exactly_the_keys_of_tomllib(text: str) -> None:
    positions = Positions(text)
    assert set(positions.keys) == set(paths(tomllib.loads(text)))
    for path, offset in positions.keys.items():
        assert name_at(text, offset) == path[-1]


@pytest.mark.parametrize(("text", "path", "place"), [
    ("a = 1", ("a",), (1, 1)),
    ("# é\n\n  a = 1", ("a",), (3, 3)),
    ("x.y . z = 1", ("x", "y", "z"), (1, 7)),
    ("[ t . 'u v' ]\nk = 1", ("t", "u v"), (1, 7)),
    ("[t]\n\n'é' = {a = 1, b.c = 2}", ("t", "é", "b", "c"), (3, 17)),
    ("a = [ # ]\n  {b = 1},\n  {b = 2, c = 3} ]", ("a", 1, "c"), (3, 11)),
    ("[[a]]\n[[a]]\nb = 1", ("a", 1, "b"), (3, 1)),
    ('s = """\na = 1\n"""\na = 2', ("a",), (4, 1)),
])
def test_line_and_column(text: str, path: KeyPath, place: tuple[int, int]) -> None:
    assert line_column(text, Positions(text).keys[path]) == place


@pytest.mark.parametrize(("text", "path", "first", "second"), [
    ("a = 1\nb = 2\na = 3", ("a",), (1, 1), (3, 1)),
    ("[t]\n[u]\n[t]", ("t",), (1, 2), (3, 2)),
    ("a = 1\n[a]", ("a",), (1, 1), (2, 2)),
    ("a.b = 1\na = 2", ("a",), (1, 1), (2, 1)),
    ("t = {a = 1, a = 2}", ("t", "a"), (1, 6), (1, 13)),
])
def test_duplicates_have_both_places(text: str, path: KeyPath, first: tuple[int, int],
                                     second: tuple[int, int]) -> None:
    with pytest.raises(tomllib.TOMLDecodeError):
        tomllib.loads(text)
    with pytest.raises(Duplicate) as caught:
        Positions(text)
    assert caught.value.path == path
    assert line_column(text, caught.value.first) == first
    assert line_column(text, caught.value.second) == second
