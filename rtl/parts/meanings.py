"""What the ports, fields and codes of blocks mean, from the one place where that is written: docstrings.

The docstring of a component, of a function that makes a struct, and of an enum has a section ``Members`` with an
entry for each port, field or code::

    Members
    -------
    write_en: In(1)
        A word is written in this cycle.
    request, token: Numbers of the request and of the token.

Behind the colon stands the type of a port, or the meaning begins there. Names that share an entry share its meaning.
A meaning of nothing but ``See :func:`path`.`` or ``See :class:`path`.`` is that of the same name there; ``name_*``
stands for all names there that begin so.
"""

import functools
import importlib
import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec

from amaranth.lib import data

__all__ = ["Fields", "Struct", "fixed_struct", "meanings", "struct", "summary"]

_P = ParamSpec("_P")
#: shapes of a struct's fields by name, from the lowest bits on
Fields = dict[str, Any]
_SECTION = re.compile(r"(?ms)^Members\n-+\n(.*?)(?=^\S[^\n]*\n-+\n|\Z)")
_ENTRY = re.compile(r"^([A-Za-z]\w*\*?(?:, [A-Za-z]\w*\*?)*):(?: (.*))?$")
_REFERENCE = re.compile(r"See :(?:func|class):`([\w.]+)`\.")


class Struct(data.StructLayout):
    """A packed struct that has a name, and a meaning for each of its fields.

    Parameters
    ----------
    name:
        What its type is called in generated packages.
    doc:
        One sentence.
    members:
        Shapes of the fields, from the lowest bits on.
    texts:
        The meaning of each field.
    """

    def __init__(self, name: str, doc: str, members: Mapping[str, Any], texts: Mapping[str, str]) -> None:
        super().__init__(members)
        self.name, self.doc, self.texts = name, doc, dict(texts)


def struct(make: Callable[_P, Fields]) -> Callable[_P, Struct]:
    """Make a :class:`Struct` of what a function returns: its own name and docstring say the rest."""
    texts, doc = meanings(make), summary(make)

    @functools.wraps(make)
    def made(*args: _P.args, **kwargs: _P.kwargs) -> Struct:
        return Struct(make.__name__, doc, make(*args, **kwargs), texts)

    return made


def fixed_struct(make: Callable[[], Fields]) -> Struct:
    """Make the one :class:`Struct` of a function without parameters."""
    return struct(make)()


def summary(owner: Any) -> str:
    """The first sentence of a docstring, on one line."""
    first = (inspect.getdoc(owner) or "").partition("\n\n")[0]
    return " ".join(first.split())


def meanings(owner: Any) -> dict[str, str]:
    """The meaning of each name in the ``Members`` section of a docstring."""
    section = _SECTION.search((inspect.getdoc(owner) or "") + "\n")
    found: dict[str, str] = {}
    names: list[str] = []
    for line in section[1].splitlines() if section else ():
        entry = _ENTRY.match(line)
        if entry:
            names = entry[1].split(", ")
            text = entry[2] or ""
            found |= dict.fromkeys(names, "" if text.startswith(("In(", "Out(")) else text)
        elif line.strip():
            found |= {name: f"{found[name]} {line.strip()}".strip() for name in names}
    return {name: text for entry in found.items() for name, text in _resolved(owner, *entry)}


def _resolved(owner: Any, name: str, text: str) -> list[tuple[str, str]]:
    """An entry, or those of another docstring that it refers to."""
    reference = _REFERENCE.fullmatch(text)
    if reference is None:
        return [(name, text)]
    module, _, attribute = reference[1].rpartition(".")
    there = meanings(getattr(importlib.import_module(module), attribute))
    wanted = name.rstrip("*")
    return [(n, t) for n, t in there.items() if (n.startswith(wanted) if name.endswith("*") else n == wanted)]
