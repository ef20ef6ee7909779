"""The draft controller never raises H, and loses, doubles or misroutes no token: proven for all cycles.

H has fewer bits here than in hardware, where the multiplier is too large for a proof; the text is the same.
"""

import inspect
from typing import Any

import pytest
from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Elaboratable, Module, Signal

from rtl.manager import draft_controller
from rtl.manager import layouts as manager_layouts
from rtl.manager.pools import layouts as pool_layouts
from sim_models.params.manager.draft_controller import DraftControllerParams
from sim_models.spec.manager import DraftPolicy
from tests.formal_tools import Proven, Violated, check

#: bits of H: 1.0 is 32
WIDTH = 6


class Specification(Elaboratable):
    """A controller with any offers on its streams and any settings."""

    def __init__(self, unit: Any) -> None:
        self.unit, self.p = unit, unit.p
        u = unit
        self.inputs = [
            u.request, u.drafted.valid, u.drafted.payload, u.update.valid, u.update.payload, u.to_shared.ready,
            u.to_eager.ready, u.verifying, u.behind, u.shared_room, u.policy, u.tau, u.max_draft,
            u.stop_at_end, u.end_token]

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.unit = u = self.unit
        owner, token = AnyConst(self.p.request_width), u.drafted.payload
        taken = u.drafted.valid & u.drafted.ready
        restart = u.update.valid & u.update.ready & (u.request == owner) & u.update.payload.restart
        mine = u.decided & (u.decision.request == owner)
        one = 1 << (WIDTH - 1)
        request_before, asked = Signal(self.p.request_width), Signal()
        m.d.sync += [request_before.eq(u.request), asked.eq(u.request == owner)]
        m.d.comb += Assume(~(u.drafted.valid | u.update.valid) | (u.request == request_before))

        # H of a request: 1.0 after reset and restart, and never above what it was
        highest = Signal(WIDTH, init=one)
        with m.If(mine):
            m.d.comb += Assert(u.h <= highest)
            m.d.sync += highest.eq(u.h)
        with m.If(restart):
            m.d.sync += highest.eq(one)

        # A token comes out once, as it went in, in the second cycle behind and until it is taken
        inside, decided, shared = Signal(), Signal(), Signal()
        held, held_request = Signal.like(token), Signal(self.p.request_width)
        valid = u.to_shared.valid | u.to_eager.valid
        m.d.comb += [Assert(~(u.to_shared.valid & u.to_eager.valid)), Assert(valid == (inside & decided)),
                     Assert(~u.decided | valid)]
        with m.If(inside & ~decided):
            m.d.sync += [decided.eq(1), shared.eq(u.shared_room & ~u.verifying & ~u.behind)]
        with m.If((u.to_shared.valid & u.to_shared.ready) | (u.to_eager.valid & u.to_eager.ready)):
            m.d.sync += inside.eq(0)
        with m.If(taken):
            m.d.comb += [Assert(~inside), Assert(~(u.update.valid & u.update.ready))]
            m.d.sync += [inside.eq(1), decided.eq(0), held.eq(token), held_request.eq(u.request)]
        with m.If(valid):
            entry = u.to_shared.payload
            m.d.comb += [Assert(entry.request == held_request), Assert(entry.token == held.token),
                         Assert(entry.position == held.position), Assert(u.to_shared.valid == shared)]

        # The threshold is that of the cycle in which the token was taken, the policy that of the next
        tau, policy = Signal(WIDTH), Signal(2)
        m.d.sync += policy.eq(u.policy)
        with m.If(taken):
            m.d.sync += tau.eq(u.tau)
        with m.If(u.decided & (policy == DraftPolicy.CUMULATIVE.value)):
            m.d.comb += Assert(u.decision.threshold == (u.h < tau))

        # What stops a draft for good lasts until its restart
        stopped = Signal()
        reasons = u.decision.threshold | u.decision.end
        with m.If(mine):
            m.d.comb += Assert(u.decision.stop | ~(stopped | u.decision.length | reasons))
            m.d.sync += stopped.eq(stopped | reasons)
        with m.If(restart):
            m.d.sync += stopped.eq(0)
        m.d.comb += Assert(~(asked & stopped & u.may_draft))
        return m


def controller(*changes: tuple[str, str]) -> Specification:
    """A small controller with other code and fewer bits of H, everywhere."""
    text = inspect.getsource(draft_controller)
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    layouts: dict[str, Any] = {}
    for module, names in ((manager_layouts, ("draft_decision", "draft_token", "draft_update")),
                          (pool_layouts, ("pool_entry",))):
        narrow: dict[str, Any] = {"__name__": "narrow_layouts"}
        exec(compile(inspect.getsource(module), "layouts", "exec"), narrow)
        narrow["H_WIDTH"] = WIDTH
        layouts.update({name: narrow[name] for name in names})
    space: dict[str, Any] = {"__name__": "narrow_controller"}
    exec(compile(text, "draft_controller", "exec"), space)
    space.update(layouts, H_WIDTH=WIDTH, _ONE=1 << (WIDTH - 1))
    return Specification(space["DraftController"](
        DraftControllerParams(request_width=1, token_width=1, position_width=1, length_width=2)))


def test_h_never_rises_and_tokens_go_where_they_should() -> None:
    spec = controller()
    assert isinstance(check(spec, spec.inputs), Proven)


@pytest.mark.parametrize("change", [
    ("kept + up", "kept + 1"),
    ("p_clipped.eq(Mux(token.p[-1], _ONE, token.p))", "p_clipped.eq(token.p)"),
    ("m.If(initial | told.restart)", "m.If(told.restart)"),
    ("& ~self.behind", ""),
    ("idle & ~self.update.valid", "idle"),
    ("~written & ~self.to_shared.valid", "~written"),
    ("~initial & ~busy & ~written", "~initial & ~busy"),
    ("& ~(up & one_below)", ""),
    ("last.stopped | below | last.end", "below | last.end"),
    ("~old.stopped & ", ""),
    ("self.to_eager.valid & ~self.to_eager.ready", "0"),
], ids=["rounding", "above-one", "reset", "behind", "update", "overwritten", "changed", "threshold", "forgotten",
        "asked", "dropped"])
def test_broken_controllers_are_noticed(change: tuple[str, str]) -> None:
    spec = controller(change)
    assert isinstance(check(spec, spec.inputs), Violated)
