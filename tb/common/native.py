"""Mass numerics: a Verilated model driven from numpy arrays, a million cycles a second.

A generated C++ shim puts a queue in front of every input stream and a buffer behind every output stream, so
Python is called once per run and not once per cycle. For protocols use cocotb; this is for values.
"""

import ctypes
import dataclasses
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rtl.unit import Unit
from tb.common import Port
from tb.common.build import add_runtime, compiled_once, keyed_folder, run_logged, toolchain
from tb.common.poison import BUILD_FLAGS
from tb.common.rules import RuleViolation
from tb.common.runner import unit_ports

__all__ = ["NativeLibrary", "NativeSim", "NativeTimeout", "compile_native"]

_FLAGS = ("-O3", "-Wno-fatal", "--no-timing", "--output-split", "0", *BUILD_FLAGS)
# several of these libraries live in one process: no symbol may be shared between them
_CFLAGS = "-fPIC -fno-gnu-unique -fvisibility=default"
_MAKE = ("OPT_FAST=-O3",)
_LDFLAGS = "-shared -Wl,-Bsymbolic"


class NativeTimeout(RuntimeError):
    """A run did not deliver what was asked for within its cycles."""


@dataclasses.dataclass(frozen=True)
class NativeLibrary:
    """A compiled model: shared library and what its ports are."""

    path: Path
    top: str
    ports: tuple[Port, ...]
    reused: bool

    @property
    def streams(self) -> dict[str, tuple[int, int, int, bool]]:
        """Stream name to port numbers of valid, ready, payload (-1: none) and whether it is an input."""
        return _streams(self.ports)


def compile_native(verilog: str, top: str, ports: Sequence[Port], build_root: Path,
                   once: Sequence[str] = ()) -> NativeLibrary:
    """Compile Verilog into a library, or reuse an equal earlier build.

    Parameters
    ----------
    verilog, top:
        Text of all modules, and the top among them.
    ports:
        Ports of the top without clock and reset.
    build_root:
        Folder of all builds.
    once:
        Modules to be compiled once, however many instances they have: large ones, for a call has its cost.

    Raises
    ------
    ToolError, BuildError
        As for :func:`tb.common.runner.build`.
    """
    tools = toolchain()
    shim = Path(__file__).with_name("native.cpp").read_text()
    header = _header(tuple(ports), _port_names(verilog, top))
    control: dict[str, str] = {}
    if once:
        verilog, control["once.vlt"] = compiled_once(verilog, once)

    def make(folder: Path) -> None:
        for name, text in {"design.v": verilog, "shim.cpp": shim, "ports.h": header, **control}.items():
            (folder / name).write_text(text)
        run_logged([[
            tools.verilator, "--cc", "--exe", *_FLAGS,
            "-CFLAGS", _CFLAGS, "-CFLAGS", "-I..", "-LDFLAGS", _LDFLAGS,
            "--prefix", "Vtop", "--top-module", top,
            "--Mdir", "obj", "-o", "../model.so", *(["--hierarchical"] if once else []), *control,
            "design.v", "shim.cpp",
        ]], folder, tools.env, f"module {top}")
        add_runtime(folder / "obj", build_root, tools, [*_FLAGS, "-CFLAGS", _CFLAGS], _MAKE)
        run_logged([["make", "-j2", "-C", "obj", "-f", "Vtop_hier.mk" if once else "Vtop.mk", *_MAKE]],
                   folder, tools.env, f"module {top}")

    folder, reused = keyed_folder(build_root, f"native-{top}", {
        "verilog": verilog, "top": top, "shim": shim, "header": header, **control,
        "flags": [*_FLAGS, *_MAKE, _CFLAGS, _LDFLAGS]}, make)
    return NativeLibrary(folder / "model.so", top, tuple(ports), reused)


def _streams(ports: Sequence[Port]) -> dict[str, tuple[int, int, int, bool]]:
    number = {p.name: i for i, p in enumerate(ports)}
    found: dict[str, tuple[int, int, int, bool]] = {}
    for port in ports:
        stem, _, kind = port.name.rpartition("__")
        if stem and kind in ("valid", "ready") and stem not in found:
            is_input = (port.direction == "in") == (kind == "valid")
            found[stem] = (number.get(f"{stem}__valid", -1), number.get(f"{stem}__ready", -1),
                           number.get(f"{stem}__payload", -1), is_input)
    return found


def _port_names(verilog: str, top: str) -> list[str]:
    head = re.search(rf"\bmodule {re.escape(top)}\s*\(([^)]*)\)", verilog)
    if head is None:
        raise ValueError(f"the Verilog has no module {top}")
    return re.findall(r"\w+", head[1])


def _header(ports: tuple[Port, ...], names: Sequence[str]) -> str:
    """The generated part of the shim; Verilator spells a double underscore ``___05F`` in C++."""
    lines = ["inline void bind(Vtop* t, std::vector<Port>& p) {"]
    for port in ports:
        name = re.sub("__", "___05F", port.name)
        size, is_input = -(-port.width // 8), str(port.direction == "in").lower()
        lines.append(f"    p.push_back({{reinterpret_cast<uint8_t*>(&t->{name}), {size}, {is_input}}});")
    lines += ["}", "const std::vector<StreamPorts> STREAMS = {"]
    lines += [f"    {{{v}, {r}, {p}, {str(i).lower()}}},  // {name}"
              for name, (v, r, p, i) in _streams(ports).items()]
    lines.append("};")
    for function, signal in (("set_clock", "clk"), ("set_reset", "rst")):
        body = f"t->{signal} = value;" if signal in names else ""
        lines.append(f"inline void {function}(Vtop* t, int value) {{ {body} }}")
    return "\n".join(lines) + "\n"


class NativeSim:
    """One instance of a model.

    Parameters
    ----------
    unit:
        What to simulate: a unit, or a library that is compiled already.
    build_root:
        Folder of all builds; not needed for a compiled library.
    seed:
        Seed of the pauses and of uninitialised state.
    once:
        Blocks whose modules are compiled once each, see :func:`compile_native`.

    Notes
    -----
    Plain inputs start at 0. Cycles count from 0 at creation. Within a cycle, inputs are driven, the logic
    settles, transfers are sampled, and the clock rises; a transfer's stamp is the number of that cycle.
    """

    def __init__(self, unit: Unit | NativeLibrary, build_root: Path | None = None, *, seed: int = 1,
                 once: Sequence[str] = ()) -> None:
        if isinstance(unit, NativeLibrary):
            self.library = unit
        else:
            if build_root is None:
                raise ValueError("a folder for builds was wanted (build_root), none came")
            from gen.emit.emit import emit

            design = emit(unit)
            modules = [name for name, block in design.blocks.items() if block in once and name != design.top]
            self.library = compile_native(design.simulation, design.top, unit_ports(unit), build_root, modules)
        self._lib = _bind(self.library.path)
        self._sim = ctypes.c_void_p(self._lib.sim_new(seed & 0xFFFFFFFF))
        self._number = {p.name: i for i, p in enumerate(self.library.ports)}
        self._streams = self.library.streams
        self._index = {name: i for i, name in enumerate(self._streams)}

    def __del__(self) -> None:
        if getattr(self, "_sim", None):
            self._lib.sim_free(self._sim)

    @property
    def cycle(self) -> int:
        """Cycles run so far."""
        return self._lib.sim_cycle(self._sim)

    @property
    def streams(self) -> tuple[str, ...]:
        """Names of the streams."""
        return tuple(self._streams)

    def reset(self, cycles: int = 1) -> None:
        """Reset the model; queues, buffers and totals are emptied."""
        self._lib.sim_reset(self._sim, cycles)

    def rate(self, name: str, probability: float) -> None:
        """Offer (input) or accept (output) a beat with this probability each cycle; 1 from the start.

        Raises
        ------
        ValueError
            The probability is not from 0 to 1.
        """
        if not 0 <= probability <= 1:
            raise ValueError(f"a probability from 0 to 1 was wanted, not {probability}")
        threshold = max(round(probability * 256), 1 if probability else 0)
        self._lib.sim_rate(self._sim, self._stream(name), threshold)

    def push(self, name: str, payloads: np.ndarray | bytes) -> None:
        """Queue beats in front of an input stream.

        Parameters
        ----------
        name:
            The stream.
        payloads:
            uint8 (n, bytes), see :meth:`tb.common.packing.Codec.pack`, or that as bytes.

        Raises
        ------
        ValueError
            Not an input stream, another number of bytes, or bits beyond the payload.
        """
        index = self._stream(name, want_input=True)
        width = self._payload_width(name)
        rows = _rows(payloads, width, name)
        self._lib.sim_push(self._sim, index, rows, len(rows))

    def run(self, until: Mapping[str, int], max_cycles: int) -> int:
        """Run until each named stream has made so many transfers since reset.

        Returns
        -------
        int
            Cycles run.

        Raises
        ------
        NativeTimeout
            Not within ``max_cycles``; the message has every stream's count.
        RuleViolation
            An output stream dropped or changed a beat before it was taken.
        """
        targets = np.full(len(self._streams), -1, np.int64)
        for name, count in until.items():
            targets[self._stream(name)] = count
        before = self.cycle
        code = self._lib.sim_run(self._sim, targets, max_cycles)
        if code == 1:
            state = ", ".join(f"{n} {self.total(n)}" for n in self._streams)
            wanted = ", ".join(f"{n} {c}" for n, c in until.items())
            raise NativeTimeout(f"{self.library.top}: {wanted} transfers were wanted, after {max_cycles} "
                                f"cycles there are {state}")
        self._check(code)
        return self.cycle - before

    def step(self, cycles: int = 1) -> None:
        """Run a number of cycles, streams moving as usual."""
        self._check(self._lib.sim_steps(self._sim, cycles))

    def total(self, name: str) -> int:
        """Transfers of a stream since reset."""
        return self._lib.sim_total(self._sim, self._stream(name))

    def available(self, name: str) -> int:
        """Transfers of a stream that :meth:`take` or :meth:`accepted` has not returned yet."""
        return self._lib.sim_stamps(self._sim, self._stream(name))

    def take(self, name: str, count: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Beats of an output stream that were not taken yet.

        Returns
        -------
        tuple
            Payloads uint8 (n, bytes) and the cycle of each transfer, int64 (n,).

        Raises
        ------
        ValueError
            Fewer than ``count`` beats are there.
        """
        index = self._stream(name, want_input=False)
        there = self._lib.sim_stamps(self._sim, index)
        n = there if count is None else count
        if n > there:
            raise ValueError(f"{n} beats of {name} were wanted, {there} are there")
        data = np.zeros((n, -(-self._payload_width(name) // 8)), np.uint8)
        stamps = np.zeros(n, np.int64)
        self._lib.sim_take(self._sim, index, data, stamps, n)
        return data, stamps

    def accepted(self, name: str) -> np.ndarray:
        """Cycles at which an input stream accepted beats since the last call, int64 (n,)."""
        index = self._stream(name, want_input=True)
        stamps = np.zeros(self._lib.sim_stamps(self._sim, index), np.int64)
        self._lib.sim_take(self._sim, index, np.zeros((1, 1), np.uint8), stamps, len(stamps))
        return stamps

    def set(self, name: str, value: int) -> None:
        """Drive a plain input until it is set again."""
        port = self._port(name)
        if not 0 <= value < 1 << port.width:
            raise ValueError(f"{name} has {port.width} bits, {value} does not fit")
        row = np.frombuffer(value.to_bytes(-(-port.width // 8), "little"), np.uint8).reshape(1, -1)
        self._lib.sim_set(self._sim, self._number[name], np.ascontiguousarray(row))

    def get(self, name: str) -> int:
        """Value of any port now, unsigned."""
        row = np.zeros((1, -(-self._port(name).width // 8)), np.uint8)
        self._lib.sim_get(self._sim, self._number[name], row)
        return int.from_bytes(row.tobytes(), "little")

    def play(self, inputs: Mapping[str, np.ndarray], outputs: Sequence[str]) -> dict[str, np.ndarray]:
        """Drive plain inputs from one row a cycle, and sample outputs before each rising edge.

        Parameters
        ----------
        inputs:
            Port to uint8 (cycles, bytes).
        outputs:
            Ports to record.

        Returns
        -------
        dict[str, numpy.ndarray]
            Port to uint8 (cycles, bytes).
        """
        rows = {name: _rows(a, self._port(name).width, name) for name, a in inputs.items()}
        lengths = {len(a) for a in rows.values()}
        if len(lengths) != 1:
            raise ValueError(f"inputs of one length were wanted, lengths {sorted(lengths)} came")
        n = lengths.pop()
        out = {name: np.zeros((n, -(-self._port(name).width // 8)), np.uint8) for name in outputs}
        self._lib.sim_play(self._sim, n, *_columns(rows, self._number), *_columns(out, self._number))
        return out

    def _check(self, code: int) -> None:
        if code >= 2:
            raise RuleViolation(f"{self.streams[code - 2]}, cycle {self.cycle - 1}: valid fell or the "
                                "payload changed before a transfer (stream rule 2)")

    def _port(self, name: str) -> Port:
        if name not in self._number:
            raise ValueError(f"{self.library.top} has no port {name}; it has {', '.join(self._number)}")
        return self.library.ports[self._number[name]]

    def _payload_width(self, name: str) -> int:
        return self.library.ports[self._streams[name][2]].width

    def _stream(self, name: str, want_input: bool | None = None) -> int:
        if name not in self._index:
            raise ValueError(f"{self.library.top} has no stream {name}; "
                             f"it has {', '.join(self._index) or 'none'}")
        if want_input is not None and self._streams[name][3] != want_input:
            raise ValueError(f"{name} is an {'output' if want_input else 'input'} stream")
        return self._index[name]


def _rows(values: np.ndarray | bytes, width: int, name: str) -> np.ndarray:
    """Packed rows, checked: the simulator trusts that the bits above ``width`` are zero."""
    nbytes = -(-width // 8)
    array = np.frombuffer(values, np.uint8).reshape(-1, nbytes) if isinstance(values, bytes) else values
    if array.dtype != np.uint8 or array.ndim != 2 or array.shape[1] != nbytes:
        raise ValueError(f"{name}: uint8 (n, {nbytes}) was wanted, {array.dtype} {array.shape} came")
    if width % 8 and (array[:, -1] >> (width % 8)).any():
        raise ValueError(f"{name} has {width} bits, a payload has bits beyond")
    return np.ascontiguousarray(array)


def _columns(rows: Mapping[str, np.ndarray], number: Mapping[str, int]) -> tuple[Any, Any, Any]:
    ports = (ctypes.c_int * max(1, len(rows)))(*(number[name] for name in rows))
    starts = (ctypes.c_void_p * max(1, len(rows)))(*(a.ctypes.data for a in rows.values()))
    return len(rows), ports, starts


def _bind(path: Path) -> ctypes.CDLL:
    lib = ctypes.CDLL(str(path))
    sim, i32, i64 = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64
    u8 = np.ctypeslib.ndpointer(np.uint8, flags="C_CONTIGUOUS")
    s64 = np.ctypeslib.ndpointer(np.int64, flags="C_CONTIGUOUS")
    for name, result, arguments in (
            ("sim_new", sim, [ctypes.c_uint32]), ("sim_free", None, [sim]), ("sim_cycle", i64, [sim]),
            ("sim_total", i64, [sim, i32]), ("sim_stamps", i64, [sim, i32]),
            ("sim_rate", None, [sim, i32, i32]), ("sim_set", None, [sim, i32, u8]),
            ("sim_get", None, [sim, i32, u8]),
            ("sim_push", None, [sim, i32, u8, i64]), ("sim_take", None, [sim, i32, u8, s64, i64]),
            ("sim_reset", None, [sim, i32]), ("sim_run", i32, [sim, s64, i64]),
            ("sim_steps", i32, [sim, i64]), ("sim_play", None, [sim, i64, i32, sim, sim, i32, sim, sim])):
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    return lib
