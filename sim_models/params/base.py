"""Frozen, validated parameters, shared by a block's RTL and its golden model."""

import dataclasses
import hashlib
from typing import Any, Self

__all__ = ["ParamError", "Params", "param"]

#: characters of a module's name; Verilator replaces longer ones than 127
_LONGEST_NAME = 100


class ParamError(ValueError):
    """A parameter has a value that the block cannot be built with.

    Attributes
    ----------
    name:
        The parameter's name, or None when several together are at fault.
    """

    def __init__(self, message: str, name: str | None = None) -> None:
        super().__init__(message)
        self.name = name


def param(default: Any, doc: str, *, low: int | None = None, high: int | None = None,
          choices: tuple[Any, ...] | None = None, tag: str | None = None) -> Any:
    """Declare one parameter of a :class:`Params` class.

    Parameters
    ----------
    default: int, bool or str
        Value when nothing is said; its type is the parameter's type.
    doc:
        One line of help, with the unit.
    low, high:
        Inclusive bounds of an integer.
    choices:
        The allowed values of a string.
    tag:
        What stands in a module's name before a value that is not the default (default: the name).
    """
    return dataclasses.field(default=default, metadata={
        "doc": doc, "low": low, "high": high, "choices": choices, "tag": tag})


@dataclasses.dataclass(frozen=True, kw_only=True)
class Params:
    """Base of all parameter classes: checks types and bounds, makes module names.

    Raises
    ------
    ParamError
        A value has the wrong type, is out of bounds, or is not among the choices.
    """

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            _check(field, getattr(self, field.name))
        self.validate()

    def validate(self) -> None:
        """Check what concerns several parameters together; subclasses raise :class:`ParamError`."""

    def replace(self, **changes: Any) -> Self:
        """A copy with some parameters changed."""
        return dataclasses.replace(self, **changes)

    def unit_name(self, block: str, base: "Params | None" = None) -> str:
        """Module name of ``block`` with these parameters.

        The bare name stands for ``base`` (without it: for the defaults); every parameter that differs is appended,
        so two different parameter sets never share a name. A name that tools would cut is given a digest for its
        end.
        """
        name = block
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value != (getattr(base, field.name) if base else field.default):
                tag = field.name if field.metadata["tag"] is None else field.metadata["tag"]
                name += f"_{tag}{int(value) if isinstance(value, bool) else value}"
        if len(name) <= _LONGEST_NAME:
            return name
        digest = hashlib.sha256(name.encode()).hexdigest()[:16]
        return f"{name[:_LONGEST_NAME - 17].rstrip('_')}_{digest}"


def _check(field: dataclasses.Field[Any], value: Any) -> None:
    name, want, meta = field.name, type(field.default), field.metadata
    if type(value) is not want:
        raise ParamError(f"{name} must be {_TYPES[want]}, not {value!r}", name)
    low, high, choices = meta["low"], meta["high"], meta["choices"]
    if choices is not None and value not in choices:
        raise ParamError(f"{name} must be one of {', '.join(map(str, choices))}, not {value}", name)
    if (low is not None and value < low) or (high is not None and value > high):
        raise ParamError(f"{name} must be {_span(low, high)}, not {value}", name)


def _span(low: int | None, high: int | None) -> str:
    if high is None:
        return f"at least {low}"
    return f"at most {high}" if low is None else f"from {low} to {high}"


_TYPES = {int: "an integer", bool: "true or false", str: "a string"}
