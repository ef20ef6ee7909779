"""A stream unit that keeps the rules, and breaks one at a time when told to."""

import dataclasses
from typing import Any

from amaranth.hdl import Module, Signal, signed
from amaranth.lib import data, enum, stream
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from rtl.unit import Unit
from sim_models.params.base import Params, param

__all__ = ["BEAT", "Echo", "EchoParams", "Fault", "Mix"]

BEAT = data.StructLayout({"data": data.ArrayLayout(signed(8), 8), "half": 1, "last": 1})


class Fault(enum.Enum, shape=4):
    """What is wrong with the echo."""

    NONE = 0
    DROPS_VALID = 1
    CHANGES_PAYLOAD = 2
    VALID_FOLLOWS_READY = 3
    PAYLOAD_FOLLOWS_READY = 4
    WAITS_FOR_READY = 5
    VALID_IN_RESET = 6
    LOSES_LAST = 7
    REPEATS_LAST = 8
    WRONG_LANE = 9
    KEEPS_BEAT_OVER_RESET = 10


@dataclasses.dataclass(frozen=True, kw_only=True)
class EchoParams(Params):
    """Parameters of the echo."""

    add: int = param(0, "added to lane 0", low=0, high=100)


class Echo(Unit):
    """A one-deep register slice that passes beats on.

    Members
    -------
    fault: In(4)
        A :class:`Fault`.
    i_beat, o_beat: stream of BEAT
    o_count: Out(8)
        Beats accepted.
    stale: Out(32)
        Word ``fault`` of a memory that nobody writes.
    """

    block = "echo"

    def __init__(self, params: EchoParams | None = None) -> None:
        super().__init__(params or EchoParams(), {
            "fault": In(Fault), "o_count": Out(8), "stale": Out(32),
            "i_beat": In(stream.Signature(BEAT)), "o_beat": Out(stream.Signature(BEAT))})

    def body(self, platform: Any) -> Module:
        m = Module()
        i, o = self.i_beat, self.o_beat
        beat = Signal(BEAT)
        full = Signal()
        survivor = Signal(reset_less=True)
        m.d.comb += [i.ready.eq(~full | (o.valid & o.ready)), o.valid.eq(full), o.payload.eq(beat)]
        with m.If(i.valid & i.ready):
            m.d.sync += [beat.eq(i.payload), full.eq(1), survivor.eq(1), self.o_count.eq(self.o_count + 1)]
            m.d.sync += beat.data[0].eq(i.payload.data[0] + self.params.add)
        with m.Elif(o.valid & o.ready):
            m.d.sync += [full.eq(0), survivor.eq(0)]

        m.submodules.memory = memory = Memory(shape=32, depth=16, init=[])
        read = memory.read_port()
        m.d.comb += [read.addr.eq(self.fault), self.stale.eq(read.data)]
        # without a write port it would be a table of zeros
        write = memory.write_port()
        m.d.comb += [write.addr.eq(0), write.data.eq(0), write.en.eq(self.o_count == 255)]

        phase = Signal(2)
        m.d.sync += phase.eq(phase + 1)
        with m.Switch(self.fault):
            self._break_handshake(m, full, beat, phase, survivor)
            self._break_data(m, full, beat)
        return m

    def _break_handshake(self, m: Module, full: Signal, beat: Any, phase: Signal, survivor: Signal) -> None:
        o = self.o_beat
        with m.Case(Fault.DROPS_VALID):
            m.d.comb += o.valid.eq(full & (phase != 3))
        with m.Case(Fault.CHANGES_PAYLOAD):
            m.d.comb += o.payload.half.eq(phase[1])
        with m.Case(Fault.VALID_FOLLOWS_READY):
            m.d.comb += o.valid.eq(full & o.ready)
        with m.Case(Fault.PAYLOAD_FOLLOWS_READY):
            m.d.comb += o.payload.half.eq(beat.half ^ o.ready)
        with m.Case(Fault.WAITS_FOR_READY):
            seen = Signal()
            m.d.sync += seen.eq(full & (seen | o.ready) & ~(o.valid & o.ready))
            m.d.comb += o.valid.eq(full & seen)
        with m.Case(Fault.VALID_IN_RESET):
            waking = Signal(init=1)
            m.d.sync += waking.eq(0)
            m.d.comb += o.valid.eq(full | waking)
        with m.Case(Fault.KEEPS_BEAT_OVER_RESET):
            m.d.comb += o.valid.eq(survivor)

    def _break_data(self, m: Module, full: Signal, beat: Any) -> None:
        i, o = self.i_beat, self.o_beat
        with m.Case(Fault.LOSES_LAST), m.If(i.valid & i.ready & i.payload.last):
            m.d.sync += full.eq(0)
        with m.Case(Fault.REPEATS_LAST):
            again = Signal()
            m.d.comb += i.ready.eq(~full)
            with m.If(o.valid & o.ready & o.payload.last & ~again):
                m.d.sync += [again.eq(1), full.eq(1)]
        with m.Case(Fault.WRONG_LANE):
            m.d.comb += o.payload.data[5].eq(beat.data[5] ^ 4)


@dataclasses.dataclass(frozen=True, kw_only=True)
class MixParams(Params):
    """Parameters of the mixer."""

    registered: bool = param(True, "has a clock")


class Mix(Unit):
    """Plain ports wider than a machine word: ``both = a ^ b``, ``previous`` is the last cycle's ``a``."""

    block = "mix"

    def __init__(self, registered: bool = True) -> None:
        super().__init__(MixParams(registered=registered), {
            "a": In(100), "b": In(100), "both": Out(100), "previous": Out(100)})

    def body(self, platform: Any) -> Module:
        m = Module()
        m.d.comb += self.both.eq(self.a ^ self.b)
        if self.params.registered:
            m.d.sync += self.previous.eq(self.a)
        return m
