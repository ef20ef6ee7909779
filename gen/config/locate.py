"""Where the keys and values of a TOML document stand, which :mod:`tomllib` does not say.

The scanner only has to find its way through documents that :mod:`tomllib` has accepted, so it decides
nothing about validity; a property test holds its paths against those of :mod:`tomllib`.
"""

import re
import tomllib

__all__ = ["Duplicate", "KeyPath", "Positions", "line_column"]

#: names of tables and keys from the top down; an integer is an index into an array
KeyPath = tuple[str | int, ...]

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_STRING = re.compile(r'"""(?:\\.|[^\\])*?"{3,5}' r"|'''.*?'{3,5}"
                     r'|"(?:\\.|[^"\\])*"' r"|'[^']*'", re.DOTALL)
_SCALAR = re.compile(r"[^,\]}\n#]+")


def line_column(text: str, offset: int) -> tuple[int, int]:
    """Line and column of ``offset``, both counted from 1, the column in characters."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


class Duplicate(Exception):
    """A key or table is set twice.

    Attributes
    ----------
    path, first, second:
        The key, and the offsets of its two occurrences.
    """

    def __init__(self, path: KeyPath, first: int, second: int) -> None:
        super().__init__(path)
        self.path, self.first, self.second = path, first, second


class Positions:
    """Offsets of all keys and values of ``text``.

    Parameters
    ----------
    text:
        A TOML document with ``\\n`` line ends.

    Attributes
    ----------
    keys:
        Offset of the first mention of each key, also as part of a dotted key or of a table's header.

    Raises
    ------
    Duplicate
        A key or table is set twice, which :mod:`tomllib` refuses too, but without its place.
    ValueError
        The document is not TOML.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.keys: dict[KeyPath, int] = {}
        self._pos = 0
        self._defined: set[KeyPath] = set()
        self._tables_in: dict[KeyPath, int] = {}
        self._document()

    def _document(self) -> None:
        table: KeyPath = ()
        while self._skip(_BLANK):
            table = self._header() if self._next() == "[" else self._pair(table)

    def _header(self) -> KeyPath:
        width = 2 if self.text.startswith("[[", self._pos) else 1
        self._pos += width
        path, start = (), self._pos
        for name, start in self._names():
            # Below an array of tables, a header means the array's latest table.
            path = (*self._enter(path), name)
            self.keys.setdefault(path, start)
        if width == 2:
            self._tables_in[path] = self._tables_in.get(path, 0) + 1
        elif path in self._defined:
            raise Duplicate(path, self.keys[path], start)
        else:
            self._defined.add(path)
        self._pos += width
        return self._enter(path)

    def _enter(self, path: KeyPath) -> KeyPath:
        return (*path, self._tables_in[path] - 1) if path in self._tables_in else path

    def _pair(self, table: KeyPath) -> KeyPath:
        path, start = table, self._pos
        first = start
        for name, start in self._names():
            path = (*path, name)
            first = self.keys.setdefault(path, start)
        if first != start:
            raise Duplicate(path, first, start)
        self._pos += 1
        self._skip(_SPACE)
        self._value(path)
        return table

    def _names(self) -> list[tuple[str, int]]:
        """The components of a dotted key; leaves the position at the first character that is not of it."""
        names = []
        while True:
            self._skip(_SPACE)
            start = self._pos
            if self._next() in "\"'":
                names.append((tomllib.loads(f"key = {self._take(_STRING)}")["key"], start))
            else:
                names.append((self._take(_BARE), start))
            self._skip(_SPACE)
            if self._next() != ".":
                return names
            self._pos += 1

    def _value(self, path: KeyPath) -> None:
        self._defined.add(path)
        opening = self._next()
        if opening in "\"'":
            self._take(_STRING)
        elif opening in "[{":
            self._pos += 1
            index = 0
            while self._skip(_BLANK) and self._next() not in "]}":
                if opening == "[":
                    self._value((*path, index))
                    index += 1
                else:
                    self._pair(path)
                if self._skip(_BLANK) and self._next() == ",":
                    self._pos += 1
            self._pos += 1
        else:
            self._take(_SCALAR)

    def _next(self) -> str:
        if self._pos >= len(self.text):
            raise ValueError("the document ends too early")
        return self.text[self._pos]

    def _take(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self._pos)
        if match is None:
            raise ValueError(f"unexpected text at offset {self._pos}")
        self._pos = match.end()
        return match[0]

    def _skip(self, pattern: re.Pattern[str]) -> bool:
        """Skip what may be empty; whether anything is left."""
        self._take(pattern)
        return self._pos < len(self.text)
