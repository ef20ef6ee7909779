"""The SADDLE Manager: who drafts, where a token goes, what is verified, and what a verdict leaves behind.

It decides one event at a time; the engines work meanwhile, and what they deliver waits in their streams::

    requests --> new request --.                                   .--> draft    a step: requests, then end
    drafted ---> token --------|   +-------------------------+     |
    verdicts --> verdict ------+-> | tables, one row a       | ----+--> verify   a pass: requests, tokens, end
                 migration ----|   | request; flags of all   |     |
                 pass, step ---'   +-------------------------+     '--> emitted  tokens of the texts
                                     |            |        |
     draft controller -->   Eager Pool a      Shared     memory of
     H, stop, route         micro-batch  -->   Pool      unverified tokens

The first of this list that can go ahead does:

1. Migration: the first eager token of the lowest request that is not under verification moves to the Shared Pool
   if that has room.
2. A draft token: the draft controller multiplies H by its probability, decides whether it is the draft's last, by
   ``policy``, threshold, ``max_draft`` and the text's end, and tells the Shared Pool if that has room and no earlier
   token of the request is under verification or eager, else the micro-batch's Eager Pool. The load by which it finds
   a threshold in the table is the number of live requests. A token whose draft was broken meanwhile is dropped.
3. A verdict: accepted tokens and the one behind them are emitted, up to an end token or the limit. If all tokens of
   the request in the pass were accepted, ``bonus`` is set and the next drafted token, pending or eager, is the very
   one that was emitted, then this leaves its pool and those behind it stay; else the draft is broken and all leave.
   The controller hears of it: H is 1 where none is left. A greedy engine sets ``bonus`` whenever it accepts all; one
   that samples if the drafted token passed its test on the bonus distribution.
4. A new request, if its number is not in use.
5. A pass, if none is under way. With ``shared``: for all requests, when nobody drafts or could, or with ``eager``
   when ``start`` tokens are pending, or without when nobody drafts; and in either case when a row for each request
   and one for each pending token fill the ``capacity``. Without ``shared``: for the next micro-batch that rests.
   Each request gets a row for its last known token, in ring order when there are more requests than rows, and the
   other rows go to the pending tokens of highest H.
6. A draft step of the lowest micro-batch that is not at work, with those of its requests that draft on, lowest
   first, as far as there is room for their tokens; at most ``engines`` steps are under way. Without ``eager``, no
   step begins during verification.

Liveness: of any ceil(live requests / capacity) passes in a row, each live request is in at least one (without
``shared``: passes of its micro-batch); each pass yields a token or more for each of its requests. This is the
Manager's aging; that of the Shared Pool is off. Both engines must take the beats of a step or pass that begins.

Latency, with engines that take every beat at once: a draft token 5 cycles from the decision before to the one after
(3 if it comes too late); a verdict 7 and one for each emitted token, and, where tokens stay in the Shared Pool, one
more than there were in the pass; a migration 4; a pass 2 a request and request_width + 1 a token, and up to
``requests`` cycles that the pool takes after the pass before; a step 2 a request and 3. Settings must stay while
requests are live. After reset nothing happens for 2 * requests cycles.

Cost of 128 requests in 4 micro-batches and 512 + 4 x 128 entries (Yosys, xcup): 5,400 LUT, 2,200 LUT as memory, 2,700
flip-flops, 2 block RAMs, 2 DSP. Reference: SADDLE IV.
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
