"""The page of a design: what its ports mean, how they are used, when they answer."""

import dataclasses
import enum
import importlib
import inspect
import re
import sys
from typing import Any

from amaranth.hdl import Shape
from amaranth.lib import data

from gen.config.schema import derived
from gen.emit.emit import Design
from gen.products import timing
from gen.products.interface import Member, interface, leaves
from gen.products.package import Types
from gen.products.registers import markdown
from rtl.parts.meanings import Struct, meanings, summary

__all__ = ["page"]

_STREAM_RULES = """A stream is three ports: `payload`, `valid` and `ready`.

1. A beat is taken in a cycle in which `valid` and `ready` are high at the rising edge of the clock.
2. While `valid` is high and `ready` low, `valid` stays high and `payload` holds.
3. `valid` does not wait for `ready`; `ready` may wait for `valid`.
4. No beat is taken while the reset is high.
"""
_PIPELINE_RULES = """`enable` moves the whole pipeline on by a stage; while it is low everything holds.
Tie it high where results are always taken. There is no other back-pressure.
"""
_AXI_RULES = """The ports `s_axil_*` are an AXI4-Lite slave (AMBA AXI4, part B): one write and one read at a time.
Address and data of a write may come in any order. An address without a register is answered with SLVERR.
"""


def page(design: Design) -> str:
    """The page's text, in Markdown."""
    unit, members, types = design.unit, interface(design), Types(design)
    description = _markdown(inspect.getdoc(sys.modules[type(unit).__module__]) or "")
    sections = [f"# {design.top}\n\n{_inline(summary(type(unit)))} Block `{unit.block}`, made by Speculoos.",
                _parameters(design), _ports(design, members)]
    sections += [_fields(member, types) for member in members if isinstance(member.shape, data.StructLayout)]
    sections += _codes(members)
    sections.append(_use(design, members))
    latency = [p for p in description.split("\n\n") if re.match(r"Latency|.*Throughput:", p)]
    if latency:
        sections.append("## Latency and throughput\n\n" + "\n\n".join(latency))
    sections.append("## Timing\n\n" + "\n\n".join(
        f"{text}\n\n```text\n{drawing}```" for text, drawing in _drawings(design, members)))
    if description:
        sections.append(f"## Description\n\n{description}")
    table = unit.register_table()
    if table:
        sections.append(markdown(table).rstrip("\n"))
    return "\n\n".join(section.rstrip("\n") for section in sections) + "\n"


def _parameters(design: Design) -> str:
    params = design.unit.params
    rows = [[f.name, str(getattr(params, f.name)), f.metadata.get("doc", "")] for f in dataclasses.fields(params)]
    text = f"## Parameters\n\n{_table(['parameter', 'value', 'what it is'], rows)}"
    figures = [[name, str(value), doc] for name, (value, doc) in derived(params).items()]
    if figures:
        text += f"\nWhat follows from them:\n\n{_table(['figure', 'value', 'what it is'], figures)}"
    return text


def _ports(design: Design, members: tuple[Member, ...]) -> str:
    known = {member.port: member for member in members}
    rows = []
    for port in design.ports[design.top]:
        if port.name in known:
            text = known[port.name].meaning
        elif port.role == "data":
            text = {"valid": "Handshake of the stream.", "ready": "Handshake of the stream."}.get(
                port.name.rpartition("__")[2], "")
        else:
            text = "Clock, rising edge." if port.role == "clock" else "Reset, synchronous, active high."
        rows.append([f"`{port.name}`", port.direction, f"{port.width}{' signed' * port.signed}", text])
    return f"## Ports\n\n{_table(['port', 'direction', 'bits', 'meaning'], rows)}"


def _fields(member: Member, types: Types) -> str:
    doc = member.shape.doc if isinstance(member.shape, Struct) else ""
    rows = [[_bits(leaf.low, leaf.width), f"`{leaf.path}`", _type(leaf.shape), leaf.meaning]
            for leaf in leaves(member.shape)]
    return (f"### `{member.port}`: `{types.of[member.name]}`\n\n{_inline(doc)}\n\n"
            f"{_table(['bits', 'field', 'type', 'meaning'], rows)}")


def _codes(members: tuple[Member, ...]) -> list[str]:
    found: dict[str, Any] = {}

    def collect(shape: Any) -> None:
        if isinstance(shape, enum.EnumMeta):
            found[shape.__name__] = shape
        elif isinstance(shape, data.ArrayLayout):
            collect(shape.elem_shape)
        elif isinstance(shape, data.StructLayout):
            for _, field in shape:
                collect(field.shape)

    for member in members:
        collect(member.shape)
        for leaf in leaves(member.shape):       # a field that is wider than its codes names them
            for module, name in re.findall(r":class:`([\w.]+)\.(\w+)`", leaf.meaning):
                collect(getattr(importlib.import_module(module), name))
    sections = []
    for name, kind in found.items():
        texts = meanings(kind)
        rows = [[str(code.value), code.name, texts.get(code.name, "")] for code in kind]
        sections.append(f"### Codes of `{name}`\n\n{_inline(summary(kind))}\n\n"
                        f"{_table(['code', 'name', 'meaning'], rows)}")
    return sections


def _use(design: Design, members: tuple[Member, ...]) -> str:
    names = {member.name for member in members}
    rules = ["All inputs are looked at, and all registers change, at the rising edge of the clock. The reset is "
             "synchronous and may come in any cycle."]
    if any(member.stream for member in members):
        rules.append(_STREAM_RULES)
    if _is_pipeline(names):
        rules.append(_PIPELINE_RULES)
    if "s_axil_awaddr" in names:
        rules.append(_AXI_RULES)
    return "## Handshake\n\n" + "\n\n".join(rule.rstrip("\n") for rule in rules)


def _is_pipeline(names: set[str]) -> bool:
    return {"enable", "i_valid", "o_valid"} <= names


def _drawings(design: Design, members: tuple[Member, ...]) -> list[tuple[str, str]]:
    names, unit = {member.name for member in members}, design.unit
    drawings = []
    if _is_pipeline(names):
        stages = unit.params.stages  # pyright: ignore[reportAttributeAccessIssue]
        drawings.append((f"{stages} cycles with `enable` from operands to results:",
                         timing.pipeline(stages, members)))
    for direction, text in (("input", "Beats that enter"), ("output", "Beats that leave")):
        first = next((m for m in members if m.stream and m.direction == direction), None)
        if first:
            drawings.append((f"{text}, by the example of `{first.name}`:", timing.stream(first.name)))
    if "s_axil_awaddr" in names:
        drawings.append(("A write and a read over AXI4-Lite; an answer waits until it is taken:",
                         timing.axi_lite("s_axil_")))
    drawings += [(f"`{reply}` follows `{question}` after {cycles} cycle{'s' * (cycles != 1)}:",
                  timing.answer(question, reply, cycles)) for question, reply, cycles in unit.answers()]
    return drawings


def _type(shape: Any) -> str:
    if isinstance(shape, enum.EnumMeta):
        return shape.__name__
    if isinstance(shape, data.ArrayLayout):
        return f"{shape.length} x {_type(shape.elem_shape)}"
    cast = Shape.cast(shape)
    return "bit" if cast.width == 1 else f"{'signed' if cast.signed else 'unsigned'} {cast.width}"


def _bits(low: int, width: int) -> str:
    return f"{low + width - 1}:{low}" if width > 1 else str(low)


def _table(columns: list[str], rows: list[list[str]]) -> str:
    cells = [columns, ["---"] * len(columns), *rows]
    lines = [[_inline(cell).replace("|", r"\|") for cell in line] for line in cells]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _inline(text: str) -> str:
    """A docstring's text with Markdown's marks."""
    text = re.sub(r":\w+:`~?([\w.]+)`", lambda m: f"`{m[1].rpartition('.')[2]}`", text)
    return re.sub(r"``([^`]+)``", r"`\1`", text)


def _markdown(doc: str) -> str:
    """A docstring with its drawings fenced."""
    blocks, fenced = [], False
    for block in re.split(r"\n{2,}", doc):
        if fenced and block.startswith(" "):
            blocks.append(f"```text\n{_dedent(block)}\n```")
            continue
        fenced = block.endswith("::")
        block = block.removesuffix("::").rstrip() + ":" * (fenced and block.rstrip(":").strip() != "")
        if block.strip(":"):
            blocks.append(_inline(block))
    return "\n\n".join(blocks)


def _dedent(block: str) -> str:
    lines = block.split("\n")
    common = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    return "\n".join(line[common:].rstrip() for line in lines)
