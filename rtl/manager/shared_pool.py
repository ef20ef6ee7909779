"""The Shared Pool: draft tokens of all requests, from which each verification takes those most likely to pass.

A token is pending until a round chooses it, and locked from then until the verdict. H never rises along a draft, so
only the first pending token of each request competes: the highest H of all is that of one of them, and what is
chosen of a request is always a prefix of its draft::

    insert -> register -.                                                +-- selected
    flush --> register -+-> one operation a cycle -> lists, counts, ages-+
    verdict ------------|        |          |                            |
    start, aging -------'        |          +-> first pending tokens' H -> tournament of requests
                                 +-> CAM -> match (look)

Everything is in distributed memory; the lists make the flush of any number of tokens one step, and the CAM serves
``match`` alone. A flush or an insertion is done in the cycle after it was taken, before all else; then, the first of
those that could go ahead: a verdict, choosing a token, aging. Of a flush and an insertion the flush is taken; a
verdict that has begun holds off flushes, and a flush that is being taken a verdict that has not. Inserting and
looking up are not slowed by a round.

Rounds: ``start`` begins one when nothing is locked. Tokens are chosen one by one until the capacity is reached,
nothing is pending or ``eligible`` is denied to all that is; then comes a beat with ``end``. Equal H: the lowest
request first. A round that did not choose a request's tokens makes it a round older; from ``aging`` rounds on
(0: never) its first token goes before all younger ones, the oldest first, so every eligible request with pending
tokens is served within aging + ceil(requests / capacity) rounds.

Verdicts: not all locked tokens accepted, or another token than the first pending one in the bonus' place: all tokens
of the request leave. Else the locked ones and the first pending one leave, for that is the bonus token, and the
rest stays, pending.

Latency: ``look`` to ``match`` and its companions 1 cycle, showing insertions and flushes that were taken before the
cycle of ``look``, and choices and verdicts up to that cycle. ``used`` counts an insertion in the next cycle and a
flush in the one after. A verdict takes 1 cycle, or two more than there are locked tokens where a rest stays; a round
``request_width`` + 1 cycles a token, plus one for every other operation in between; the same for every ineligible
request that would have been chosen; afterwards a cycle for every request's age. Throughput: an insertion, a flush or
a verdict a cycle and a look a cycle. After reset nothing is taken for 2 * requests cycles.

Cost of 512 entries and 128 requests (Yosys, xcup): 2,900 LUT, 2,300 LUT as memory, 510 flip-flops, no block RAM, no
DSP; 6.8 KB of memory in all, of which 3.1 KB are positions, tokens and H (SADDLE counts 1 KB).

Positions must follow one another within a request. A verdict must come for every request with locked tokens.
Reference: SADDLE IV-B.
"""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from rtl.manager.request_cam import RequestCam
from rtl.manager.token_lists import TokenLists, table
from rtl.manager.tournament import Tournament
from rtl.manager_layouts import pool_entry, selected_beat, verdict
from rtl.unit import Unit, in_reset
from sim_models.params.manager import H_WIDTH, SharedPoolParams

__all__ = ["SharedPool"]


class SharedPool(Unit):
    """Pool of draft tokens with match, selection, lock and unlock.

    Members
    -------
    insert: In(stream of pool_entry)
        A token behind the others of its request; not taken while the pool is full.
    flush: In(stream of request_width bits)
        All tokens of a request leave, locked ones too.
    verdict: In(stream of verdict)
    start: In(stream of count_width bits)
        A round is to choose up to so many tokens; taken when nothing is locked and the last round is over.
    selected: Out(stream of selected_beat)
        The tokens of a round as they are chosen and locked, and its end.
    candidate: Out(request_width), eligible: In(1)
        A request that comes next in a round, and whether it takes part; answered in the same cycle.
    aging: In(aging_width)
        Rounds after which a request comes first; 0 for never.
    look: In(request_width)
        A request to look for.
    match: Out(entries)
        The entries of the request that was looked for in the cycle before; this and what follows come out of memory.
    match_count, match_locked: Out(count_width)
        How many they are, and how many of them are locked.
    match_first: Out(index_width)
        The entry of its first token; undefined without one.
    match_token: Out(token_width)
        Its first pending token, with which the bonus token is compared; undefined without one.
    used, locked: Out(count_width)
        Tokens in the pool, and those of them that are locked.
    full, selecting: Out(1)
        No entry is free; a round is choosing tokens.
    """

    block = "shared_pool"

    insert: Any
    flush: Any
    verdict: Any
    start: Any
    selected: Any
    candidate: Signal
    eligible: Signal
    aging: Signal
    look: Signal
    match: Signal
    match_count: Signal
    match_locked: Signal
    match_first: Signal
    match_token: Signal
    used: Signal
    locked: Signal
    full: Signal
    selecting: Signal

    def __init__(self, params: SharedPoolParams | None = None) -> None:
        p = params or SharedPoolParams()
        self.p = p
        super().__init__(p, {
            "insert": In(stream.Signature(pool_entry(p))), "flush": In(stream.Signature(p.request_width)),
            "verdict": In(stream.Signature(verdict(p))), "start": In(stream.Signature(p.count_width)),
            "selected": Out(stream.Signature(selected_beat(p))),
            "candidate": Out(p.request_width), "eligible": In(1), "aging": In(p.aging_width),
            "look": In(p.request_width), "match": Out(p.entries),
            "match_count": Out(p.count_width), "match_locked": Out(p.count_width),
            "match_first": Out(p.index_width), "match_token": Out(p.token_width),
            "used": Out(p.count_width), "locked": Out(p.count_width), "full": Out(1), "selecting": Out(1),
        })

    def body(self, platform: Any) -> Module:
        m = Module()
        m.submodules.lists = lists = TokenLists(self.p.lists)
        m.submodules.cam = cam = RequestCam(self.p.cam)
        m.submodules.tournament = tournament = Tournament(self.p.tournament)
        op = _Operation(self.p)
        self._take(m, op, lists)
        self._round(m, op, tournament)
        self._choose_operation(m, op, tournament)
        self._judge(m, op, lists)
        self._tables(m, op, lists, tournament)
        self._keys(m, op, lists, tournament)
        self._payload(m, op, lists, tournament)
        self._search(m, op, lists, cam)
        return m

    def _take(self, m: Module, op: "_Operation", lists: TokenLists) -> None:
        """A flush or an insertion, which is done in the next cycle."""
        flush = self.flush.valid & ~op.walking
        m.d.comb += [
            op.awake.eq(~op.initial & ~in_reset()),
            self.flush.ready.eq(op.awake & ~op.walking),
            self.insert.ready.eq(op.awake & ~self.full & ~flush),
            # a token that is about to be stored has its place already
            self.used.eq(lists.used + op.insert), self.full.eq(self.used == self.p.entries),
        ]
        m.d.sync += [
            op.flush.eq(self.flush.valid & self.flush.ready), op.insert.eq(self.insert.valid & self.insert.ready),
            op.given.eq(self.insert.payload),
        ]
        with m.If(flush):
            m.d.sync += op.given.request.eq(self.flush.payload)

    def _round(self, m: Module, op: "_Operation", tournament: Tournament) -> None:
        """Start, end and aftermath of a round."""
        p = self.p
        budget = Signal(p.count_width)
        ending, aging = Signal(), Signal()
        room, over = Signal(), Signal()
        m.d.comb += [
            self.candidate.eq(tournament.best),
            room.eq(~self.selected.valid | self.selected.ready),
            self.start.ready.eq(op.awake & ~self.selecting & ~ending & ~aging & (self.locked == 0)),
            # a key of zero: nothing is pending
            over.eq((budget == 0) | (op.settled & ~tournament.best_key[-1])),
            op.may_choose.eq(self.selecting & op.settled & room & ~over),
            op.may_age.eq(aging),
        ]
        with m.If(self.selected.ready):
            m.d.sync += self.selected.valid.eq(0)
        with m.If(self.start.valid & self.start.ready):
            m.d.sync += [budget.eq(self.start.payload), self.selecting.eq(1)]
        with m.If(op.pick):
            m.d.sync += [budget.eq(budget - 1), self.selected.valid.eq(1), self.selected.payload.end.eq(0)]
        with m.If(self.selecting & over):
            m.d.sync += [self.selecting.eq(0), ending.eq(1)]
        with m.If(ending & room):
            m.d.sync += [ending.eq(0), aging.eq(1), self.selected.valid.eq(1), self.selected.payload.end.eq(1)]
        with m.If(op.age):
            m.d.sync += op.turn.eq(op.turn + 1)
            with m.If(op.turn.all()):
                m.d.sync += aging.eq(0)

    def _choose_operation(self, m: Module, op: "_Operation", tournament: Tournament) -> None:
        """What is done in this cycle, and for whom; whom is decided by what is known early."""
        # After reset, every request is cleared, in two steps each (see the CAM).
        second = Signal()
        with m.If(op.initial):
            m.d.sync += second.eq(~second)
            with m.If(second):
                m.d.sync += op.turn.eq(op.turn + 1)
                with m.If(op.turn.all()):
                    m.d.sync += op.initial.eq(0)
        m.d.comb += [
            op.busy.eq(op.flush | op.insert), op.drop.eq(op.flush),
            op.fill.eq(op.initial & ~second), op.clear.eq(op.initial & second),
        ]
        with m.If(op.busy):
            m.d.comb += op.request.eq(op.given.request)
        with m.Elif(self.verdict.valid & ~op.initial):
            # what a flush of this cycle removes is not judged any more
            m.d.comb += [op.request.eq(self.verdict.payload.request),
                         op.judge.eq(op.awake & (op.walking | ~self.flush.valid))]
        with m.Elif(self.selecting):
            m.d.comb += [op.request.eq(tournament.best), op.pick.eq(op.may_choose & self.eligible),
                         op.skip.eq(op.may_choose & ~self.eligible)]
        with m.Else():
            m.d.comb += [op.request.eq(op.turn), op.age.eq(op.may_age)]

    def _judge(self, m: Module, op: "_Operation", lists: TokenLists) -> None:
        """A verdict after which a rest stays removes the other tokens one by one, the first pending one last."""
        told = self.verdict.payload
        m.d.comb += op.pending.eq(lists.count != op.locked)
        with m.If(op.judge):
            with m.If(op.walking):
                m.d.comb += [op.pop.eq(1), self.verdict.ready.eq(op.locked == 0)]
                m.d.sync += op.walking.eq(op.locked != 0)
            with m.Elif(told.bonus & (told.accepted == op.locked) & op.pending):
                m.d.sync += op.walking.eq(1)
            with m.Else():
                m.d.comb += [op.drop.eq(1), self.verdict.ready.eq(1)]

    def _tables(self, m: Module, op: "_Operation", lists: TokenLists, tournament: Tournament) -> None:
        """What is known of each request: its list, its locked tokens, the first pending one and its age."""
        p = self.p
        m.submodules.locked_counts = locked_counts = table(p.count_width, p.requests)
        m.submodules.pending_firsts = pending_firsts = table(p.index_width, p.requests)
        m.submodules.ages = ages = table(p.age_width, p.requests)
        locked, age = _ports(locked_counts, op.request), _ports(ages, op.request)
        pending, coming = pending_firsts.write_port(), pending_firsts.read_port(domain="comb")
        op.look_locked, op.look_pending = (memory.read_port(domain="comb")
                                           for memory in (locked_counts, pending_firsts))
        m.d.sync += op.look.eq(self.look)
        m.d.comb += [op.look_locked.addr.eq(op.look), op.look_pending.addr.eq(op.look)]

        # The first pending entry of the best request is read ahead: whatever changes it, changes its key too. In the
        # same place is the entry that a verdict removes next; there is a copy for the payload, to spread the load.
        m.d.comb += coming.addr.eq(tournament.upcoming)
        m.d.sync += op.best_entry.eq(coming.data)
        with m.If(~op.walking):
            m.d.sync += op.entry.eq(Mux(self.verdict.valid, lists.first, coming.data))
        with m.Elif(op.pop):
            m.d.sync += op.entry.eq(lists.next_entry)
        last_pop = op.pop & (op.locked == 0)
        m.d.comb += [
            *locked.addresses, *age.addresses, op.locked.eq(locked.read.data),
            lists.clear.eq(op.clear), lists.append.eq(op.insert), lists.pop.eq(op.pop), lists.drop.eq(op.drop),
            lists.request.eq(op.request), lists.query.eq(op.entry),
            op.first_pending.eq((op.insert & ~op.pending) | last_pop | op.pick),
            locked.write.en.eq(op.clear | op.drop | (op.pop & ~last_pop) | op.pick),
            locked.write.data.eq(Mux(op.clear | op.drop, 0, op.locked + Mux(op.pick, 1, -1))),
            pending.addr.eq(op.request), pending.en.eq(op.first_pending),
            pending.data.eq(Mux(op.insert, lists.entry, lists.next_entry)),
            op.older.eq(Mux(age.read.data.all(), age.read.data, age.read.data + 1)),
            age.write.en.eq(op.first_pending | op.age), age.write.data.eq(Mux(op.age, op.older, 0)),
        ]
        with m.If(op.pick):
            m.d.sync += self.locked.eq(self.locked + 1)
        with m.Elif(op.drop):
            m.d.sync += self.locked.eq(self.locked - op.locked)
        with m.Elif(op.pop & ~last_pop):
            m.d.sync += self.locked.eq(self.locked - 1)

    def _keys(self, m: Module, op: "_Operation", lists: TokenLists, tournament: Tournament) -> None:
        """The request's new key, from the H of the token that is its first pending one from now on.

        H is kept twice: of every first pending token by its request, and of every other one with the entry before
        it, where it is found as fast as the entry itself.
        """
        p = self.p
        m.submodules.pending_hs = pending_hs = table(H_WIDTH, p.requests)
        m.submodules.hs_behind = hs_behind = table(H_WIDTH, p.entries)
        first, behind = _ports(pending_hs, op.request), hs_behind.read_port(domain="comb")
        link = hs_behind.write_port()
        next_h = Mux(op.insert, op.given.h, behind.data)
        m.d.comb += [
            link.addr.eq(lists.last), link.data.eq(op.given.h), link.en.eq(op.insert & (lists.count != 0)),
            behind.addr.eq(lists.query), *first.addresses, first.write.en.eq(op.first_pending),
            first.write.data.eq(next_h),
        ]
        urgent = op.age & (self.aging != 0) & (op.older >= self.aging)
        left = Mux(op.pick, op.locked, 0) + 1 != lists.count
        changed, alive, request = Signal(), Signal(), Signal(p.request_width)
        h, age = Signal(H_WIDTH), Signal(p.age_width)
        m.d.sync += [
            changed.eq(op.clear | op.drop | op.skip | op.first_pending | (op.age & op.pending)),
            alive.eq(op.insert | op.age | ((op.pick | op.pop) & left)), request.eq(op.request),
            age.eq(Mux(urgent, op.older, 0)), h.eq(Mux(op.age, first.read.data, next_h)),
        ]
        m.d.comb += [
            tournament.change.eq(changed), tournament.request.eq(request),
            tournament.key.eq(Mux(alive, Cat(h, age, 1), 0)),
            op.settled.eq(tournament.settled & ~changed & ~op.busy),
        ]

    def _payload(self, m: Module, op: "_Operation", lists: TokenLists, tournament: Tournament) -> None:
        """Positions and tokens of the entries; what was chosen."""
        p = self.p
        m.submodules.positions = positions = table(p.position_width, p.entries)
        m.submodules.tokens = tokens = table(p.token_width, p.entries)
        for memory, value in ((positions, op.given.position), (tokens, op.given.token)):
            write = memory.write_port()
            m.d.comb += [write.addr.eq(lists.entry), write.data.eq(value), write.en.eq(op.insert)]
        position, token = positions.read_port(domain="comb"), tokens.read_port(domain="comb")
        look_token = tokens.read_port(domain="comb")
        m.d.comb += [position.addr.eq(op.best_entry), token.addr.eq(op.best_entry),
                     look_token.addr.eq(op.look_pending.data), self.match_token.eq(look_token.data)]
        chosen = self.selected.payload.entry
        with m.If(op.pick):
            m.d.sync += [chosen.request.eq(tournament.best), chosen.position.eq(position.data),
                         chosen.token.eq(token.data), chosen.h.eq(tournament.best_key[:H_WIDTH])]

    def _search(self, m: Module, op: "_Operation", lists: TokenLists, cam: RequestCam) -> None:
        """Match, count and first entry of the request that is looked for."""
        m.d.comb += [
            cam.put.eq(op.fill | op.insert), cam.remove.eq(op.clear | op.drop | op.pop),
            cam.every.eq(op.initial | op.drop), cam.request.eq(op.request),
            cam.entry.eq(Mux(op.insert, lists.entry, op.entry)),
            cam.look.eq(self.look), self.match.eq(cam.match), lists.look_request.eq(op.look),
            self.match_count.eq(lists.look_count), self.match_first.eq(lists.look_first),
            self.match_locked.eq(op.look_locked.data),
        ]


class _Operation:
    """The operation of a cycle: what it is, for which request, and what is known of that."""

    look_locked: Any
    look_pending: Any

    def __init__(self, p: SharedPoolParams) -> None:
        self.initial = Signal(init=1)                # not yet cleared since reset
        self.awake = Signal()
        self.turn = Signal(p.request_width)          # request that is cleared or grows older next
        # taken in the cycle before
        self.flush, self.insert, self.busy = Signal(), Signal(), Signal()
        self.given: Any = Signal(pool_entry(p))
        # what is done now
        self.request = Signal(p.request_width)
        self.fill, self.clear = Signal(), Signal()
        self.drop, self.pop = Signal(), Signal()
        self.judge, self.pick, self.skip, self.age = Signal(), Signal(), Signal(), Signal()
        self.may_choose, self.may_age, self.settled = Signal(), Signal(), Signal()
        self.walking = Signal()                      # in a verdict of several cycles
        # first pending entry of the best request; and that, or what a verdict removes next
        self.best_entry, self.entry = Signal(p.index_width), Signal(p.index_width)
        # of the request, before the operation
        self.locked = Signal(p.count_width)
        self.pending = Signal()                      # it has tokens that are not locked
        # and after it
        self.first_pending = Signal()                # another token is the first pending one
        self.older = Signal(p.age_width)
        self.look = Signal(p.request_width)


class _ports:
    """A table's ports for the request of the operation."""

    def __init__(self, memory: Any, request: Any) -> None:
        self.write, self.read = memory.write_port(), memory.read_port(domain="comb")
        self.addresses = [self.write.addr.eq(request), self.read.addr.eq(request)]
