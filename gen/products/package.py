"""The SystemVerilog package of a design: types for its ports."""

import enum
import re
from typing import Any

from amaranth.hdl import Shape
from amaranth.lib import data

from gen.emit.emit import Design
from gen.emit.names import verilog_name
from gen.products.interface import Member, interface
from rtl.parts.meanings import Struct, meanings, summary

__all__ = ["Types", "package", "typed_wrapper"]


class Types:
    """The types of a design's ports, by name, in the order in which they can be declared."""

    def __init__(self, design: Design) -> None:
        #: text of each type's declaration
        self.text: dict[str, str] = {}
        #: type of each member, by its name
        self.of: dict[str, str] = {}
        members = interface(design)
        for member in members:
            if isinstance(member.shape, data.StructLayout | enum.EnumMeta):
                self.of[member.name] = self._type(member.shape, member.name)
        for member in members:
            if member.name not in self.of:
                name = f"{member.name}_t" if f"{member.name}_t" not in self.text else f"{member.name}_port_t"
                self.of[member.name] = self._declare(
                    name, f"{_comment(member.meaning)}  typedef {self._field(member.shape, name, member.name)};\n")

    def _type(self, shape: Any, place: str) -> str:
        if isinstance(shape, enum.EnumMeta):
            return self._declare(f"{_snake(shape.__name__)}_t", self._enum(shape))
        name = f"{shape.name if isinstance(shape, Struct) else place}_t"
        return self._declare(name, self._struct(shape, name, place))

    def _declare(self, name: str, text: str) -> str:
        if self.text.setdefault(name, text) != text:
            raise AssertionError(f"two types are called {name}")
        return name

    def _enum(self, kind: Any) -> str:
        name, width, texts = _snake(kind.__name__), Shape.cast(kind).width, meanings(kind)
        codes = [(f"{name.upper()}_{code.name}", code.value, texts.get(code.name, "")) for code in kind]
        lines = [f"    {code} = {width}'d{value}{',' if n < len(codes) else ''}{_behind(text)}"
                 for n, (code, value, text) in enumerate(codes, 1)]
        return f"{_comment(summary(kind))}  typedef enum logic {_range(width)}{{\n" + "".join(
            f"{line}\n" for line in lines) + f"  }} {name}_t;\n"

    def _struct(self, layout: data.StructLayout, name: str, place: str) -> str:
        texts, doc = (layout.texts, layout.doc) if isinstance(layout, Struct) else ({}, "")
        fields = [(str(n), f.shape) for n, f in layout if f.width]
        # what is declared last lies in the lowest bits
        lines = [f"    {self._field(shape, verilog_name(n), f'{place}_{n}')};{_behind(texts.get(n, ''))}"
                 for n, shape in reversed(fields)]
        return f"{_comment(doc)}  typedef struct packed {{\n" + "".join(
            f"{line}\n" for line in lines) + f"  }} {name};\n"

    def _field(self, shape: Any, name: str, place: str) -> str:
        """Declaration of something of this shape."""
        if isinstance(shape, data.ArrayLayout):
            element = shape.elem_shape
            dimension = f"[{shape.length - 1}:0]"
            if isinstance(element, data.Layout | enum.EnumMeta):
                return f"{self._type(element, place)} {dimension} {name}"
            cast = Shape.cast(element)
            if cast.signed:     # the elements of a signed packed array are unsigned, unless they have a type
                own = self._declare(f"signed_{cast.width}_t", f"  typedef logic signed {_range(cast.width)}"
                                                              f"signed_{cast.width}_t;\n")
                return f"{own} {dimension} {name}"
            return f"logic {dimension}[{cast.width - 1}:0] {name}"
        if isinstance(shape, data.StructLayout | enum.EnumMeta):
            return f"{self._type(shape, place)} {name}"
        cast = Shape.cast(shape)
        return f"logic {'signed ' * cast.signed}{_range(cast.width)}{name}"


def package(design: Design) -> str:
    """The package's text."""
    name = f"{design.top}_pkg"
    body = "\n".join(Types(design).text.values())
    return (f"// Types of the ports of {design.top}; made by Speculoos. A struct lies in its port as declared here.\n"
            f"package {name};\n\n{body}\nendpackage\n")


def typed_wrapper(design: Design, name: str) -> str:
    """A module around the top whose ports have the package's types, and are as wide as those of the Verilog."""
    types, members = Types(design), {m.port: m for m in interface(design)}
    ports, wires, pins = [], [], []
    for port in design.ports[design.top]:
        member = members.get(port.name)
        kind = types.of[member.name] if member else f"logic {_range(port.width)}".strip()
        ports.append(f"  {port.direction} {kind} {port.name}")
        inside = port.name
        if member and port.direction == "output" and _is_enum(member):     # an enum takes no plain bits
            inside = f"{port.name}_bits"
            wires += [f"  logic {_range(port.width)}{inside};", f"  assign {port.name} = {kind}'({inside});"]
        pins.append(f"    .{port.name}({inside})")
        if member:
            wires += [f"  if ($bits({kind}) != {port.width}) begin : width_of_{port.name}",
                      f'    $error("{kind} has %0d bits, {port.name} has {port.width} bits", $bits({kind}));',
                      "  end"]
    return (f"module {name} import {design.top}_pkg::*; (\n" + ",\n".join(ports) + "\n);\n" + "".join(
        f"{wire}\n" for wire in wires) + f"  {design.top} dut (\n" + ",\n".join(pins) + "\n  );\nendmodule\n")


def _is_enum(member: Member) -> bool:
    return isinstance(member.shape, enum.EnumMeta)


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _range(width: int) -> str:
    return f"[{width - 1}:0] " if width > 1 else ""


def _comment(text: str) -> str:
    return f"  // {_plain(text)}\n" if text else ""


def _behind(text: str) -> str:
    return f"  // {_plain(text)}" if text else ""


def _plain(text: str) -> str:
    """A docstring's text without its marks."""
    return re.sub(r":\w+:`~?(?:[\w.]*\.)?(\w+)`|`+", lambda m: m[1] or "", text)
