"""The Shared Pool keeps draft tokens; each verification takes those most likely to pass.

A token is pending until a round chooses it, and locked from then until the verdict. H never rises along a draft, so
only the first pending token of each request competes: the highest H of all is that of one of them, and what is
chosen of a request is always a prefix of its draft::

    insert, flush -.
    verdict -------+-> whose turn it is | register | tables of requests, lists -> what changes -> selected
    start, aging --'                                      |                |
                                                          +-> CAM -> match |
    best request <- tournament of requests <- first pending tokens' H <----'

Equal H: the lowest request first. One operation a cycle reads the tables and writes them. docs/shared_pool.md has the
rules of rounds, aging and verdicts, and the latency of each operation.

Positions must follow one another within a request. A verdict must come for every request with locked tokens.
Reference: SADDLE IV-B.
"""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from rtl.manager.pools.layouts import pool_entry, selected_beat, verdict
from rtl.manager.pools.request_cam import RequestCam
from rtl.manager.pools.token_lists import TokenLists
from rtl.manager.pools.tournament import Tournament
from rtl.parts.memory import table
from rtl.unit import Unit, in_reset
from sim_models.params.manager.pools.pool import H_WIDTH
from sim_models.params.manager.pools.shared_pool import SharedPoolParams

__all__ = ["SharedPool"]


class SharedPool(Unit):
    """Pool of draft tokens with match, selection, lock and unlock.

    Members
    -------
    insert: In(stream of pool_entry)
        A token behind the others of its request; not taken while the pool is full.
    flush: In(stream of request_width bits)
        All tokens of the request with this number leave, locked ones too.
    verdict: In(stream of verdict)
        The outcome of verification, one for each request with locked tokens.
    start: In(stream of count_width bits)
        A round is to choose up to so many tokens; taken when nothing is locked and the last round is over.
    selected: Out(stream of selected_beat)
        The tokens of a round as they are chosen and locked, and its end.
    eligible: In(requests)
        Requests that take part in a round, a bit each; as they were in the cycle before a choice.
    aging: In(aging_width)
        Rounds after which a request comes first; 0 for never. Absent with ``aging_width`` 0.
    look: In(request_width)
        A request to look for.
    match: Out(entries)
        The entries of the request that was looked for in the cycle before, a bit each.
    match_count: Out(count_width)
        Tokens of that request.
    match_locked: Out(count_width)
        Tokens of that request that are locked.
    match_first: Out(index_width)
        The entry of its first token; undefined without one.
    match_token: Out(token_width)
        Its first pending token, with which the bonus token is compared; undefined without one.
    used: Out(count_width)
        Tokens in the pool.
    locked: Out(count_width)
        Tokens in the pool that are locked.
    full: Out(1)
        No entry is free.
    selecting: Out(1)
        A round is choosing tokens.
    """

    block = "shared_pool"

    insert: Any
    flush: Any
    verdict: Any
    start: Any
    selected: Any
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
            "eligible": In(p.requests), **({"aging": In(p.aging_width)} if p.aging_width else {}),
            "look": In(p.request_width), "match": Out(p.entries),
            "match_count": Out(p.count_width), "match_locked": Out(p.count_width),
            "match_first": Out(p.index_width), "match_token": Out(p.token_width),
            "used": Out(p.count_width), "locked": Out(p.count_width), "full": Out(1), "selecting": Out(1),
        })

    def answers(self) -> tuple[tuple[str, str, int], ...]:
        return (("look", "match", 1),)

    def body(self, platform: Any) -> Module:
        m = Module()
        m.submodules.lists = lists = TokenLists(self.p.lists)
        m.submodules.cam = cam = RequestCam(self.p.cam)
        m.submodules.tournament = tournament = Tournament(self.p.tournament)
        op = _Operation(self.p)
        self._take(m, op)
        self._round(m, op, tournament)
        self._next_operation(m, op, tournament)
        self._tables(m, op, lists)
        self._pending(m, op)
        self._ages(m, op)
        self._judge(m, op, lists)
        self._read_ahead(m, op, lists, tournament)
        self._keys(m, op, lists, tournament)
        self._payload(m, op, lists, tournament)
        self._search(m, op, lists, cam)
        return m

    def _take(self, m: Module, op: "_Operation") -> None:
        """A flush or an insertion, which is done in the next cycle."""
        given = self.insert.payload
        m.d.comb += [
            op.awake.eq(~op.initial & ~in_reset()),
            self.flush.ready.eq(op.awake & ~op.judge & ~op.walking),
            self.insert.ready.eq(op.awake & ~self.full & ~(self.flush.valid & self.flush.ready)),
            op.flushing.eq(self.flush.valid & self.flush.ready),
            op.inserting.eq(self.insert.valid & self.insert.ready),
            op.busy.eq(op.flush | op.insert),
        ]
        m.d.sync += [
            op.flush.eq(op.flushing), op.insert.eq(op.inserting), op.given_position.eq(given.position),
            op.given_token.eq(given.token), op.given_h.eq(given.h),
        ]

    def _round(self, m: Module, op: "_Operation", tournament: Tournament) -> None:
        """Start, end and aftermath of a round."""
        p = self.p
        budget, spent = Signal(p.count_width), Signal()
        ending, aging = Signal(), Signal()
        room, over = Signal(), Signal()
        m.d.comb += [
            room.eq(~self.selected.valid | self.selected.ready),
            self.start.ready.eq(op.awake & ~self.selecting & ~ending & ~aging & (self.locked == 0)),
            # a key of zero: nothing is pending
            over.eq(spent | (op.settled & ~tournament.best_key[-1])),
            op.may_choose.eq(self.selecting & op.settled & room & ~over),
            op.age.eq(op.at_turn & aging), op.growing.eq(ending | aging),
        ]
        with m.If(self.selected.ready):
            m.d.sync += self.selected.valid.eq(0)
        with m.If(self.start.valid & self.start.ready):
            m.d.sync += [budget.eq(self.start.payload), spent.eq(self.start.payload == 0), self.selecting.eq(1)]
        with m.If(op.pick):
            m.d.sync += [budget.eq(budget - 1), spent.eq(budget == 1), self.selected.valid.eq(1),
                         self.selected.payload.end.eq(0)]
        with m.If(self.selecting & over):
            m.d.sync += [self.selecting.eq(0), ending.eq(1)]
        with m.If(ending & room):
            m.d.sync += [ending.eq(0), aging.eq(1), self.selected.valid.eq(1), self.selected.payload.end.eq(1)]
        with m.If(op.age & op.turn.all()):
            m.d.sync += aging.eq(0)

    def _next_operation(self, m: Module, op: "_Operation", tournament: Tournament) -> None:
        """Whose turn the next cycle is: known in a register, for the tables are slow to read."""
        # After reset, every request is cleared, in two steps each (see the CAM).
        second, told = Signal(), self.verdict.payload
        turn_next = Mux(op.age | op.clear, op.turn + 1, op.turn)
        m.d.comb += [
            op.fill.eq(op.initial & ~second), op.clear.eq(op.initial & second),
            op.pick.eq(op.at_best & op.may_choose & op.eligible),
            op.skip.eq(op.at_best & op.may_choose & ~op.eligible),
        ]
        m.d.sync += [op.turn.eq(turn_next), op.judge.eq(0), op.at_turn.eq(0), op.at_best.eq(0)]
        with m.If(op.initial):
            m.d.sync += [op.request.eq(turn_next), second.eq(~second)]
            with m.If(second & op.turn.all()):
                m.d.sync += op.initial.eq(0)
        with m.Elif(op.flushing):
            m.d.sync += op.request.eq(self.flush.payload)
        with m.Elif(op.inserting):
            m.d.sync += op.request.eq(self.insert.payload.request)
        with m.Elif(self.verdict.valid):
            # What it means is found out now, so nothing may be changing its request in this cycle.
            clear = op.judge | op.walking | ~op.busy | (op.request != told.request)
            m.d.sync += [op.request.eq(told.request), op.judge.eq(op.awake & clear & ~self.verdict.ready)]
        with m.Elif(op.growing):
            m.d.sync += [op.request.eq(turn_next), op.at_turn.eq(1)]
        with m.Else():
            m.d.sync += [op.request.eq(tournament.upcoming), op.at_best.eq(1)]

    def _judge(self, m: Module, op: "_Operation", lists: TokenLists) -> None:
        """A verdict after which a rest stays removes the other tokens one by one, the first pending one last."""
        told, stays, last, left = self.verdict.payload, Signal(), Signal(), Signal(self.p.count_width)
        m.d.comb += [
            op.ask.addr.eq(told.request), op.ask_pending.addr.eq(told.request),
            op.drop.eq(op.flush | (op.judge & ~op.walking & ~stays)), op.pop.eq(op.judge & op.walking),
            op.last_pop.eq(op.pop & last), self.verdict.ready.eq(op.judge & Mux(op.walking, last, ~stays)),
        ]
        m.d.sync += stays.eq(told.bonus & (told.accepted == op.ask.data) & op.ask_pending.data[0])
        with m.If(op.pop):
            m.d.sync += [op.walking.eq(~last), left.eq(left - 1), last.eq(left == 1)]
        with m.Elif(op.judge):
            m.d.sync += [op.walking.eq(stays), left.eq(told.accepted), last.eq(told.accepted == 0)]

    def _tables(self, m: Module, op: "_Operation", lists: TokenLists) -> None:
        """What is known of each request: its list, its locked and pending tokens, the first pending one."""
        p = self.p
        m.submodules.locked_counts = locked_counts = table(p.count_width, p.requests)
        m.submodules.pending_firsts = pending_firsts = table(p.index_width, p.requests)
        locked, pending = _Ports(locked_counts, op.request), pending_firsts.write_port()
        op.look_pending, op.finalist_pending = (pending_firsts.read_port(domain="comb") for _ in range(2))
        op.look_locked, op.ask = (locked_counts.read_port(domain="comb") for _ in range(2))
        m.d.sync += op.look.eq(self.look)
        leaving = Signal(p.count_width)
        m.d.comb += [
            op.look_locked.addr.eq(op.look), op.look_pending.addr.eq(op.look),
            *locked.addresses, op.locked.eq(locked.read.data),
            lists.clear.eq(op.clear), lists.append.eq(op.insert), lists.pop.eq(op.pop), lists.drop.eq(op.drop),
            lists.request.eq(op.request), lists.query.eq(op.entry),
            locked.write.en.eq(op.clear | op.drop | (op.pop & ~op.last_pop) | op.pick),
            # whose cycle it is, is known sooner than whether anything is done in it
            locked.write.data.eq(Mux(op.clear | op.drop, 0, Mux(op.at_best, op.locked + 1, op.locked - 1))),
            pending.addr.eq(op.request), pending.en.eq(op.first_pending),
            pending.data.eq(Mux(op.insert, lists.entry, lists.next_entry)),
            # a token that is about to be stored has its place already
            leaving.eq(Mux(op.drop, lists.count, op.pop)),
        ]
        m.d.sync += self.used.eq(self.used + op.inserting - leaving)
        # known in a register; a token that leaves makes room, and none is inserted into a full pool
        with m.If(op.pop | (op.drop & lists.some)):
            m.d.sync += self.full.eq(0)
        with m.Elif(op.inserting & (self.used == p.entries - 1)):
            m.d.sync += self.full.eq(1)
        with m.If(op.pick):
            m.d.sync += self.locked.eq(self.locked + 1)
        with m.Elif(op.drop):
            m.d.sync += self.locked.eq(self.locked - op.locked)
        with m.Elif(op.pop & ~op.last_pop):
            m.d.sync += self.locked.eq(self.locked - 1)

    def _pending(self, m: Module, op: "_Operation") -> None:
        """How many tokens of each request are not locked, with bits that say whether there is one, and another."""
        p = self.p
        m.submodules.pending_counts = counts = table(p.count_width + 2, p.requests)
        ports, count = _Ports(counts, op.request), Signal(p.count_width)
        op.ask_pending = counts.read_port(domain="comb")
        m.d.comb += [
            *ports.addresses, Cat(op.pending, op.left, count).eq(ports.read.data),
            op.first_pending.eq((op.insert & ~op.pending) | op.last_pop | op.pick),
            ports.write.en.eq(op.clear | op.drop | op.insert | op.last_pop | op.pick),
            ports.write.data.eq(Mux(op.clear | op.drop, 0, Mux(
                op.insert, Cat(1, op.pending, count + 1), Cat(op.left, op.left & (count != 2), count - 1)))),
        ]

    def _ages(self, m: Module, op: "_Operation") -> None:
        """For how many rounds a request was not served."""
        if not self.p.aging_width:
            return
        m.submodules.ages = ages = table(self.p.age_width, self.p.requests)
        age = _Ports(ages, op.request)
        m.d.comb += [
            *age.addresses, op.older.eq(Mux(age.read.data.all(), age.read.data, age.read.data + 1)),
            age.write.en.eq(op.first_pending | op.age), age.write.data.eq(Mux(op.at_turn, op.older, 0)),
            op.urgent.eq(op.age & (self.aging != 0) & (op.older >= self.aging)),
        ]

    def _read_ahead(self, m: Module, op: "_Operation", lists: TokenLists, tournament: Tournament) -> None:
        """The first pending entry of the best request, and the entry that a verdict removes next."""
        # Whatever changes a request's first pending entry also changes its key, and then that comes to the final:
        # the entry is read while keys are compared. What was read of the other half's finalist is still true.
        halves = [Signal.like(op.entry, name=f"finalist_{n}") for n in range(2)]
        read, half = op.finalist_pending.data, tournament.finalist[-1]
        best = Mux(tournament.beaten, Mux(half, halves[0], halves[1]), read)
        m.d.comb += op.finalist_pending.addr.eq(tournament.finalist)
        # A request that takes part is found alike: among the best of both halves, before it is known which wins.
        answers = []
        for n in range(2):
            meets = tournament.deciding & (half == n)
            name = Signal(max(1, self.p.request_width - 1), name=f"name_{n}")
            low = tournament.finalist[:-1] if self.p.request_width > 1 else Const(0, 1)
            flags = self.eligible.word_select(n, self.p.requests // 2)
            answers.append(flags.bit_select(Mux(meets, low, name), 1))
            with m.If(meets):
                m.d.sync += name.eq(low)
        m.d.sync += op.eligible.eq(Mux(tournament.upcoming[-1], answers[1], answers[0]))
        with m.If(tournament.deciding):
            m.d.sync += op.best_entry.eq(best)
            for n, entry in enumerate(halves):
                with m.If(half == n):
                    m.d.sync += entry.eq(read)
        # The lists see the best entry and that of a verdict in one register.
        with m.If(op.pop):
            m.d.sync += op.entry.eq(lists.next_entry)
        with m.Elif(op.judge & ~op.walking):
            m.d.sync += op.entry.eq(lists.first)
        with m.Elif(tournament.deciding & ~op.walking):
            m.d.sync += op.entry.eq(best)

    def _keys(self, m: Module, op: "_Operation", lists: TokenLists, tournament: Tournament) -> None:
        """The request's new key, from the H of the token that is its first pending one from now on.

        H is kept twice: of every first pending token by its request, and of every other one with the entry before
        it, where it is found as fast as the entry itself.
        """
        p = self.p
        m.submodules.pending_hs = pending_hs = table(H_WIDTH, p.requests)
        m.submodules.hs_behind = hs_behind = table(H_WIDTH, p.entries)
        first, behind = _Ports(pending_hs, op.request), hs_behind.read_port(domain="comb")
        link = hs_behind.write_port()
        next_h = Mux(op.insert, op.given_h, behind.data)
        m.d.comb += [
            link.addr.eq(lists.last), link.data.eq(op.given_h), link.en.eq(op.insert & lists.some),
            behind.addr.eq(lists.query), *first.addresses, first.write.en.eq(op.first_pending),
            first.write.data.eq(next_h),
        ]
        changed, alive, request = Signal(), Signal(), Signal(p.request_width)
        h, age = Signal(H_WIDTH), Signal(p.age_width)
        m.d.sync += [
            changed.eq(op.clear | op.drop | op.skip | op.first_pending | (op.age & op.pending)),
            alive.eq(op.insert | op.age | ((op.pick | op.pop) & op.left)), request.eq(op.request),
            age.eq(Mux(op.urgent, op.older, 0)), h.eq(Mux(op.age, first.read.data, next_h)),
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
        for memory, value in ((positions, op.given_position), (tokens, op.given_token)):
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
    ask: Any
    ask_pending: Any
    finalist_pending: Any

    def __init__(self, p: SharedPoolParams) -> None:
        self.initial = Signal(init=1)                # not yet cleared since reset
        self.awake = Signal()
        self.turn = Signal(p.request_width)          # request that is cleared or grows older next
        # taken in this cycle, and in the one before
        self.flushing, self.inserting = Signal(), Signal()
        self.flush, self.insert, self.busy = Signal(), Signal(), Signal()
        self.given_position, self.given_token = Signal(p.position_width), Signal(p.token_width)
        self.given_h = Signal(H_WIDTH)
        # whose cycle it is
        self.request = Signal(p.request_width)
        self.judge, self.at_turn, self.at_best = Signal(), Signal(), Signal()
        # what is done
        self.fill, self.clear = Signal(), Signal()
        self.drop, self.pop, self.last_pop = Signal(), Signal(), Signal()
        self.pick, self.skip, self.age = Signal(), Signal(), Signal()
        self.may_choose, self.growing, self.settled = Signal(), Signal(), Signal()
        self.walking = Signal()                      # in a verdict of several cycles
        # first pending entry of the best request; and that, or what a verdict removes next
        self.best_entry, self.entry = Signal(p.index_width), Signal(p.index_width)
        # of the request, before the operation
        self.locked = Signal(p.count_width)
        self.pending = Signal()                      # it has tokens that are not locked
        # and after it
        self.left = Signal()                         # there still are, where one was chosen or removed
        self.first_pending = Signal()                # another token is the first pending one
        # its age after it, and whether that makes it come first
        self.older, self.urgent = Signal(p.age_width), Signal()
        self.eligible = Signal()                     # the best request takes part
        self.look = Signal(p.request_width)


class _Ports:
    """A table's ports for the request of the operation."""

    def __init__(self, memory: Any, request: Any) -> None:
        self.write, self.read = memory.write_port(), memory.read_port(domain="comb")
        self.addresses = [self.write.addr.eq(request), self.read.addr.eq(request)]
