"""The draft controller: multiplies H by each draft token's probability, stops drafts, and routes tokens to a pool.

::

    request -> memory -> register -> H x p -> round -> below the threshold? -> stop, draft on    decision
                 ^          | '------------- H ------> shared, eager? -------> entry             to_shared, to_eager
                 '-- update '-> length, may draft

H is the product of the probabilities of a request's draft since its last restart, UQ1.15, each product rounded to
nearest even; it never rises. The token by which a draft ends stays in it: below the threshold (H or, with the policy
``CONFIDENCE``, the token's own probability), at ``max_draft`` tokens that wait for verification or are under it (0:
none is drafted), at a ``final`` one, or with an end token and ``stop_at_end``. The threshold is ``tau``, or an entry
of a table by the number of live requests: 1, 2, 3 to 4, 5 to 8, ... 65 and more. Whoever asks for a token must know
that a pool has room for it.

A token goes to the Shared Pool if this has room and no earlier token of its request is under verification or in the
Eager Pool; else to the Eager Pool. The room must last until the token is in.

Latency: 2 cycles from a token to its decision and entry; an update 1; ``request`` to ``length`` and ``may_draft`` 1,
showing updates taken 2 cycles before and tokens taken 3 cycles before. Throughput: a token in 3 cycles, an update in
2. While a token waits for its pool nothing else is taken, so an update that was taken concerns no token on its way.
Updates go before tokens. After reset nothing is taken for a cycle a request and one.

Reference: SADDLE IV-A and IV-B.
"""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from rtl.manager.layouts import draft_decision, draft_token, draft_update
from rtl.manager.pools.layouts import pool_entry
from rtl.parts.float import round_nearest_even
from rtl.parts.memory import table
from rtl.parts.pick import pick
from rtl.unit import Unit, in_reset
from sim_models.params.manager.draft_controller import TAU_ENTRIES, DraftControllerParams
from sim_models.params.manager.pools.pool import H_WIDTH
from sim_models.spec.manager import DraftPolicy

__all__ = ["DraftController"]

_ONE = 1 << (H_WIDTH - 1)


class DraftController(Unit):
    """H, stop and route of draft tokens.

    Members
    -------
    request: In(request_width)
        Whose token, update and length it is. It must stand from the cycle before a token or an update is offered
        until that is taken.
    drafted: In(stream of draft_token)
        The next token of the request, whose draft must be unfinished (see ``may_draft``).
    update: In(stream of draft_update)
        After a verdict, before its tokens leave the pools; ``gone`` must not exceed the draft's length.
    to_shared: Out(stream of pool_entry)
        Tokens for the Shared Pool.
    to_eager: Out(stream of pool_entry)
        Tokens for the Eager Pool.
    verifying: In(1)
        In the cycle after a token is taken: its request is under verification.
    behind: In(1)
        In the cycle after a token is taken: its request has tokens in the Eager Pool.
    shared_room: In(1)
        The Shared Pool takes another token.
    policy: In(DraftPolicy)
        What ends a draft before ``max_draft``.
    tabled: In(1)
        The threshold is that of the table for ``load``, otherwise ``tau``.
    tau: In(16)
        Threshold, UQ1.15.
    taus: In(ArrayLayout(16, 8))
        Table of thresholds, UQ1.15, for 1, 2, 3 to 4, 5 to 8, ... 65 and more live requests.
    load: In(load_width)
        Live requests; 0 counts as 1.
    max_draft: In(length_width)
        Most tokens of a request that wait for verification or are under it.
    stop_at_end: In(1)
        ``end_token`` ends a draft.
    end_token: In(token_width)
        The token that ends a text.
    length: Out(length_width)
        Length of the draft of ``request``, verified tokens that were not emitted included.
    may_draft: Out(1)
        ``request`` may draft a token.
    decided: Out(1)
        High for a cycle, after the one in which a token was decided on.
    decision: Out(draft_decision)
        With ``decided``: what follows from the token.
    h: Out(16)
        With ``decided``: H of the token, UQ1.15.
    """

    block = "draft_controller"

    request: Signal
    drafted: Any
    update: Any
    to_shared: Any
    to_eager: Any
    verifying: Signal
    behind: Signal
    shared_room: Signal
    policy: Any
    tabled: Signal
    tau: Signal
    taus: Any
    load: Signal
    max_draft: Signal
    stop_at_end: Signal
    end_token: Signal
    length: Signal
    may_draft: Signal
    decided: Signal
    decision: Any
    h: Signal

    def __init__(self, params: DraftControllerParams | None = None) -> None:
        p = params or DraftControllerParams()
        self.p = p
        entry = stream.Signature(pool_entry(p.pool))
        super().__init__(p, {
            "request": In(p.request_width),
            "drafted": In(stream.Signature(draft_token(p))), "update": In(stream.Signature(draft_update(p))),
            "to_shared": Out(entry), "to_eager": Out(entry), "verifying": In(1), "behind": In(1),
            "shared_room": In(1), "policy": In(DraftPolicy), "tabled": In(1), "tau": In(H_WIDTH),
            "taus": In(data.ArrayLayout(H_WIDTH, TAU_ENTRIES)), "load": In(p.load_width),
            "max_draft": In(p.length_width), "stop_at_end": In(1), "end_token": In(p.token_width),
            "length": Out(p.length_width), "may_draft": Out(1),
            "decided": Out(1), "decision": Out(draft_decision(p)), "h": Out(H_WIDTH),
        })

    def body(self, platform: Any) -> Module:
        m = Module()
        p = self.p
        state = data.StructLayout({"h": H_WIDTH, "length": p.length_width, "stopped": 1})
        m.submodules.drafts = drafts = table(state.size, p.requests)
        write, read = drafts.write_port(), drafts.read_port(domain="comb")
        new, old = Signal(state), Signal(state)
        m.d.comb += [write.data.eq(new), read.addr.eq(self.request), self.length.eq(old.length),
                     self.may_draft.eq(~old.stopped & (old.length < self.max_draft))]
        m.d.sync += old.eq(read.data)

        # What is done in this cycle, and for whom
        initial = Signal(init=1)                # not yet cleared since reset
        turn = Signal(p.request_width)
        busy = Signal()                         # a token was taken in the cycle before
        written = Signal()                      # what was read of the request may have changed in the cycle before
        token, told = self.drafted.payload, self.update.payload
        idle = ~initial & ~busy & ~written & ~self.to_shared.valid & ~self.to_eager.valid & ~in_reset()
        m.d.comb += [self.update.ready.eq(idle), self.drafted.ready.eq(idle & ~self.update.valid)]
        m.d.sync += written.eq(initial | (self.update.valid & self.update.ready))

        # First cycle: the product, and everything that does not depend on it
        entry = Signal(pool_entry(p.pool))
        p_clipped, threshold = Signal(H_WIDTH), Signal(H_WIDTH)
        product, last = Signal(2 * H_WIDTH - 1), Signal(data.StructLayout({"length": 1, "end": 1, "stopped": 1}))
        length, own = Signal(p.length_width), Signal(H_WIDTH)
        m.d.comb += p_clipped.eq(Mux(token.p[-1], _ONE, token.p))
        m.d.sync += busy.eq(self.drafted.valid & self.drafted.ready)
        with m.If(self.drafted.valid & self.drafted.ready):
            m.d.sync += [
                entry.request.eq(self.request), entry.position.eq(token.position), entry.token.eq(token.token),
                product.eq(old.h * p_clipped), own.eq(p_clipped), length.eq(old.length + 1),
                threshold.eq(Mux(self.tabled, self._tabled(), self.tau)),
                last.length.eq(old.length + 1 >= self.max_draft), last.stopped.eq(old.stopped),
                last.end.eq(token.final | (self.stop_at_end & (token.token == self.end_token))),
            ]

        # Second cycle: rounding, the threshold, the pool
        h, below, is_shared = Signal(H_WIDTH), Signal(), Signal()
        kept, up = round_nearest_even(product[H_WIDTH - 2:], [product[:H_WIDTH - 2].any()])
        # rounded up it is not below where it was one below, which is known sooner than the sum: bits differ in the
        # lowest place, and in each other one where the threshold has a 0 for a 1 in the place before
        one_below = (kept ^ threshold) == Cat(1, kept & ~threshold)[:H_WIDTH]
        h_below = (kept < threshold) & ~(up & one_below)
        m.d.comb += [
            h.eq(kept + up),
            below.eq((self.policy != DraftPolicy.FIXED)
                     & Mux(self.policy == DraftPolicy.CONFIDENCE, own < threshold, h_below)),
            is_shared.eq(self.shared_room & ~self.verifying & ~self.behind),
        ]
        stop = Cat(last.as_value(), below).any()
        m.d.sync += [
            self.decided.eq(busy), self.to_shared.valid.eq(self.to_shared.valid & ~self.to_shared.ready),
            self.to_eager.valid.eq(self.to_eager.valid & ~self.to_eager.ready)]
        with m.If(busy):
            m.d.sync += [
                entry.h.eq(h), self.decision.request.eq(entry.request), self.decision.stop.eq(stop),
                self.decision.threshold.eq(below), self.decision.length.eq(last.length),
                self.decision.end.eq(last.end),
                self.to_shared.valid.eq(is_shared), self.to_eager.valid.eq(~is_shared),
            ]
        m.d.comb += [self.to_shared.payload.eq(entry), self.to_eager.payload.eq(entry), self.h.eq(entry.h)]

        # The request's state afterwards
        m.d.comb += [write.addr.eq(entry.request), write.en.eq(busy), new.h.eq(h), new.length.eq(length),
                     new.stopped.eq(last.stopped | below | last.end)]
        with m.If(initial | (self.update.valid & self.update.ready)):
            m.d.comb += [write.addr.eq(Mux(initial, turn, self.request)), write.en.eq(1), new.h.eq(old.h),
                         new.length.eq(old.length - told.gone), new.stopped.eq(old.stopped)]
            with m.If(initial | told.restart):
                m.d.comb += [new.h.eq(_ONE), new.length.eq(0), new.stopped.eq(0)]
        with m.If(initial):
            m.d.sync += [turn.eq(turn + 1), initial.eq(~turn.all())]
        return m

    def _tabled(self) -> Any:
        """The table's threshold for the load."""
        above = [(1 << n) < self.load for n in range(TAU_ENTRIES - 1)]
        # how many powers of two are below the load, as a number: ones come first
        index = Cat(above[0] & ~above[1] | above[2] & ~above[3] | above[4] & ~above[5] | above[6],
                    above[1] & ~above[3] | above[5], above[3])
        return pick([self.taus[n] for n in range(TAU_ENTRIES)], index)
