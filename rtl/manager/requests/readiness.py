"""Which passes and draft steps may begin, two cycles behind what they depend on.

::

    flags, counts, pools --> any? room? --> register --> may it begin? --> register --> work

A pass may begin if none is under way: with ``shared`` when nobody drafts or could, when rows for all requests and
pending tokens fill the ``capacity``, or, with ``eager``, when ``start`` tokens are pending; without ``shared`` where
a micro-batch rests. A draft step may begin for a micro-batch that is not at work and has requests and room, while
engines are free; without ``eager`` not during verification, nor when a pass would be full.

Latency: 2 cycles. Throughput: an answer a cycle.
"""

from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from rtl.manager.layouts import manager_settings
from rtl.manager.requests.layouts import pool_state, ready_work, request_flags
from rtl.unit import Unit
from sim_models.params.manager.manager import ManagerParams

__all__ = ["Readiness"]


class Readiness(Unit):
    """What may begin.

    Members
    -------
    settings: In(manager_settings)
        ``eager`` alone where it counts, no 0 for what is at least 1.
    flags: In(request_flags), alive, drafting, verifying: In(request_width + 1)
        States of requests, and how many there are.
    pools: In(pool_state)
    work: Out(ready_work)
    """

    block = "readiness"

    settings: Any
    flags: Any
    alive: Signal
    drafting: Signal
    verifying: Signal
    pools: Any
    work: Any

    def __init__(self, params: ManagerParams | None = None) -> None:
        p = params or ManagerParams()
        self.p = p
        super().__init__(p, {
            "settings": In(manager_settings(p)), "flags": In(request_flags(p)), "pools": In(pool_state(p)),
            "work": Out(ready_work(p)),
            **{name: In(p.request_width + 1) for name in ("alive", "drafting", "verifying")},
        })

    def body(self, platform: Any) -> Module:
        m = Module()
        p, s, work, pools = self.p, self.settings, self.work, self.pools
        lanes = range(p.lanes)

        def by_lane(name: str, flags: Any) -> Signal:
            """Whether a flag is set in a micro-batch."""
            out = Signal(p.lanes, name=name)
            m.d.sync += [out[k].eq(flags[k::p.lanes].any()) for k in lanes]
            return out

        # First cycle; of a complete request no token is waited for
        at_work, alive = by_lane("at_work", self.flags.drafting), by_lane("lives", self.flags.alive)
        awaited = by_lane("awaited", self.flags.drafting & self.flags.alive)
        judged = by_lane("judged", self.flags.verifying)
        fills, early, passing, live = (Signal(name=name) for name in ("fills", "early", "passing", "live"))
        promised = pools.used + self.drafting
        wants = self.flags.wants & ~self.flags.drafting
        m.d.sync += [
            *(work.wanting[k].eq(wants[k::p.lanes].any()) for k in lanes),
            work.room.eq(promised < p.entries), work.places.eq(p.entries - promised),
            *(work.eager_room[k].eq(pools.eager[k] != p.eager_entries) for k in lanes),
            *(work.eager_places[k].eq(p.eager_entries - pools.eager[k]) for k in lanes),
            fills.eq(s.shared & (self.alive + pools.used >= s.capacity)), early.eq(pools.used >= s.start),
            passing.eq(self.verifying != 0), live.eq(self.alive != 0),
        ]

        # Second cycle
        could = Signal(p.lanes)
        m.d.comb += could.eq(work.wanting & Mux(s.eager, work.eager_room, work.room.replicate(p.lanes)))
        free = sum((at_work[k] for k in lanes), Const(0, 1)) < s.engines
        held = Mux(s.eager, 0, Mux(s.shared, (fills | passing).replicate(p.lanes), judged))
        quiet = ~awaited.any()
        due = (quiet & ~could.any()) | (fills & (s.eager | quiet)) | (s.eager & early)
        rests = alive & ~awaited & ~could
        m.d.sync += [
            work.steps.eq(could & ~at_work & ~held & free.replicate(p.lanes)), work.rests.eq(rests),
            work.passes.eq(~passing & live & Mux(s.shared, due, rests.any())),
        ]
        return m
