"""What the Manager must do, whatever tokens, verdicts and settings come, legal or not.

The specification counts for itself who is alive, at work and under verification, from the streams alone.
"""

import importlib
import inspect
from typing import Any

from amaranth.hdl import Array, Assert, Assume, Cat, Elaboratable, Module, Signal, Value

from rtl.manager.manager import Manager, Parts
from sim_models.params.manager.manager import ManagerParams
from sim_models.spec.manager import VerifyKind

__all__ = ["ManagerSpecification", "changed_manager"]


def changed_manager(p: ManagerParams, module: str = "", *changes: tuple[str, str]) -> tuple[Manager, Parts]:
    """A Manager whose parts can be seen, one of them with other code: that of a module in ``rtl/manager``."""
    parts = Parts(p)
    if changes:
        source = importlib.import_module(f"rtl.manager.{module}")
        text = inspect.getsource(source)
        for old, new in changes:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        space: dict[str, Any] = {"__name__": source.__name__}
        exec(compile(text, module, "exec"), space)
        name = source.__all__[0]
        member = next(k for k, part in vars(parts).items() if type(part).__name__ == name)
        vars(parts).pop(member)._MustUse__used = True
        setattr(parts, member, space[name](p))

    class Seen(Manager):
        def parts(self) -> Parts:
            return parts

    return Seen(p), parts


class ManagerSpecification(Elaboratable):
    """Two engines, one client, and what they must see; a prompt one always has a request and takes every beat."""

    def __init__(self, unit: Any, parts: Parts, settings: int, *, prompt: bool = False) -> None:
        self.unit, self.parts, self.p, self.settings, self.prompt = unit, parts, unit.p, settings, prompt
        u = unit
        self.inputs = [u.requests.valid, u.requests.payload, u.drafted.valid, u.drafted.payload, u.verdicts.valid,
                       u.verdicts.payload, u.draft.ready, u.verify.ready, u.emitted.ready, u.softmax]

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.unit = self.unit
        n, p = self.p.requests, self.p
        self.alive, self.drafting, self.verifying = Signal(n), Signal(n), Signal(n)
        #: the verdict that is offered is one that was asked for
        self.legal = Signal()
        #: where the next token of each text belongs
        self.following = Array(Signal(p.position_width, name=f"following_{k}") for k in range(n))
        #: where each text ends
        self.stops = Array(Signal(p.position_width, name=f"stop_{k}") for k in range(n))
        m.d.comb += Value.cast(self.unit.settings).eq(self.settings)
        if self.prompt:
            u = self.unit
            m.d.comb += Assume(u.requests.valid & u.draft.ready & u.verify.ready & u.emitted.ready)
        self._streams(m)
        self._draft_engine(m)
        self._verify_engine(m)
        self._texts(m)
        self._flags(m)
        return m

    def _streams(self, m: Module) -> None:
        """What is offered stays until it is taken, on both sides."""
        u = self.unit
        for stream, rule in [(s, Assume) for s in (u.requests, u.drafted, u.verdicts)] + [
                (s, Assert) for s in (u.draft, u.verify, u.emitted)]:
            payload = Value.cast(stream.payload)
            offered, before = Signal(), Signal(len(payload))
            m.d.sync += [offered.eq(stream.valid & ~stream.ready), before.eq(payload)]
            m.d.comb += rule(~offered | (stream.valid & (payload == before)))

    def _draft_engine(self, m: Module) -> None:
        """A token for each request of a step, when the step is known; no request is in two steps.

        The last token of a text is not drafted: its row could not emit another one.
        """
        u, n = self.unit, self.p.requests
        listed, owed, held = Signal(n), Signal(n), Signal(n)
        beat, given = u.draft.payload, u.drafted.payload
        m.d.comb += self.drafting.eq(listed | owed | held)
        # a token of a request that is in no step changes nothing
        taken = u.draft.valid & u.draft.ready
        came = u.drafted.valid & u.drafted.ready & owed.bit_select(given.request, 1)
        flag, gone = Signal(n), Signal(n)
        m.d.comb += [flag.eq((taken & ~beat.end) << beat.request), gone.eq(came << given.request)]
        with m.If(u.draft.valid):
            with m.If(beat.end):
                m.d.comb += Assert(listed.any())
            with m.Else():
                m.d.comb += [Assert(~self.drafting.bit_select(beat.request, 1)),
                             Assert(self.alive.bit_select(beat.request, 1)),
                             Assert(beat.position + 1 < self.stops[beat.request])]
        # a token that comes in time is at work until its pool has it
        with m.If(came):
            m.d.sync += held.eq(gone & ~self.parts.states.flags.stale)
        with m.Elif(self.parts.token.done):
            m.d.sync += held.eq(0)
        m.d.sync += owed.eq(owed & ~gone)
        with m.If(taken & beat.end):
            m.d.sync += [owed.eq((owed & ~gone) | listed), listed.eq(0)]
        with m.Elif(taken):
            m.d.sync += listed.eq(listed | flag)

    def _verify_engine(self, m: Module) -> None:
        """A verdict is legal for each request of a pass, when the pass is known; of no more tokens than were in it.

        One that is not is taken without a trace.
        """
        u, p, n = self.unit, self.p, self.p.requests
        listed, owed = Signal(n), Signal(n)
        counts = Array(Signal(p.length_width, name=f"rows_{k}") for k in range(n))
        beat, said = u.verify.payload, u.verdicts.payload
        m.d.comb += [self.verifying.eq(listed | owed), self.legal.eq(
            owed.bit_select(said.request, 1) & (said.accepted <= counts[said.request]))]
        taken, closed = u.verify.valid & u.verify.ready, u.verdicts.valid & u.verdicts.ready & self.legal
        gone = Signal(n)
        m.d.comb += gone.eq(closed << said.request)
        with m.If(u.verify.valid):
            with m.If(beat.kind == VerifyKind.REQUEST):
                m.d.comb += [Assert(~listed.bit_select(beat.request, 1)), Assert(owed == 0),
                             Assert(self.alive.bit_select(beat.request, 1)),
                             Assert(beat.position == self.following[beat.request])]
            with m.Elif(beat.kind == VerifyKind.TOKEN):
                m.d.comb += Assert(listed.bit_select(beat.request, 1))
            with m.Else():
                m.d.comb += Assert((beat.kind == VerifyKind.END) & listed.any())
        m.d.sync += owed.eq(owed & ~gone)
        with m.If(taken):
            with m.If(beat.kind == VerifyKind.REQUEST):
                m.d.sync += [listed.eq(listed | (1 << beat.request)), counts[beat.request].eq(0)]
            with m.Elif(beat.kind == VerifyKind.TOKEN):
                m.d.sync += counts[beat.request].eq(counts[beat.request] + 1)
            with m.Else():
                m.d.sync += [owed.eq(listed), listed.eq(0)]

    def _texts(self, m: Module) -> None:
        """Tokens come for live requests alone, at one position after the other, and the last one ends the request."""
        u, p, n = self.unit, self.p, self.p.requests
        following, stops = self.following, self.stops
        new, out, said = u.requests.payload, u.emitted.payload, u.verdicts.payload
        ending, ended = Signal(n), Signal(n)
        unwanted = u.requests.valid & ~(new.position < new.stop)
        with m.If(u.emitted.valid & out.empty):
            m.d.comb += [Assert(unwanted & (out.request == new.request) & (out.position == new.position)),
                         Assert(out.last & (out.token == 0)), Assert(u.requests.ready == u.emitted.ready)]
        with m.If(u.requests.ready & unwanted):
            m.d.comb += Assert(u.emitted.valid & out.empty)
        with m.If(u.emitted.valid & ~out.empty):
            m.d.comb += [Assert(self.legal), Assert(self.alive.bit_select(out.request, 1)),
                         Assert(self.verifying.bit_select(out.request, 1)),
                         Assert(out.position == following[out.request]), Assert(out.position < stops[out.request]),
                         Assert(~ended.bit_select(out.request, 1)),
                         Assert(u.verdicts.valid & (said.request == out.request))]
            with m.If((out.position + 1)[:p.position_width] == stops[out.request]):
                m.d.comb += Assert(out.last)
        with m.If(u.emitted.valid & u.emitted.ready & ~out.empty):
            m.d.comb += ending.eq(out.last << out.request)
            m.d.sync += following[out.request].eq(following[out.request] + 1)
        m.d.sync += ended.eq(ended | ending)
        with m.If(u.requests.valid & u.requests.ready & (new.stop > new.position)):
            m.d.comb += Assert(~self.alive.bit_select(new.request, 1))
            m.d.sync += [self.alive.eq(self.alive | (1 << new.request)), following[new.request].eq(new.position),
                         stops[new.request].eq(new.stop)]
        with m.If(u.verdicts.valid & u.verdicts.ready & self.legal):
            flag = 1 << said.request
            m.d.sync += ended.eq(ended & ~flag)
            with m.If(ended.bit_select(said.request, 1)):
                m.d.sync += self.alive.eq(self.alive & ~flag)

    def _flags(self, m: Module) -> None:
        """The Manager's flags are what the streams say, and its counts are those of the flags."""
        unit = self.parts.states
        for name, seen in (("alive", self.alive), ("drafting", self.drafting), ("verifying", self.verifying)):
            m.d.comb += [Assert(unit.flags[name] == seen), Assert(getattr(unit, name) == sum(Cat(seen)))]
        m.d.comb += Assert((unit.flags.stale & ~unit.flags.drafting) == 0)
