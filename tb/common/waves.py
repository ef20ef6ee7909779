"""What a waveform records, and the saved view through which GTKWave shows it.

Registers and ports are recorded. The other nets cost most: Verilator keeps each, and all that leads to it, beside
the code that it would otherwise have made of them.
"""

import dataclasses
import io
import re
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gen.config.config import guess
from gen.emit.emit import Design
from gen.errors import UserError
from rtl.unit import Unit

__all__ = ["Recording", "check_scope", "save_view", "with_fields", "with_quiet_nets"]

#: elements of an array that a view shows apart
_ELEMENTS = 16
_DECLARED = re.compile(r"^  (?:(input|output|reg|wire)) (?:reg )?(?:signed )?(?:\[(\d+):0\] )?(\w+)(?: = .*)?;$")


@dataclasses.dataclass(frozen=True)
class Recording:
    """What to record.

    Raises
    ------
    UserError
        A window that ends before it begins, or a cycle or depth below 1.
    """

    #: first and last cycle of each test, counted from 1 at its start; None for no limit
    first: int | None = None
    last: int | None = None
    #: instance below the top, with dots; empty for the top
    scope: str = ""
    #: levels of hierarchy from the scope down; 0 for all
    depth: int = 0
    #: also the nets inside modules
    nets: bool = False

    def __post_init__(self) -> None:
        if self.first is not None and self.last is not None and self.last < self.first:
            raise UserError(f"a window ends after it begins: --from {self.first} --to {self.last}")

    @property
    def window(self) -> tuple[int, int] | None:
        """First cycle and last, None for everything."""
        if self.first is None and self.last is None:
            return None
        return self.first or 1, self.last or 1 << 40

    def arguments(self, top: str) -> list[str]:
        """Arguments of the simulator."""
        words = []
        if self.scope or self.depth:
            words.append(f"+waves_scope+{'.'.join(filter(None, (top, self.scope)))}")
        if self.depth:
            words.append(f"+waves_depth+{self.depth}")
        if self.window:
            words.append("+waves_later+")
        return words

    def options(self) -> list[str]:
        """Options of ``speculoos sim`` that ask for this."""
        words = ["--waves"]
        for option, value in (("--from", self.first), ("--to", self.last), ("--scope", self.scope or None),
                              ("--depth", self.depth or None)):
            if value is not None:
                words += [option, str(value)]
        return [*words, "--nets"] if self.nets else words


def check_scope(design: Design, recording: Recording) -> None:
    """Refuse what the design does not have.

    Raises
    ------
    UserError
        No such instance; a window of a design without a clock.
    """
    known = [path for path, _ in _instances(design) if path]
    if recording.scope and recording.scope not in known:
        inside = f", only {', '.join(known)}" if len(known) < 12 else ""
        hint = guess(recording.scope, known) or inside or ": it has no instances"
        raise UserError(f"{design.top} has no instance {recording.scope!r}{hint}")
    if recording.window and not any(p.role == "clock" for p in design.ports[design.top]):
        raise UserError(f"{design.top} has no clock, so that --from and --to have no cycles to count")


def _instances(design: Design) -> list[tuple[str, str]]:
    """(path below the top, module) of each instance, parents first."""
    def below(path: str, module: str) -> Iterator[tuple[str, str]]:
        yield path, module
        for name, child in design.instances[module]:
            yield from below(f"{path}.{name}" if path else name, child)
    return list(below("", design.top))


def with_quiet_nets(module: str) -> str:
    """Text of a module that tells Verilator to record its registers and ports alone."""
    kept = {m[3] for line in module.splitlines() if (m := _DECLARED.match(line)) and m[1] != "wire"}
    lines, on = ["// verilator tracing_on"], True
    for line in module.splitlines():
        declared = _DECLARED.match(line)
        keep = declared is None or declared[3] in kept
        if keep != on:
            lines.append(f"  // verilator tracing_{'on' if keep else 'off'}")
            on = keep
        lines.append(line)
    return "\n".join([*lines, ""])


@dataclasses.dataclass(frozen=True)
class _Field:
    """A field of a stream's payload, an element of it, or a plain port."""

    name: str
    offset: int
    width: int
    signed: bool
    values: Mapping[int, str]


def _streams(unit: Unit) -> dict[str, tuple[str, Any]]:
    """Payload port and shape of each stream of ``unit``, by its stem."""
    from amaranth.hdl import Shape
    found = {}
    for path, member, _ in unit.signature.flatten(unit):
        if path[-1] == "payload" and Shape.cast(member.shape).width:
            stem = "__".join(map(str, path[:-1]))
            found[stem] = (f"{stem}__payload", member.shape)
    return found


def _fields(shape: Any, name: str, offset: int = 0) -> Iterator[_Field]:
    """Leaves of a payload's shape; an array of up to 16 elements has them apart."""
    from enum import EnumType

    from amaranth.hdl import Shape
    from amaranth.lib import data
    if isinstance(shape, data.StructLayout):
        for key, field in shape:
            yield from _fields(field.shape, f"{name}__{key}", offset + field.offset)
        return
    if isinstance(shape, data.ArrayLayout) and shape.length <= _ELEMENTS:
        for index in range(shape.length):
            at = offset + index * Shape.cast(shape.elem_shape).width
            yield from _fields(shape.elem_shape, f"{name}__{index}", at)
        return
    cast = Shape.cast(shape)
    members: Any = shape
    values = {int(v.value): v.name for v in members} if isinstance(shape, EnumType) else {}
    if cast.width:
        yield _Field(name, offset, cast.width, cast.signed, values)


def with_fields(design: Design, text: str) -> str:
    """``text`` of the top module with a net for each field of its streams, so that every viewer shows them."""
    lines = []
    for payload, shape in _streams(design.unit).values():
        for field in _fields(shape, payload):
            if field.name == payload or re.search(rf"\b{field.name}\b", text):
                continue
            high = field.offset + field.width - 1
            lines.append(f"  wire {'signed ' * field.signed}[{field.width - 1}:0] {field.name};\n"
                         f"  assign {field.name} = {payload}[{high}:{field.offset}];")
    body, end = text.rstrip().removesuffix("endmodule"), "endmodule\n"
    return "\n".join([body.rstrip(), *lines, end])


def save_view(design: Design, recording: Recording, waves: Path, moment_ns: float | None) -> Path:
    """Write ``waves`` with the suffix ``.gtkw``: streams in groups, then states and enumerations, by name.

    Beside it, ``waves.NAME.txt`` names the values of each enumeration. The marker stands at ``moment_ns``.
    """
    from vcd.gtkw import GTKWSave
    path = waves.with_suffix(".gtkw")
    text = io.StringIO()
    view = _View(GTKWSave(text), design, recording, path)
    view.save.dumpfile(waves.name, abspath=False)
    if moment_ns is not None:
        view.save.zoom_markers(-16.0, int(moment_ns * 1000))
    view.save.treeopen(f"{view.scope}.")
    view.write()
    path.write_text(text.getvalue())
    return path


class _View:
    def __init__(self, save: Any, design: Design, recording: Recording, path: Path) -> None:
        self.save, self.design, self.recording, self.path = save, design, recording, path
        self.scope = ".".join(filter(None, (design.top, recording.scope)))

    def write(self) -> None:
        top = self.design.top
        ports = {p.name: p for p in self.design.ports[top]}
        if not self.recording.scope:
            streams = _streams(self.design.unit)
            parts = {f"{stem}__{part}" for stem in streams for part in ("valid", "ready", "payload")}
            for port in ports.values():
                if port.name not in parts:
                    self._trace(top, port.name, port.width, port.signed, self.design.values[top].get(port.name, {}))
            for stem, (payload, shape) in streams.items():
                self._stream(stem, payload, shape, ports)
        self._states()

    def _stream(self, stem: str, payload: str, shape: Any, ports: Mapping[str, Any]) -> None:
        with self.save.group(stem):
            for name in (f"{stem}__valid", f"{stem}__ready"):
                if name in ports:
                    self._trace(self.design.top, name, 1, False, {})
            for field in _fields(shape, payload):
                self._trace(self.design.top, field.name, field.width, field.signed, field.values)

    def _states(self) -> None:
        """Registers and ports with named values, instance by instance; without names, all registers of the scope."""
        prefix = self.recording.scope
        for path, module in _instances(self.design):
            inside = not prefix or path == prefix or path.startswith(f"{prefix}.")
            depth = path.count(".") + bool(path) - (prefix.count(".") + bool(prefix))
            if not inside or (self.recording.depth and depth >= self.recording.depth):
                continue
            declared = {m[3]: int(m[2] or 0) + 1 for line in self.design.modules[module].splitlines()
                        if (m := _DECLARED.match(line)) and m[1] == "reg"}
            named = self.design.values[module]
            shown = declared if path == prefix else {n: w for n, w in declared.items() if n in named}
            if shown:
                with self.save.group(path or self.design.top, closed=path != prefix):
                    for name, width in shown.items():
                        self._trace(".".join(filter(None, (self.design.top, path))), name, width, False,
                                    named.get(name, {}))

    def _trace(self, scope: str, name: str, width: int, signed: bool, values: Mapping[int, str]) -> None:
        bits = f"[{width - 1}:0]" if width > 1 else ""
        self.save.trace(f"{scope}.{name}{bits}", datafmt="signed" if signed else "hex",
                        translate_filter_file=self._names(name, width, values) if values else None)

    def _names(self, name: str, width: int, values: Mapping[int, str]) -> str:
        """The translate file for these values; equal ones share it."""
        digits = -(-width // 4)
        key = zlib.crc32("".join(values.values()).encode())
        file = self.path.with_name(f"{self.path.stem}.{name.rpartition('__')[2]}_{key:08x}.txt")
        file.write_text("".join(f"{value:0{digits}x} {text}\n" for value, text in sorted(values.items())))
        return str(file)
