"""Control of the special function unit: takes rows, issues their words pass by pass, and answers.

::

    IDLE -> LOAD -> WAIT -> (REPLAY -> WAIT)* -> IDLE, with a response
      |      |               |
      '------+---------------+-> SWALLOW -> SETTLE -> CLOSE -> WAIT -> IDLE

LOAD issues the words of a row as they come, REPLAY those of the row that is stored, WAIT waits for what the pass is
to find, or for its last result. A fault in the row or in the operands ends in SWALLOW, which takes what is left of
both; when all words have left the lanes, CLOSE issues an empty one, so that every command has a result that ends.
"""

from types import SimpleNamespace
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from rtl.parts.pipeline import wire
from rtl.sfu.layouts import sfu_beat, sfu_command, sfu_operands, sfu_response
from rtl.sfu.sfu_passes import SfuPass, pass_times
from rtl.sfu.sfu_total import TotalUse
from rtl.unit import Unit, in_reset
from sim_models.params.sfu.buffer_die_sfu import GELU_RATIO, ONE, BufferDieSfuParams
from sim_models.spec.sfu import SfuError, SfuOp

__all__ = ["SfuControl"]

_FIRST = {SfuOp.COPY: SfuPass.COPY, SfuOp.RELU: SfuPass.RELU, SfuOp.ADD: SfuPass.FINISH, SfuOp.SILU: SfuPass.SILU,
          SfuOp.GELU: SfuPass.GELU, SfuOp.SOFTMAX: SfuPass.SCALE, SfuOp.RMSNORM: SfuPass.SQUARES,
          SfuOp.LAYERNORM: SfuPass.CENTRE}
_SIGN = 1 << 31


class SfuControl(Unit):
    """States, counters, and where the words are.

    Members
    -------
    enable: In(1)
    i_command: In(stream of sfu_command), i_row: In(stream of sfu_beat), i_operands: In(stream of sfu_operands)
    o_response: Out(stream of sfu_response)
    kind: Out(SfuPass), factor, addend: Out(32)
        For the lanes.
    weighs, biases, replays, fp16: Out(1)
        Weights and biases are those of the operands; x is what is stored; results are FP16.
    read_en, write_en: Out(1), read_addr, write_addr: Out(range(words))
        Of the stored row.
    store, terms, sum, result: Out(1), store_last, terms_last, sum_last, result_last: Out(1)
        A word, the last one, is at that place of the lanes.
    tail: Out(lanes)
        Lanes of the last word that count.
    across, fresh: Out(1), purpose: Out(TotalUse), length: Out(range(max_length + 1)), epsilon: Out(32)
        For the sums.
    peak_done, total_done, zero, nan: In(1), negated, total: In(32)
        What was found.
    """

    block = "sfu_control"

    enable: Signal
    i_command: Any
    i_row: Any
    i_operands: Any
    o_response: Any
    kind: Any
    factor: Signal
    addend: Signal
    weighs: Signal
    biases: Signal
    replays: Signal
    fp16: Signal
    read_en: Signal
    write_en: Signal
    read_addr: Signal
    write_addr: Signal
    store: Signal
    terms: Signal
    sum: Signal
    result: Signal
    store_last: Signal
    terms_last: Signal
    sum_last: Signal
    result_last: Signal
    tail: Signal
    across: Signal
    fresh: Signal
    purpose: Any
    length: Signal
    epsilon: Signal
    peak_done: Signal
    total_done: Signal
    zero: Signal
    nan: Signal
    negated: Signal
    total: Signal

    def __init__(self, params: BufferDieSfuParams | None = None) -> None:
        p = params or BufferDieSfuParams()
        self.p = p
        places = [place + end for place in ("store", "terms", "sum", "result") for end in ("", "_last")]
        flags = ["weighs", "biases", "replays", "fp16", "read_en", "write_en", *places, "across", "fresh"]
        super().__init__(p, {
            "enable": In(1),
            "i_command": In(stream.Signature(sfu_command)), "i_row": In(stream.Signature(sfu_beat(p))),
            "i_operands": In(stream.Signature(sfu_operands(p))), "o_response": Out(stream.Signature(sfu_response(p))),
            "kind": Out(SfuPass), "factor": Out(32), "addend": Out(32), **{name: Out(1) for name in flags},
            "read_addr": Out(range(p.words)), "write_addr": Out(range(p.words)), "tail": Out(p.lanes),
            "purpose": Out(TotalUse), "length": Out(range(p.max_length + 1)), "epsilon": Out(32),
            **{name: In(1) for name in ("peak_done", "total_done", "zero", "nan")},
            "negated": In(32), "total": In(32),
        })

    def _in(self, *kinds: SfuPass) -> Any:
        return Cat(self.kind == kind for kind in kinds).any()

    def body(self, platform: Any) -> Module:
        m = Module()
        p = self.p
        s = SimpleNamespace(
            command=Signal(sfu_command),
            joins=Signal(),                             # operands come with the row, not with its last pass
            word=Signal(range(p.words + 1)), final=Signal(range(p.words)),
            error=Signal(SfuError), zero=Signal(), nan=Signal(),
            row_done=Signal(), operands_done=Signal(),  # after a fault: nothing is left of it
            issue=Signal(), issue_last=Signal(), replay=Signal(), done=Signal(), empty=Signal(), open=~in_reset())
        m.d.comb += [
            self.fp16.eq(s.command.fp16), self.epsilon.eq(s.command.scalar),
            self.across.eq(self._in(SfuPass.EXP, SfuPass.SQUARES, SfuPass.CENTRE, SfuPass.DEVIATE)),
            self.purpose.eq(Mux(self._in(SfuPass.EXP), TotalUse.DIVIDE,
                            Mux(self._in(SfuPass.CENTRE), TotalUse.MEAN, TotalUse.ROOT))),
        ]
        self._places(m, s)
        with m.If(self.o_response.ready):
            m.d.sync += self.o_response.valid.eq(0)
        with m.If(self.enable & self.result & self.nan):
            m.d.sync += s.nan.eq(1)
        with m.FSM():
            with m.State("IDLE"):
                self._idle(m, s)
            with m.State("LOAD"):
                self._load(m, s)
            with m.State("REPLAY"):
                self._replay(m, s)
            with m.State("WAIT"):
                self._wait(m, s)
            with m.State("SWALLOW"):
                self._swallow(m, s)
            with m.State("SETTLE"), m.If(s.empty):
                m.d.sync += [self.kind.eq(SfuPass.COPY), self.tail.eq(0), self.length.eq(0),
                             s.zero.eq(0), s.nan.eq(0)]
                m.next = "CLOSE"
            with m.State("CLOSE"):
                m.d.comb += [s.issue.eq(self.enable), s.issue_last.eq(1)]
                with m.If(self.enable):
                    m.next = "WAIT"
        return m

    def _places(self, m: Module, s: SimpleNamespace) -> None:
        """Where words are in the lanes, by the time since they were issued."""
        p = self.p
        times = pass_times(p)
        levels = 1 + p.levels * p.adder.stages
        depth = max(max(each.result or 0, each.store or 0, (each.terms or 0) + levels) for each in times.values())
        there, lasts = Signal(depth + 1), Signal(depth + 1)
        m.d.comb += [there[0].eq(s.issue), lasts[0].eq(s.issue_last), s.empty.eq(~there[1:].any())]
        with m.If(s.done):
            m.d.sync += there[1:].eq(0)
        with m.Elif(self.enable):
            m.d.sync += [there[1:].eq(there), lasts[1:].eq(lasts)]

        def at(place: str, later: int = 0) -> tuple[Any, Any]:
            found = [(kind, getattr(each, place) + later) for kind, each in times.items()
                     if getattr(each, place) is not None]
            return (Cat(there[t] & (self.kind == kind) for kind, t in found).any(),
                    Cat(lasts[t] & (self.kind == kind) for kind, t in found).any())
        for name, (valid, last) in {"store": at("store"), "terms": at("terms"), "sum": at("terms", levels),
                                    "result": at("result")}.items():
            m.d.comb += [getattr(self, name).eq(valid), getattr(self, f"{name}_last").eq(last)]
        fetch, _ = at("fetch")
        fetched = Signal(range(p.words))
        m.d.comb += [
            self.write_en.eq(self.enable & self.store), self.read_en.eq(self.enable & (s.replay | fetch)),
            self.read_addr.eq(Mux(self.replays, s.word, fetched)),
        ]
        with m.If(self.fresh):
            m.d.sync += [self.write_addr.eq(0), fetched.eq(0)]
        with m.Elif(self.enable):
            m.d.sync += [self.write_addr.eq(self.write_addr + self.store), fetched.eq(fetched + fetch)]

    def _refuse(self, m: Module, s: SimpleNamespace, code: SfuError, row_ends: Any, operands_end: Any) -> None:
        m.d.sync += [s.error.eq(code), s.row_done.eq(row_ends), s.operands_done.eq(operands_end)]
        m.next = "SWALLOW"

    def _idle(self, m: Module, s: SimpleNamespace) -> None:
        """A command, and the first pass of its operation."""
        new, ready = self.i_command.payload, self.i_command.ready
        normal = (new.op == SfuOp.RMSNORM) | (new.op == SfuOp.LAYERNORM)
        m.d.comb += [ready.eq(~self.o_response.valid & s.open), self.fresh.eq(1)]
        with m.If(self.i_command.valid & ready):
            m.d.sync += [
                s.command.eq(new), s.joins.eq(new.op == SfuOp.ADD), self.weighs.eq(normal & new.affine),
                self.biases.eq((new.op == SfuOp.ADD) | ((new.op == SfuOp.LAYERNORM) & new.affine)),
                s.word.eq(0), s.error.eq(SfuError.OK), s.zero.eq(0), s.nan.eq(0), self.replays.eq(0),
                self.factor.eq(Mux(new.op == SfuOp.ADD, ONE, new.scalar)),
                self.addend.eq(Mux(new.op == SfuOp.GELU, GELU_RATIO, 0)),
            ]
            for op, kind in _FIRST.items():
                with m.If(new.op == op):
                    m.d.sync += self.kind.eq(kind)
            m.next = "LOAD"
            with m.If(~Cat(new.op == op for op in _FIRST).any()):
                self._refuse(m, s, SfuError.OP, 0, 1)

    def _load(self, m: Module, s: SimpleNamespace) -> None:
        """Words as they come."""
        row, operands, beat = self.i_row, self.i_operands, self.i_row.payload
        m.d.comb += [
            row.ready.eq(self.enable & (~s.joins | operands.valid) & s.open),
            operands.ready.eq(self.enable & s.joins & row.valid & s.open),
        ]
        count = wire(m, sum((beat.keep[k] for k in range(1, self.p.lanes)), beat.keep[0]), "count")
        holes = wire(m, beat.keep & (beat.keep + 1), "holes").any()
        bad_keep = Mux(beat.last, holes | (~beat.keep[0] & (s.word != 0)), ~beat.keep.all())
        operands_end = Mux(s.joins, operands.payload.last, ~self.weighs)
        with m.If(row.valid & row.ready):
            with m.If(s.word == self.p.words):
                self._refuse(m, s, SfuError.LENGTH, beat.last, operands_end)
            with m.Elif(bad_keep):
                self._refuse(m, s, SfuError.KEEP, beat.last, operands_end)
            with m.Elif(s.joins & (operands.payload.last != beat.last)):
                self._refuse(m, s, SfuError.OPERANDS, beat.last, operands_end)
            with m.Else():
                m.d.comb += [s.issue.eq(1), s.issue_last.eq(beat.last)]
                m.d.sync += [s.word.eq(s.word + 1), s.final.eq(s.word), self.tail.eq(beat.keep),
                             self.length.eq(s.word * self.p.lanes + count)]
                # relative to the first number: of a row that is constant nothing is left, however large it is
                with m.If((s.word == 0) & self._in(SfuPass.CENTRE)):
                    m.d.sync += self.addend.eq(beat.data[0] ^ _SIGN)
                with m.If(beat.last):
                    m.next = "WAIT"

    def _replay(self, m: Module, s: SimpleNamespace) -> None:
        """Words that are stored, the last time with their operands."""
        operands = self.i_operands
        takes = wire(m, self.weighs & self._in(SfuPass.FINISH), "takes")
        last = wire(m, s.word == s.final, "last_word")
        m.d.comb += operands.ready.eq(self.enable & takes & s.open)
        with m.If(self.enable & (~takes | operands.valid)):
            with m.If(takes & (operands.payload.last != last)):
                self._refuse(m, s, SfuError.OPERANDS, 1, operands.payload.last)
            with m.Else():
                m.d.comb += [s.issue.eq(1), s.issue_last.eq(last), s.replay.eq(1)]
                m.d.sync += s.word.eq(s.word + 1)
                with m.If(last):
                    m.next = "WAIT"

    def _wait(self, m: Module, s: SimpleNamespace) -> None:
        """What the pass found, or its last result."""
        found = wire(m, Mux(self._in(SfuPass.SCALE), self.peak_done, self.total_done), "found")
        with m.If(found):
            m.d.comb += [s.done.eq(1), self.fresh.eq(1)]
            m.d.sync += [s.word.eq(0), self.replays.eq(1), self.factor.eq(self.total),
                         self.addend.eq(Mux(self._in(SfuPass.SCALE), self.negated, self.total ^ _SIGN)),
                         s.zero.eq(self.zero | (self.length == 0)), self.kind.eq(SfuPass.FINISH)]
            with m.If(self._in(SfuPass.SCALE)):
                m.d.sync += self.kind.eq(SfuPass.EXP)
            with m.If(self._in(SfuPass.CENTRE)):
                m.d.sync += self.kind.eq(SfuPass.DEVIATE)
            m.next = "REPLAY"
        with m.If(self.enable & self.result & self.result_last):
            response = self.o_response.payload
            m.d.comb += s.done.eq(1)
            m.d.sync += [
                self.o_response.valid.eq(1), response.error.eq(s.error), response.length.eq(self.length),
                response.zero.eq(s.zero), response.nan.eq(s.nan | self.nan),
            ]
            m.next = "IDLE"

    def _swallow(self, m: Module, s: SimpleNamespace) -> None:
        """What is left of a row and its operands after a fault."""
        for source, done in ((self.i_row, s.row_done), (self.i_operands, s.operands_done)):
            m.d.comb += source.ready.eq(~done & s.open)
            with m.If(source.valid & source.ready & source.payload.last):
                m.d.sync += done.eq(1)
        with m.If(s.row_done & s.operands_done):
            m.next = "SETTLE"
