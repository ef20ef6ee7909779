"""The SADDLE Manager decides who drafts, where a token goes and what is verified.

It decides one event at a time; the engines work meanwhile, and what they deliver waits in their streams::

    requests --> new request --.                                   .--> draft    a step: requests, then end
    drafted ---> token --------|   +-------------------------+     |
    verdicts --> verdict ------+-> | tables, one row a       | ----+--> verify   a pass: requests, tokens, end
                 migration ----|   | request; flags of all   |     |
                 pass, step ---'   +-------------------------+     '--> emitted  tokens of the texts
                                     |            |        |
     draft controller -->   Eager Pool a      Shared     memory of
     H, stop, route         micro-batch  -->   Pool      unverified tokens

The first of these that can go ahead does: migration, draft token, verdict, new request, pass, draft step.
docs/manager.md says what each of them does, when it can go ahead, how many cycles it takes, and why no request
starves.

Limits: settings must stay while requests are live; both engines must take the beats of a step or pass that begins.
Reference: SADDLE IV.
"""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from rtl.manager import manager_choice, manager_orders, manager_tokens
from rtl.manager.layouts import (
    Place,
    draft_beat,
    drafted,
    emitted,
    manager_counters,
    manager_settings,
    new_request,
    request_verdict,
    verify_beat,
)
from rtl.manager.manager_state import ManagerState, State
from rtl.manager.pools.token_lists import table
from rtl.manager.softmax.layouts import softmax_events
from rtl.unit import Unit
from sim_models.params.manager.draft_controller import TAU_ENTRIES
from sim_models.params.manager.manager import ManagerParams

__all__ = ["Manager"]


class Manager(Unit):
    """The Manager without its registers.

    Members
    -------
    requests: In(stream of new_request)
        New requests. One that wants no token (``stop`` not above ``position``) is taken and forgotten.
    drafted: In(stream of drafted)
        One token for each request of a step, in any order.
    verdicts: In(stream of request_verdict)
        One for each request of a pass, in any order, after the pass's end.
    draft: Out(stream of draft_beat)
        Draft steps: the requests of each, then its end.
    verify: Out(stream of verify_beat)
        Verification passes: the requests and draft tokens of each, then its end.
    emitted: Out(stream of emitted)
        Tokens of the texts.
    softmax: In(softmax_events)
        What the softmax unit does that the drafted tokens come from; only counted.
    settings: In(manager_settings)
        0 rows, 0 engines stand for 1.
    counters: Out(manager_counters)
        What happened since reset.
    dlm_fc: Out(Place)
        Where the draft's FC layers run in a step, from 2 cycles after its end was taken.
    tlm_attention: Out(Place)
        Where the target's attention runs in a pass, from 2 cycles after its end was taken.
    busy: Out(1)
        Something is being decided.
    """

    block = "manager"

    requests: Any
    drafted: Any
    verdicts: Any
    draft: Any
    verify: Any
    emitted: Any
    softmax: Any
    settings: Any
    counters: Any
    dlm_fc: Any
    tlm_attention: Any
    busy: Signal

    def __init__(self, params: ManagerParams | None = None) -> None:
        p = params or ManagerParams()
        self.p = p
        super().__init__(p, {
            "requests": In(stream.Signature(new_request(p))), "drafted": In(stream.Signature(drafted(p))),
            "verdicts": In(stream.Signature(request_verdict(p))), "draft": Out(stream.Signature(draft_beat(p))),
            "verify": Out(stream.Signature(verify_beat(p))), "emitted": Out(stream.Signature(emitted(p))),
            "softmax": In(softmax_events), "settings": In(manager_settings(p)), "counters": Out(manager_counters()),
            "dlm_fc": Out(Place), "tlm_attention": Out(Place), "busy": Out(1),
        })

    def body(self, platform: Any) -> Module:
        m = Module()
        s = ManagerState(self.p)
        m.submodules.pool, m.submodules.text = s.pool, s.text
        m.submodules.controller, m.submodules.scheduler = s.controller, s.scheduler
        for lane, unit in enumerate(s.eager):
            m.submodules[f"eager_{lane}"] = unit
        m.d.comb += [s.at[state].eq(s.state == state) for state in State]
        self._settings(m, s)
        self._rows(m, s)
        for part in (manager_choice.due, manager_choice.decide, manager_tokens.new, manager_tokens.token,
                     manager_tokens.verdict, manager_tokens.unlock, manager_tokens.migrate,
                     manager_orders.send_pass, manager_orders.send_step, manager_orders.place, manager_orders.count):
            part(m, self, s)
        return m

    def _settings(self, m: Module, s: ManagerState) -> None:
        """Settings as far as they make sense, and those of the controller."""
        given, controller = self.settings, s.controller
        longest = 1 << self.p.draft_width
        m.d.comb += [
            s.limit.eq(Mux(given.max_draft > longest, longest, given.max_draft)),
            s.capacity.eq(Mux(given.capacity == 0, 1, given.capacity)),
            s.engines.eq(Mux(given.engines == 0, 1, given.engines)), s.eager_mode.eq(given.shared & given.eager),
            controller.max_draft.eq(s.limit), controller.load.eq(s.alive_count),
            *(controller.taus[n].eq(given[f"tau_{n}"]) for n in range(TAU_ENTRIES)),
            *(getattr(controller, name).eq(given[name])
              for name in ("policy", "tabled", "tau", "stop_at_end", "end_token")),
        ]

    def _rows(self, m: Module, s: ManagerState) -> None:
        """The tables' row of the request at hand, and its draft."""
        p = self.p
        m.d.comb += [
            s.request.eq(Mux(s.at[State.SELECT], s.pool.selected.payload.entry.request, s.chosen)),
            s.flag.eq(1 << s.request), s.lane.eq(s.request[:p.lane_width]),
            s.controller.ask.eq(s.request), s.length.eq(s.controller.length), s.end.eq(s.row["base"] + s.length),
        ]
        for name, row in s.row.items():
            m.submodules[f"{name}_rows"] = memory = table(len(row), p.requests)
            write, read = memory.write_port(), memory.read_port(domain="comb")
            m.d.comb += [write.addr.eq(s.request), read.addr.eq(s.request), row.eq(read.data),
                         write.en.eq(s.write[name]), write.data.eq(s.new[name])]
