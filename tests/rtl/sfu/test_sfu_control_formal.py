"""The special function unit's control answers every command once, and takes what belongs to it and no more: proven.

Any row, operands, command and pause may come in any cycle. The lanes are not part of it: what they find comes at any
time behind the last word of the pass that looks for it. A control breaks the hardware.
"""

from typing import Any

from amaranth.hdl import Assert, Assume, Cat, Elaboratable, Module, Mux, Signal

from rtl.sfu import sfu_control
from rtl.sfu.sfu_control import SfuControl
from rtl.sfu.sfu_passes import SfuPass
from sim_models.params.arith.exp2 import Exp2Params
from sim_models.params.arith.float_adder import FloatAdderParams
from sim_models.params.arith.float_multiplier import FloatMultiplierParams
from sim_models.params.arith.reciprocal import ReciprocalParams
from sim_models.params.sfu.buffer_die_sfu import BufferDieSfuParams
from sim_models.spec.sfu import SfuError, SfuOp
from tests.changed import changed
from tests.conftest import Extent
from tests.formal_tools import Bounded, Proven, Violated, check


class Short(BufferDieSfuParams):
    """Pipelines of one stage: words are as many as ever, and on their way for a third of the cycles."""

    adder = FloatAdderParams(stages=1)
    multiplier = FloatMultiplierParams(stages=1)
    exp2 = Exp2Params(stages=1)
    reciprocal = ReciprocalParams(stages=1)


P = Short(lanes=1, max_length=2)


class Specification(Elaboratable):
    """What is owed between a command and its response."""

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        self.inputs = [
            dut.enable, dut.o_response.ready, dut.peak_done, dut.total_done, dut.zero, dut.nan,
            *(value for s in (dut.i_command, dut.i_row, dut.i_operands) for value in (s.valid, s.payload.as_value()))]

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.dut = dut = self.dut
        command, row, operands, response = dut.i_command, dut.i_row, dut.i_operands, dut.o_response
        accepts, takes, uses, answers = (wire.valid & wire.ready for wire in (command, row, operands, response))
        result, ends = dut.enable & dut.result, dut.enable & dut.result & dut.result_last

        # from the command to the end of each
        active, row_open, operands_open, due = Signal(), Signal(), Signal(), Signal()
        beats, results = Signal(3), Signal(3)
        new = command.payload
        normal = (new.op == SfuOp.RMSNORM) | (new.op == SfuOp.LAYERNORM)
        with m.If(accepts):
            m.d.sync += [active.eq(1), row_open.eq(1), beats.eq(0), results.eq(0),
                         operands_open.eq((new.op == SfuOp.ADD) | (normal & new.affine))]
        with m.If(takes):
            m.d.sync += beats.eq(Mux(beats == 7, 7, beats + 1))
            with m.If(row.payload.last):
                m.d.sync += row_open.eq(0)
        with m.If(uses & operands.payload.last):
            m.d.sync += operands_open.eq(0)
        with m.If(result):
            m.d.sync += results.eq(results + 1)
        with m.If(answers):
            m.d.sync += due.eq(0)
        with m.If(ends):
            m.d.sync += [active.eq(0), due.eq(1)]

        # what the lanes find they find behind the last word
        summed, peaked = Signal(), Signal()
        m.d.sync += [summed.eq(~dut.fresh & (summed | (dut.enable & dut.sum & dut.sum_last))),
                     peaked.eq(~dut.fresh & (peaked | (dut.enable & dut.store & dut.store_last)))]
        m.d.comb += [Assume(~dut.total_done | (summed & dut.enable)),
                     Assume(~dut.peak_done | (peaked & (dut.kind == SfuPass.SCALE)))]

        held, held_valid = Signal.like(response.payload.as_value()), Signal()
        m.d.sync += [held.eq(response.payload), held_valid.eq(response.valid & ~response.ready)]
        refused = response.payload.error != SfuError.OK
        m.d.comb += [
            Assert(~accepts | ~(active | due)), Assert(~takes | row_open), Assert(~uses | operands_open),
            Assert(~result | active), Assert(~ends | ~(row_open | operands_open)),
            Assert(response.valid == due), Assert(~held_valid | (response.payload.as_value() == held)),
            # as many results as beats, or at last an empty one
            Assert(~due | refused | (results == beats)), Assert(~due | ~refused | (response.payload.length == 0)),
            Assert(~result | ~dut.result_last | (beats != 0)), Assert(~due | (results != 0)),
            Assert(~Cat(result, dut.write_en).any() | active),
        ]
        return m


class Progress(Elaboratable):
    """Nothing hangs: if all that is asked for is there, a command has its response within ``LONGEST`` cycles."""

    LONGEST = 40

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        self.inputs = [dut.zero, dut.nan, *(s.payload.as_value() for s in (dut.i_command, dut.i_row, dut.i_operands))]

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.dut = dut = self.dut
        summed, peaked = Signal(), Signal()
        m.d.sync += [summed.eq(~dut.fresh & (summed | (dut.sum & dut.sum_last))),
                     peaked.eq(~dut.fresh & (peaked | (dut.store & dut.store_last)))]
        m.d.comb += [dut.enable.eq(1), dut.o_response.ready.eq(1), dut.total_done.eq(summed),
                     dut.peak_done.eq(peaked)]
        # rows and operands of every length up to one beat more than there may be
        for stream in (dut.i_command, dut.i_row, dut.i_operands):
            m.d.comb += stream.valid.eq(1)
        for stream in (dut.i_row, dut.i_operands):
            beats = Signal(range(P.words + 1))
            with m.If(stream.ready):
                m.d.sync += beats.eq(Mux(stream.payload.last, 0, beats + 1))
            m.d.comb += Assume((beats != P.words) | stream.payload.last)
        waits = Signal(range(self.LONGEST + 2))
        m.d.sync += waits.eq(Mux(dut.o_response.valid, 0, waits + (waits <= self.LONGEST)))
        m.d.comb += Assert(waits <= self.LONGEST)
        return m


def _prove(make: Any = SfuControl) -> Any:
    specification = Specification(make(P))
    return check(specification, specification.inputs)


def _look(make: Any = SfuControl, frames: int = 88) -> Any:
    """Two commands at least, one behind the other."""
    specification = Progress(make(P))
    return check(specification, specification.inputs, frames=frames)


def _changed(old: str, new: str) -> Any:
    return changed(sfu_control, old, new)["SfuControl"]


def test_every_command_is_answered_once() -> None:
    assert isinstance(_prove(), Proven)


def test_nothing_hangs(extent: Extent) -> None:
    assert isinstance(_look(frames=extent.count(88, 132)), Bounded)


def test_a_control_that_hangs_is_found() -> None:
    """After a fault it waits for operands, also where there are none."""
    assert isinstance(_look(_changed("m.If(s.row_done & s.operands_done)",
                                     "m.If(s.row_done & s.operands_done & s.joins)")), Violated)


def test_a_broken_control_is_found() -> None:
    """The last word of one operation is still on its way when the next one begins."""
    assert isinstance(_prove(_changed("m.d.sync += there[1:].eq(0)", "m.d.sync += there[1:].eq(there)")), Violated)
