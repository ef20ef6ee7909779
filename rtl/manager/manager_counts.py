"""The performance counters: what is counted goes through registers first, so that counting is on no one's way.

::

    flags, work, busy --> register --> conditions --> register --> counters
    events --------------------------------------------^

Latency: 2 cycles from an event to its counter, 3 from a state. Throughput: each counter counts in every cycle.
"""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib.wiring import In, Out

from rtl.manager.events.layouts import manager_events
from rtl.manager.layouts import manager_counters
from rtl.manager.requests.layouts import ready_work
from rtl.manager.softmax.layouts import softmax_events
from rtl.unit import Unit
from sim_models.params.manager.manager import ManagerParams

__all__ = ["ManagerCounts"]


class ManagerCounts(Unit):
    """Counters.

    Members
    -------
    events: In(manager_events)
    softmax: In(softmax_events)
    alive, drafting, verifying: In(request_width + 1)
        Requests in each state.
    work: In(ready_work)
        What could begin; its first part is a cycle old.
    eager: In(1)
        Setting: tokens are drafted during verification.
    busy: In(1)
        Something is being decided.
    counters: Out(manager_counters)
    """

    block = "manager_counts"

    events: Any
    softmax: Any
    alive: Signal
    drafting: Signal
    verifying: Signal
    work: Any
    eager: Signal
    busy: Signal
    counters: Any

    def __init__(self, params: ManagerParams | None = None) -> None:
        p = params or ManagerParams()
        self.p = p
        super().__init__(p, {
            "events": In(manager_events), "softmax": In(softmax_events), "work": In(ready_work(p)), "eager": In(1),
            "busy": In(1), "counters": Out(manager_counters()),
            **{name: In(p.request_width + 1) for name in ("alive", "drafting", "verifying")},
        })

    def body(self, platform: Any) -> Module:
        m = Module()
        live, drafting, verifying, softmax, busy = (
            Signal(name=name) for name in ("live", "drafts", "verifies", "softmax_busy", "decides"))
        m.d.sync += [live.eq(self.alive != 0), drafting.eq(self.drafting != 0), verifying.eq(self.verifying != 0),
                     softmax.eq(self.softmax.busy), busy.eq(self.busy)]
        work = self.work
        stuck = ~drafting & work.wanting.any()
        conditions = {
            "cycles": 1, "drafting": drafting, "verifying": verifying, "both": drafting & verifying,
            "locked": stuck & ~self.eager & verifying,
            "eager_full": stuck & self.eager & ~(work.wanting & work.eager_room).any(),
            "pool_full": stuck & ~self.eager & ~verifying & ~work.room, "idle": ~drafting & ~verifying,
            "softmax": softmax, "deciding": busy | softmax,
            "exposed": ~verifying & (softmax | (busy & ~drafting)),
        }
        strobes = {name: live & condition for name, condition in conditions.items()}
        strobes |= {"masked": self.softmax.masked, **{str(name): self.events[name] for name, _ in manager_events}}
        for name, _ in manager_counters():
            strobe = Signal(name=f"counts_{name}")
            m.d.sync += strobe.eq(strobes[str(name)])
            with m.If(strobe):
                m.d.sync += self.counters[name].eq(self.counters[name] + 1)
        return m
