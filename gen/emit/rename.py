"""Names for the modules of a finished design: its top's, and a prefix for all."""

import dataclasses
import re
from collections.abc import Mapping
from typing import TypeVar

from gen.emit.emit import Design
from gen.emit.names import check_name
from gen.errors import UserError

__all__ = ["renamed"]

_T = TypeVar("_T")
#: where the name of a module stands in the text of one: its head, and the head of an instance
_PLACE = re.compile(r"(?m)^(module |  (?=\w+ \w+ \($))(\w+)")


def renamed(design: Design, *, top: str | None = None, prefix: str = "") -> Design:
    """The same design under other names.

    Parameters
    ----------
    top: str, optional
        Name of the top module; without it the top keeps its own.
    prefix: str
        What stands before the name of every module, that of the top too.

    Raises
    ------
    UserError
        A name would be no identifier, a reserved word, or that of another module of the design.
    """
    names = {name: prefix + (top if top and name == design.top else name) for name in design.modules}
    for name, new in names.items():
        reason = check_name(new)
        if reason:
            raise UserError(f"a module cannot be called {new!r}, because that {reason}")
        if name != design.top and new.lower() == names[design.top].lower():
            raise UserError(f"{top!r} cannot name the top module, because the design has a module {name!r}: "
                            f"choose another name")

    def keyed(mapping: Mapping[str, _T]) -> dict[str, _T]:
        return {names[name]: value for name, value in mapping.items()}

    return dataclasses.replace(
        design, top=names[design.top],
        modules=keyed({name: _PLACE.sub(lambda m: m[1] + names.get(m[2], m[2]), text)
                       for name, text in design.modules.items()}),
        ports=keyed(design.ports), blocks=keyed(design.blocks), params=keyed(design.params),
        origins=keyed(design.origins),
        instances=keyed({name: tuple((instance, names[child]) for instance, child in found)
                         for name, found in design.instances.items()}))
