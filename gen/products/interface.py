"""What the ports of a design stand for: streams, structs and their fields, with bit positions and meanings."""

import dataclasses
import enum
import itertools
from collections.abc import Iterator
from typing import Any

from amaranth.hdl import Shape
from amaranth.lib import data
from amaranth.lib.wiring import FlippedSignature, In, Signature

from gen.emit.emit import Design
from rtl.parts.meanings import Struct, meanings

__all__ = ["Leaf", "Member", "interface", "leaves"]


@dataclasses.dataclass(frozen=True)
class Member:
    """A port, or the payload of a stream."""

    #: name of the port; of a stream what its three ports begin with
    name: str
    #: ``input`` or ``output``, of the payload
    direction: str
    stream: bool
    #: Amaranth's shape
    shape: Any
    meaning: str

    @property
    def port(self) -> str:
        """Port that carries the data."""
        return f"{self.name}__payload" if self.stream else self.name

    @property
    def width(self) -> int:
        """Bits."""
        return Shape.cast(self.shape).width


@dataclasses.dataclass(frozen=True)
class Leaf:
    """A field of a struct that is no struct itself."""

    #: names of the field and of the structs around it, joined by dots
    path: str
    #: number of the lowest bit
    low: int
    #: Amaranth's shape
    shape: Any
    meaning: str

    @property
    def width(self) -> int:
        """Bits."""
        return Shape.cast(self.shape).width


def interface(design: Design) -> tuple[Member, ...]:
    """All members of the top's signature that became ports, in the order of the ports."""
    texts = meanings(type(design.unit))
    there = {port.name for port in design.ports[design.top]}
    return tuple(m for m in _members(design.unit.signature.members, "", texts) if m.port in there)


def _members(members: Any, prefix: str, texts: dict[str, str], otherwise: str = "") -> Iterator[Member]:
    for name, member in members.items():
        for index in itertools.product(*map(range, member.dimensions)):
            full = prefix + "__".join([name, *map(str, index)])
            text = texts.get(name, otherwise)
            if not member.is_signature:
                yield Member(full, _direction(member), False, member.shape, text)
                continue
            signature = member.signature
            if set(signature.members) == {"payload", "valid", "ready"}:
                payload = signature.members["payload"]
                yield Member(full, _direction(payload), True, payload.shape, text)
            else:
                own = signature.flip() if isinstance(signature, FlippedSignature) else signature
                inner = meanings(type(own)) if type(own) is not Signature else {}
                yield from _members(signature.members, full + getattr(own, "separator", "__"), inner, text)


def _direction(member: Any) -> str:
    return "input" if member.flow == In else "output"


def leaves(shape: Any, low: int = 0, path: str = "") -> Iterator[Leaf]:
    """The fields of a struct, from the lowest bits on; none for any other shape."""
    if not isinstance(shape, data.StructLayout):
        return
    texts = shape.texts if isinstance(shape, Struct) else {}
    for name, field in shape:
        here = f"{path}.{name}".lstrip(".")
        if isinstance(field.shape, data.StructLayout):
            yield from leaves(field.shape, low + field.offset, here)
        elif field.width:
            yield Leaf(here, low + field.offset, field.shape, texts.get(str(name), ""))


def enums(shape: Any) -> Iterator[type[enum.Enum]]:
    """The enums in a shape, in the order of their first use."""
    if isinstance(shape, enum.EnumMeta):
        yield shape  # pyright: ignore[reportReturnType]
    elif isinstance(shape, data.ArrayLayout):
        yield from enums(shape.elem_shape)
    elif isinstance(shape, data.StructLayout):
        for _, field in shape:
            yield from enums(field.shape)
