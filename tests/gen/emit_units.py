"""Small units that exercise the emitter, and nothing that a block would need."""

import dataclasses
from typing import Any

from amaranth.hdl import DomainRenamer, Module, Mux, Signal, signed
from amaranth.lib import data, enum, fifo, memory, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.tile.engine.compute_engine import ComputeEngine
from rtl.unit import Unit
from sim_models.params.base import Params, param

__all__ = ["Fours", "FoursParams", "Grid", "GridParams", "Lookup", "Mac", "MacParams", "Mode", "Named", "Plain",
           "TwoClocks"]


class Mode(enum.Enum, shape=2):
    HOLD = 0
    ADD = 1
    SUBTRACT = 2


@dataclasses.dataclass(frozen=True, kw_only=True)
class NoParams(Params):
    pass


@dataclasses.dataclass(frozen=True, kw_only=True)
class MacParams(Params):
    width: int = param(8, "bits of an operand", low=1, high=16, tag="w")


class Mac(Unit):
    """Multiply-accumulate; its inner signals have names that Verilog reserves."""

    block = "mac"

    def __init__(self, params: MacParams | None = None) -> None:
        p = params or MacParams()
        operand = signed(p.width)
        super().__init__(p, {"a": In(operand), "b": In(operand), "mode": In(Mode), "a_next": Out(operand),
                             "total": Out(signed(32))})

    def body(self, platform: Any) -> Module:
        m = Module()
        reg, case = Signal(signed(32), init=-5), Signal(signed(32))
        m.d.comb += case.eq(self.a * self.b)
        m.d.sync += self.a_next.eq(self.a)
        with m.Switch(self.mode):
            with m.Case(Mode.ADD):
                m.d.sync += reg.eq(reg + case)
            with m.Case(Mode.SUBTRACT):
                m.d.sync += reg.eq(reg - case)
            with m.Case(Mode.HOLD):
                pass
        m.d.comb += self.total.eq(reg)
        return m


@dataclasses.dataclass(frozen=True, kw_only=True)
class GridParams(Params):
    rows: int = param(8, "rows", low=1, high=64, tag="r")
    cols: int = param(8, "columns", low=1, high=64, tag="c")
    depth: int = param(16, "words of the queue", low=2, high=1024, tag="d")


class Grid(Unit):
    """Macs, a queue that is no Unit, a memory with an attribute, anonymous and equally named registers."""

    block = "grid"

    def __init__(self, params: GridParams | None = None) -> None:
        p = params or GridParams()
        self.p = p
        beat = data.StructLayout({"a": data.ArrayLayout(signed(8), p.rows), "mode": Mode})
        super().__init__(p, {"i": In(stream.Signature(beat)), "o": Out(stream.Signature(signed(32))),
                             "level": Out(8), "row": In(range(p.rows))})

    def body(self, platform: Any) -> Module:
        m = Module()
        p = self.p
        totals = []
        for r in range(p.rows):
            a = self.i.p.a[r]
            for c in range(p.cols):
                m.submodules[f"mac_{r}_{c}"] = mac = Mac()
                m.d.comb += [mac.a.eq(a), mac.b.eq(r - c), mac.mode.eq(Mux(self.i.valid, self.i.p.mode, 0))]
                a = mac.a_next
            totals.append(mac.total)
        m.submodules.queue = queue = fifo.SyncFIFOBuffered(width=32, depth=p.depth)
        m.submodules.seen = seen = memory.Memory(
            shape=signed(32), depth=p.depth, init=[], attrs={"ram_style": "distributed"})
        write, read = seen.write_port(), seen.read_port()
        twins = [Signal(8, name="twin") for _ in range(2)]
        for k, twin in enumerate(twins):
            m.d.sync += twin.eq(twin + k + 1)
        m.d.comb += [
            write.addr.eq(twins[0]), write.data.eq(totals[0]), write.en.eq(self.i.valid),
            read.addr.eq(twins[1]), read.en.eq(1),
            queue.w_data.eq(sum(totals, read.data)), queue.w_en.eq(self.i.valid), self.i.ready.eq(queue.w_rdy),
            self.o.payload.eq(queue.r_data), self.o.valid.eq(queue.r_rdy), queue.r_en.eq(self.o.ready),
            self.level.eq(queue.level + twins[0] - twins[1]),
        ]
        return m


@dataclasses.dataclass(frozen=True, kw_only=True)
class FoursParams(GridParams):
    pass


class Fours(Unit):
    """Four grids side by side."""

    block = "fours"

    def __init__(self, params: FoursParams | None = None) -> None:
        p = params or FoursParams()
        self.p = p
        super().__init__(p, {"payload": In(8 * p.rows + 2), "valid": In(1), "ready": Out(1),
                             "totals": Out(data.ArrayLayout(signed(32), 4))})

    def body(self, platform: Any) -> Module:
        m = Module()
        for k in range(4):
            m.submodules[f"grid_{k}"] = grid = Grid(GridParams(**dataclasses.asdict(self.p)))
            m.d.comb += [grid.i.p.as_value().eq(self.payload), grid.i.valid.eq(self.valid), grid.row.eq(k),
                         grid.o.ready.eq(1), self.totals[k].eq(grid.o.p)]
        m.d.comb += self.ready.eq(grid.i.ready)
        return m


class TwoClocks(Unit):
    """A unit in its own domain and one that is renamed to another; a state machine; an array of ports."""

    block = "two_clocks"

    def __init__(self) -> None:
        super().__init__(NoParams(), {"a": In(signed(8)).array(2), "total": Out(signed(32)), "state": Out(3),
                                      "go": In(3), "delayed": Out(8), "nothing": In(0)})

    def body(self, platform: Any) -> Module:
        m = Module()
        m.submodules.slow = slow = Mac()
        m.submodules.quick = quick = DomainRenamer("fast")(Mac())
        m.d.comb += [slow.a.eq(self.a[0]), slow.b.eq(-3), slow.mode.eq(1), quick.a.eq(self.a[1]),
                     quick.b.eq(slow.a_next), quick.mode.eq(2), self.total.eq(quick.total)]
        m.d.fast += self.delayed.eq(self.a[0] - self.a[1])
        with m.FSM():
            for k in range(5):
                with m.State(f"S{k}"):
                    m.d.comb += self.state.eq(k)
                    with m.Switch(self.go):
                        for target in range(5):
                            with m.Case(target):
                                m.next = f"S{target}"
        return m


class Lookup(Unit):
    """A memory that is only read, or one that is written too, with given contents."""

    block = "lookup"

    def __init__(self, *, contents: list[int], written: bool = False) -> None:
        self.contents, self.written = contents, written
        super().__init__(NoParams(), {"addr": In(range(len(contents))), "word": Out(8), "put": In(8)})

    def body(self, platform: Any) -> Module:
        m = Module()
        m.submodules.words = words = memory.Memory(shape=8, depth=len(self.contents), init=self.contents)
        read = words.read_port()
        m.d.comb += [read.addr.eq(self.addr), read.en.eq(1), self.word.eq(read.data)]
        if self.written:
            write = words.write_port()
            m.d.comb += [write.addr.eq(self.addr), write.data.eq(self.put), write.en.eq(1)]
        return m


class Named(Unit):
    """An inverter with ports and a module of the given names."""

    def __init__(self, a: str = "a", y: str = "y", *, block: str = "named", clocked: bool = False) -> None:
        self.names, self.block, self.clocked = (a, y), block, clocked
        super().__init__(NoParams(), {a: In(4), y: Out(4)})

    def body(self, platform: Any) -> Module:
        m = Module()
        a, y = (getattr(self, name) for name in self.names)
        if self.clocked:
            m.d.sync += y.eq(~a)
        else:
            m.d.comb += y.eq(~a)
        return m


class Plain(Unit):
    """Whatever ``build`` says, with a signature of its own."""

    block = "plain"

    def __init__(self, signature: dict[str, Any], build: Any) -> None:
        self._build = build
        super().__init__(NoParams(), signature)

    def body(self, platform: Any) -> Module:
        m = Module()
        self._build(self, m)
        return m


class FourEngines(Unit):
    """Four compute engines side by side."""

    block = "four_engines"

    def __init__(self) -> None:
        self.engines = [ComputeEngine() for _ in range(4)]
        super().__init__(NoParams(), {f"engine_{i}": Out(e.signature) for i, e in enumerate(self.engines)})

    def body(self, platform: Any) -> Module:
        m = Module()
        for i, engine in enumerate(self.engines):
            m.submodules[f"inner_{i}"] = engine
            connect(m, flipped(getattr(self, f"engine_{i}")), engine)
        return m
