"""Streams that keep the rules, and one for each rule that is broken."""

import dataclasses
from typing import Any

from amaranth.hdl import Module, Signal, signed
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from rtl.unit import Unit
from sim_models.params.base import Params, param

__all__ = ["BEAT", "Echo", "EchoParams"]

BEAT = data.StructLayout({"data": data.ArrayLayout(signed(8), 8), "half": 1, "last": 1})

FAULTS = ("none", "drops_valid", "changes_payload", "follows_ready", "payload_follows", "waits_for_ready",
          "valid_in_reset", "loses_last", "repeats_last", "wrong_lane", "no_reset")


@dataclasses.dataclass(frozen=True, kw_only=True)
class EchoParams(Params):
    """Parameters of the echo."""

    fault: str = param("none", "the one rule that is broken", choices=FAULTS)
    add: int = param(0, "added to lane 0", low=0, high=100)


class Echo(Unit):
    """A one-deep register slice that passes beats on; ``fault`` names what is wrong with it."""

    block = "echo"

    def __init__(self, params: EchoParams) -> None:
        super().__init__(params, {"i_beat": In(stream.Signature(BEAT)), "o_beat": Out(stream.Signature(BEAT)),
                                  "o_count": Out(8)})

    def body(self, platform: Any) -> Module:
        m = Module()
        i, o, p = self.i_beat, self.o_beat, self.params
        beat = Signal(BEAT)
        full = Signal(reset_less=p.fault == "no_reset")
        blink = Signal(2)
        m.d.sync += blink.eq(blink + 1)
        m.d.comb += [i.ready.eq(~full | (o.valid & o.ready)), o.valid.eq(full), o.payload.eq(beat)]
        with m.If(i.valid & i.ready):
            m.d.sync += [beat.eq(i.payload), full.eq(1), self.o_count.eq(self.o_count + 1)]
            m.d.sync += beat.data[0].eq(i.payload.data[0] + p.add)
        with m.Elif(o.valid & o.ready):
            m.d.sync += full.eq(0)
        match p.fault:
            case "drops_valid":
                m.d.comb += o.valid.eq(full & (blink != 3))
            case "changes_payload":
                m.d.comb += o.payload.half.eq(blink[1])
            case "follows_ready":
                m.d.comb += o.valid.eq(full & o.ready)
            case "payload_follows":
                m.d.comb += o.payload.half.eq(beat.half & o.ready)
            case "waits_for_ready":
                seen = Signal()
                m.d.sync += seen.eq(o.ready | (seen & full & ~(o.valid & o.ready)))
                m.d.comb += o.valid.eq(full & seen)
            case "valid_in_reset":
                waking = Signal(init=1)
                m.d.sync += waking.eq(0)
                m.d.comb += o.valid.eq(full | waking)
            case "loses_last":
                with m.If(i.valid & i.ready & i.payload.last):
                    m.d.sync += full.eq(0)
            case "repeats_last":
                again = Signal()
                with m.If(o.valid & o.ready & o.payload.last):
                    m.d.sync += again.eq(~again)
                    with m.If(~again):
                        m.d.sync += full.eq(1)
                m.d.comb += i.ready.eq(~full | (o.valid & o.ready & ~o.payload.last))
            case "wrong_lane":
                m.d.comb += o.payload.data[5].eq(beat.data[5] ^ (beat.data[5] == 77))
        return m
