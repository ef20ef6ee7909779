"""From a Unit to Verilog: one module per unique component and parameters.

Each :class:`~rtl.unit.Unit` is elaborated once and written as one module; whatever it holds that is not a
Unit (Amaranth's memories, helper components) becomes part of that module. A module's text depends on its own
hardware and on the ports of its children alone, so the same module is the same text under every top.

The emitter does not look into instances: ``ResetInserter`` and ``EnableInserter`` around a Unit would not
reach its registers and must not be used; ``DomainRenamer`` works.
"""

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

from amaranth.back import rtlil  # pyright: ignore[reportAttributeAccessIssue]
from amaranth.hdl import ClockSignal, Instance, ResetSignal, Shape, Value
from amaranth.hdl._dsl import FSM
from amaranth.hdl._ir import Fragment, PortDirection
from amaranth.lib.wiring import In

from gen.emit.names import check_name, distinct, plain_names
from gen.emit.process import scratch
from gen.emit.yosys import run_yosys
from gen.errors import EmitError, ToolError
from rtl.primitives.models import MODELS
from rtl.unit import Unit

__all__ = ["Design", "Port", "emit", "to_rtlil"]


@dataclasses.dataclass(frozen=True)
class Port:
    """One port of a Verilog module."""

    name: str
    #: ``input`` or ``output``
    direction: str
    #: bits
    width: int
    signed: bool
    #: ``data``, ``clock`` or ``reset``
    role: str = "data"


@dataclasses.dataclass(frozen=True)
class Design:
    """Emitted Verilog.

    All mappings are keyed by module name, leaves first; the last one is ``top``.
    """

    top: str
    #: text of each module
    modules: dict[str, str]
    #: ports of each module, in the order of its header: clocks and resets, then the signature's
    ports: dict[str, tuple[Port, ...]]
    #: what each module instantiates, in the order of its text: name of the instance, module
    instances: dict[str, tuple[tuple[str, str], ...]]
    #: block that each module is
    blocks: dict[str, str]
    #: parameters of each module
    params: dict[str, dict[str, Any]]
    #: for each module, Amaranth's hierarchical name of every register and memory, by its Verilog name
    origins: dict[str, dict[str, str]]
    #: for each module, the names of the values of its ports and registers that have any, by Verilog name
    values: dict[str, dict[str, dict[int, str]]]
    #: the top as it was described: its signature, parameters, docstring and registers
    unit: Unit
    #: text of a model for simulation of each vendor's block that is instantiated; synthesis tools know the block
    models: dict[str, str] = dataclasses.field(default_factory=dict)

    @property
    def verilog(self) -> str:
        """All modules in one text, for synthesis."""
        return "\n".join(self.modules.values())

    @property
    def simulation(self) -> str:
        """All modules and the models of vendors' blocks in one text, for simulation."""
        return "\n".join([*self.models.values(), *self.modules.values()])


def emit(unit: Unit) -> Design:
    """Emit ``unit`` and everything below it.

    Parameters
    ----------
    unit: Unit
        The top; a unit serves one elaboration, so make a new one for each call.

    Raises
    ------
    EmitError
        A module, member or port has a name that Verilog, VHDL or C++ reserves; two different units share a
        module name; a module would be empty; a memory needs initial contents and is written; Yosys failed.
    """
    emitter = Emitter()
    top = emitter.add(unit).name
    done = emitter.done
    finished = _finish(done)
    return Design(
        top=top,
        modules={n: text for n, (text, _) in finished.items()},
        ports={n: d.ports for n, d in done.items()},
        instances={n: tuple((instance, child) for child, instance in _INSTANCE.findall(text) if child in done)
                   for n, (text, _) in finished.items()},
        blocks={n: d.unit.block for n, d in done.items()},
        params={n: dataclasses.asdict(d.unit.params) for n, d in done.items()},
        origins={n: origins for n, (_, origins) in finished.items()},
        values={n: _values(done[n], origins) for n, (_, origins) in finished.items()}, unit=unit,
        models={n: MODELS[n] for n in sorted({n for d in done.values() for n in d.blocks})})


@dataclasses.dataclass(frozen=True)
class _Done:
    """A module whose RTLIL exists."""

    name: str
    unit: Unit
    rtlil: str
    ports: tuple[Port, ...]
    children: tuple[str, ...]
    #: vendors' blocks that it instantiates
    blocks: tuple[str, ...]

    @property
    def stub(self) -> str:
        """RTLIL of a black box with these ports."""
        wires = "".join(f"  wire width {p.width} {p.direction} {k} {'signed ' * p.signed}\\{p.name}\n"
                        for k, p in enumerate(self.ports, 1))
        return f"attribute \\blackbox 1\nmodule \\{self.name}\n{wires}end\n"


class Emitter:
    """The platform during emission: turns each child Unit into an instance of its module."""

    def __init__(self) -> None:
        self.done: dict[str, _Done] = {}
        #: the unit at work; :meth:`rtl.unit.Unit.elaborate` compares itself with it
        self.current: Unit | None = None
        self._children: dict[str, None] = {}

    def add(self, unit: Unit) -> _Done:
        """Elaborate ``unit`` unless its module exists already."""
        name = unit.unit_name
        unit.__dict__["_MustUse__used"] = True      # a refusal is no reason for Amaranth to warn as well
        _check_module_name(name, unit)
        if name in self.done:
            _check_same(name, self.done[name].unit, unit)
            return self.done[name]
        members = _members(unit)
        outer = self.current, self._children
        self.current, self._children = unit, {}
        try:
            text = to_rtlil(unit, name, self)
            children = tuple(self._children)
        finally:
            self.current, self._children = outer
        _check_memories(name, text)
        text, ports = _ports(name, text, {n: p for n, (p, _) in members.items()})
        other = next((n for n in self.done if n.lower() == name.lower()), None)
        if other:
            raise EmitError(f"the modules {other} and {name} differ in case alone, which VHDL and many file "
                            f"systems do not tell apart: rename one of them")
        blocks = tuple(sorted({*MODELS} & {*_CELL.findall(text)}))
        self.done[name] = _Done(name, unit, text, ports, children, blocks)
        return self.done[name]

    def instance_of(self, unit: Unit) -> Instance:
        """An instance of the module of ``unit``, with its clocks and resets connected."""
        done = self.add(unit)
        self._children[done.name] = None
        values = {n: v for n, (_, v) in _members(unit).items()}
        args: list[Any] = []
        for port in done.ports:
            domain = port.name.rpartition("_")[0] or "sync"
            if port.role == "clock":
                value: Any = ClockSignal(domain)
            elif port.role == "reset":
                value = ResetSignal(domain, allow_reset_less=True)
            else:
                value = values[port.name]
            args.append((port.direction[0], port.name, value))
        return Instance(done.name, *args)


def _members(unit: Unit) -> dict[str, tuple[Port, Value]]:
    """The ports that the signature of ``unit`` stands for, by name."""
    members: dict[str, tuple[Port, Value]] = {}
    for name, path, member, value in unit.flat_members():
        for part in path:
            reason = None if isinstance(part, int) else check_name(part)
            if reason:
                member_name = ".".join(map(str, path))
                raise EmitError(f"member {member_name} of {type(unit).__name__} cannot be a port, because "
                                f"'{part}' {reason}: call it for example {_suggest(str(part))}")
        if name in members:
            raise EmitError(f"two members of {type(unit).__name__} would both become port {name}: rename one")
        cast = Value.cast(value)
        shape = Shape.cast(cast.shape())
        if shape.width:
            direction = "input" if member.flow == In else "output"
            members[name] = Port(name, direction, shape.width, shape.signed), cast
    return members


def to_rtlil(unit: Unit, name: str, platform: Any = None) -> str:
    """RTLIL of ``unit``; without a platform its children are elaborated in place."""
    ports = {n: (value, PortDirection.Input if port.direction == "input" else PortDirection.Output)
             for n, (port, value) in _members(unit).items()}
    fragment = Fragment.get(unit, platform)
    _name_states(fragment)
    text = rtlil.convert(fragment, name=name, platform=platform, ports=ports, emit_src=False)
    return distinct(_start_reads(text))


def _name_states(fragment: Any) -> None:
    """Give state machines the attributes that Amaranth gives enumerations, so that their states keep their names."""
    for machine in fragment.generated.values():
        if isinstance(machine, FSM):
            known: Any = machine
            state = known.state
            for name, number in known.encoding.items():
                state.attrs[f"enum_value_{number:0{len(state)}b}"] = name
    for child, *_ in fragment.subfragments:
        _name_states(child)


_ENUM = re.compile(r'(?m)^(?:  attribute \\(?!enum_).*\n)*((?:  attribute \\enum_\w+ ".*"\n)+)'
                   r"(?:  attribute \\(?!enum_).*\n)*  wire .*\\(\S+)$")


def _values(done: "_Done", origins: dict[str, str]) -> dict[str, dict[int, str]]:
    """Names of values, from the attributes of the RTLIL."""
    names = {p.name: p.name for p in done.ports} | {origin: name for name, origin in origins.items()}
    return {names[wire]: {int(bits, 2): value
                          for bits, value in re.findall(r'\\enum_value_([01]+) "(.*)"', attributes)}
            for attributes, wire in _ENUM.findall(done.rtlil) if wire in names}


_READ_INIT = re.compile(r'(cell \$memrd_v2 .*\n\s+parameter \\MEMID (".*")\n(?:\s+parameter .*\n)*?'
                        r"\s+parameter \\INIT_VALUE \d+')(x+)(?=\n\s+parameter \\CE_OVER_SRST \d+\n"
                        r"\s+parameter \\CLK_ENABLE 1\n)")


def _start_reads(text: str) -> str:
    """Let the read registers of memories that are written start at 0, as all registers do.

    What they hold does not matter, but an idle PE multiplies it by 0 and adds that to its sum, and to a four-state
    simulator 0 times the unknown is unknown.
    """
    written = set(re.findall(r'cell \$memwr_v2 .*\n\s+parameter \\MEMID (".*")', text))
    return _READ_INIT.sub(lambda m: m[1] + ("0" * len(m[3]) if m[2] in written else m[3]), text)


def _suggest(word: str) -> str:
    base = re.sub(r"\W+", "_", word).strip("_").lower() or "port"
    return next(s for s in (base, f"{base}_o", f"i_{base}") if check_name(s) is None)


def _check_module_name(name: str, unit: Unit) -> None:
    reason = check_name(name)
    if reason:
        raise EmitError(f"{type(unit).__name__} cannot be written as module '{name}', because that {reason}: "
                        f"change its block name or the tags of its parameters")


def _check_same(name: str, first: Unit, second: Unit) -> None:
    if (type(first), first.params, first.signature) != (type(second), second.params, second.signature):
        raise EmitError(f"two different units are both called {name}: {_describe(first)} and "
                        f"{_describe(second)}; unit_name must tell them apart")


def _describe(unit: Unit) -> str:
    return f"{type(unit).__module__}.{type(unit).__name__} with {unit.params}"


def _check_memories(name: str, text: str) -> None:
    written = set(re.findall(r"cell \$memwr_v2 .*\n\s*parameter \\MEMID (\S+)", text))
    contents = re.findall(r"cell \$meminit_v2 .*\n\s*parameter \\MEMID (\S+)\n(?:.*\n)*?.*\\DATA \d+'(\d*)", text)
    for memory, bits in contents:
        if memory in written and "1" in bits:
            readable = memory.strip('"').lstrip("\\")
            raise EmitError(f"memory {readable} of module {name} is written and has initial contents, which not "
                            f"every memory can have: write them at start-up instead")


_CELL = re.compile(r"(?m)^  cell \\(\w+) ")
_WIRE = re.compile(r"(?m)^  wire width (\d+) (input|output) \d+  (signed )?\\(\S+)$")


def _ports(name: str, text: str, members: dict[str, Port]) -> tuple[str, tuple[Port, ...]]:
    """Number the ports of module ``name`` in ``text``: clocks and resets, then the signature's order."""
    start = re.search(rf"(?m)^module \\{re.escape(name)}\n", text)
    if start is None:
        raise EmitError(f"module {name} would be empty: it needs ports and something that drives them")
    end = text.index("\nend\n", start.end())
    body = text[start.end():end]
    extra = []
    for width, _, _, port in _WIRE.findall(body):
        if port not in members:
            role = "clock" if port.endswith("clk") else "reset"
            if "$" in port or width != "1":
                taken = port.partition("$")[0]
                raise EmitError(f"member {taken} of module {name} has the name of a clock or reset: "
                                f"rename it")
            extra.append(Port(port, "input", 1, False, role))
    ports = (*sorted(extra, key=lambda p: (p.name.rpartition("_")[0], p.name)), *members.values())
    number = {p.name: k for k, p in enumerate(ports, 1)}
    body = _WIRE.sub(lambda m: f"  wire width {m[1]} {m[2]} {number[m[4]]} {m[3] or ''}\\{m[4]}", body)
    return text[:start.end()] + body + text[end:], ports


#: attributes that speak to Amaranth's users only; what a synthesizer reads (``ram_style``, ``keep``) stays
_NOISE = re.compile(r"attribute \\((?:generator|top|src|init|full_case|amaranth\.\S+|enum_\S+)) ")


def _finish(done: dict[str, _Done]) -> dict[str, tuple[str, dict[str, str]]]:
    """Verilog of each module, and the origins of its names."""
    with scratch() as folder:
        jobs = {}
        for name, d in done.items():
            source = f"{name}.il"
            named = re.sub(r"(?m)^(  (?:wire|memory) .*\\(\S+))$", r'  attribute \\hdlname "\2"\n\1', d.rtlil)
            (folder / source).write_text(named + "".join(done[c].stub for c in d.children))
            for block in d.blocks:
                (folder / f"{block}.model.v").write_text(MODELS[block])
            jobs[name] = _script(source, name, d.rtlil, d.blocks)
        try:
            run_yosys(jobs, folder)
        except ToolError as error:
            raise EmitError(str(error), error.exit_code) from None
        return {name: _clean(name, (folder / f"{name}.v").read_text()) for name in done}


def _script(source: str, name: str, text: str, blocks: Sequence[str]) -> list[str]:
    noise = " ".join(f"-remove {a}" for a in sorted({"full_case", *_NOISE.findall(text)} - {"init"}))
    return [
        *(f"read_verilog -lib {block}.model.v" for block in blocks),
        f"read_rtlil {source}", f"hierarchy -check -top {name}",
        "proc -norom", "pmuxtree", "flatten -noscopeinfo", f"hierarchy -check -top {name}",
        f"attrmap {noise}", f"attrmap -modattr {noise}",
        # contents of a memory that is written are undefined until written; what is only read keeps its table
        "memory_collect", "setparam -set INIT 1'x t:$mem_v2 r:WR_PORTS>0 %i",
        # resets and enables as people write them, equal expressions once; none of it introduces an x
        "rename -hide w:*$*", "opt_clean -purge", "opt_expr -keepdc -fine", "opt_merge",
        "opt_dff -simple-dffe -keepdc", "opt_merge", "opt_muxtree", "opt_expr -keepdc", "opt_merge",
        "opt_clean -purge", "autoname",
        f"setattr -mod -unset top {name}", f"write_verilog {name}.v",
    ]


_INSTANCE = re.compile(r"(?m)^  (\w+) (\w+) \($")
_ORIGIN = re.compile(r'(?m)^  \(\* hdlname = "([^"]*)" \*\)\n(?:  \(\*.*\n)*(?:  output .*\n)?'
                     r'(?=  (reg|wire) (?:signed )?(?:\[[^]]*\] )?(\w+))')
#: what Yosys writes for the register of a memory's read port: the net behind it has the name
_READ = re.compile(r"(?m)^  assign (\w+) = n_\d+;$")


def _clean(name: str, text: str) -> tuple[str, dict[str, str]]:
    text = plain_names(re.sub(r"\A/\*.*?\*/\n+", "", text))
    read = set(_READ.findall(text))
    origins = {name: origin.replace(" ", ".") for origin, kind, name in _ORIGIN.findall(text)
               if kind == "reg" or name in read}
    # a net that is no register needs no initial value: the register behind it has its own
    text = re.sub(r"(?m)^ *\(\* (?:hdlname|init) = .*\*\)\n", "", text)
    text = re.sub(r"(?m)^(  (?:input|output) )(.*;\n)  wire \2", r"\1\2", text)
    text = text.replace(" = ! ", " = ~| ")      # linters dislike the logical NOT of several bits
    if not re.match(rf"(?:\(\*[^\n]*\n)*module {name}\(", text) or text.count("\nendmodule\n") != 1:
        raise EmitError(f"Yosys wrote something else than the one module {name}", 1)
    if not re.search(r"(?m)^  (?:assign|always|initial|(?:\w+|\)) \w+ \()", text):
        raise EmitError(f"module {name} would be empty: it needs ports and something that drives them")
    return text, origins
