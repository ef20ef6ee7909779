"""What the pools, their lists and the tournament must do, whatever stands at their inputs.

One token is watched, any of any request: how many stand before it is counted from what goes in and out, so it has
to come out exactly when none is left before it.
"""

from typing import Any

from amaranth.asserts import AnyConst
from amaranth.hdl import Array, Assert, Assume, Cat, Elaboratable, Module, Signal, Value

from rtl.manager.pools.shared_pool import SharedPool
from rtl.manager.pools.token_lists import TokenLists
from rtl.manager.pools.tournament import Tournament

__all__ = ["ListsSpecification", "PoolSpecification", "TournamentSpecification"]


class _Watched:
    """Tokens of one request, in order: how many there are, and how many stand before the one that is watched."""

    def __init__(self, m: Module, width: int) -> None:
        self.m = m
        self.length, self.ahead, self.watching = Signal(width), Signal(width), Signal()

    def put(self, when: Any, marked: Any) -> None:
        """A token joins at the end, and is watched from now on if it is marked."""
        with self.m.If(when):
            self.m.d.sync += self.length.eq(self.length + 1)
            with self.m.If(marked):
                self.m.d.sync += [self.watching.eq(1), self.ahead.eq(self.length)]

    def take(self, when: Any, count: Any = 1) -> None:
        """The first tokens leave."""
        with self.m.If(when):
            self.m.d.comb += Assert(self.length >= count)
            self.m.d.sync += [self.length.eq(self.length - count), self.ahead.eq(self.ahead - count)]
            with self.m.If(self.ahead < count):
                self.m.d.sync += self.watching.eq(0)

    def clear(self, when: Any) -> None:
        """All leave."""
        with self.m.If(when):
            self.m.d.sync += [self.length.eq(0), self.watching.eq(0)]

    def at(self, position: Any) -> Any:
        """Whether the watched token is the one with so many before it."""
        return self.watching & (self.ahead == position)


def _marked(m: Module, insert: Any, entry: Any, mark: Any) -> None:
    """A token that goes in wears its mark on token, position and H: a bit stands for all."""
    m.d.comb += Assume(~insert | ((entry.token[0] == mark) & (entry.position[0] == mark) & (entry.h[0] == mark)))


def _wears(entry: Any, mark: Any) -> Any:
    """Whether a token that comes out has all of what it went in with."""
    return (entry.token[0] == mark) & (entry.position[0] == mark) & (entry.h[0] == mark)


def _holds(m: Module, stream: Any) -> None:
    """What a stream offers stays until it is taken."""
    payload = Value.cast(stream.payload)
    offered, before = Signal(), Signal(len(payload))
    m.d.sync += [offered.eq(stream.valid & ~stream.ready), before.eq(payload)]
    with m.If(offered):
        m.d.comb += Assert(stream.valid & (payload == before))


class ListsSpecification(Elaboratable):
    """Lists under any operations that keep their rules."""

    def __init__(self, unit: TokenLists) -> None:
        self.unit, self.p = unit, unit.p
        self.mark = Signal()
        self.inputs = [unit.append, unit.pop, unit.drop, unit.request, unit.query, unit.look_request, self.mark]

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.unit = u = self.unit
        p = self.p
        turn, awake = Signal(p.request_width), Signal()
        with m.If(~awake):
            m.d.sync += [turn.eq(turn + 1), awake.eq(turn.all())]
            m.d.comb += [u.clear.eq(1), Assume(u.request == turn), Assume(~(u.append | u.pop | u.drop))]
        m.d.comb += Assume(u.append + u.pop + u.drop <= 1)
        used = Signal(p.count_width)

        lengths = Array(Signal(p.count_width, name=f"length_{r}") for r in range(p.requests))
        length = lengths[u.request]
        m.d.comb += used.eq(sum(lengths))
        with m.If(u.append):
            m.d.comb += Assume(used < p.entries)
            m.d.sync += length.eq(length + 1)
        with m.If(u.pop):
            m.d.comb += Assume((length != 0) & (u.query == u.first))
            m.d.sync += length.eq(length - 1)
        with m.If(u.drop):
            m.d.sync += length.eq(0)
        with m.If(awake):
            m.d.comb += [
                Assert(u.count == length), Assert(u.some == (length != 0)),
                Assert(u.look_count == lengths[u.look_request]),
            ]

        owner = AnyConst(p.request_width)
        watching, ahead, where = Signal(), Signal(p.count_width), Signal(p.index_width)
        with m.If(watching):
            m.d.comb += Assert(~u.append | (u.entry != where))
            with m.If(u.request == owner):
                m.d.comb += [Assert(length > ahead), Assert((u.first == where) == (ahead == 0)),
                             Assert((u.last == where) == (ahead == length - 1))]
                with m.If(u.pop):
                    m.d.sync += [ahead.eq(ahead - 1), watching.eq(ahead != 0)]
                with m.If(u.drop):
                    m.d.sync += watching.eq(0)
        with m.Elif(self.mark & u.append & (u.request == owner)):
            m.d.sync += [watching.eq(1), ahead.eq(length), where.eq(u.entry)]
        return m


class PoolSpecification(Elaboratable):
    """A Shared Pool with any offers on its streams."""

    def __init__(self, unit: SharedPool) -> None:
        self.unit, self.p = unit, unit.p
        self.mark = Signal()
        u = unit
        self.inputs = [
            u.insert.valid, u.insert.payload, u.flush.valid, u.flush.payload, u.verdict.valid, u.verdict.payload,
            u.start.valid, u.start.payload, u.selected.ready, u.eligible, u.aging, self.mark]

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.unit = u = self.unit
        p = self.p
        owner = AnyConst(p.request_width)
        m.d.comb += u.look.eq(owner)
        told = u.verdict.payload
        judged = u.verdict.valid & u.verdict.ready & (told.request == owner)

        # A verdict stands until it is taken, and does not come while a round is under way.
        waiting, told_before, selecting_before = Signal(), Signal(len(told.as_value())), Signal(2)
        m.d.sync += [waiting.eq(u.verdict.valid & ~u.verdict.ready), told_before.eq(told.as_value()),
                     selecting_before.eq(Cat(u.selecting, selecting_before))]
        with m.If(waiting):
            m.d.comb += Assume(u.verdict.valid & (told.as_value() == told_before))
        with m.Elif(u.verdict.valid):
            m.d.comb += Assume(~u.selecting & (selecting_before == 0))

        # What the owner has, from what goes in and out: an insertion or a flush counts from the cycle after it was
        # taken, a choice is seen a cycle late, and what a verdict removes counts until the verdict is taken.
        owned, locked = _Watched(m, p.count_width + 1), Signal(p.count_width)
        insert, mark, flush, room = Signal(), Signal(), Signal(), Signal()
        coming = u.insert.valid & u.insert.ready & (u.insert.payload.request == owner)
        m.d.comb += Assume(~self.mark | (coming & ~owned.watching & ~mark))
        _marked(m, coming, u.insert.payload, self.mark)
        m.d.sync += [insert.eq(coming), mark.eq(self.mark), room.eq(~u.selected.valid | u.selected.ready),
                     flush.eq(u.flush.valid & u.flush.ready & (u.flush.payload == owner))]
        beat = u.selected.payload
        chosen = u.selected.valid & room & ~beat.end & (beat.entry.request == owner)
        stays = told.bonus & (told.accepted == locked) & (owned.length > locked)
        # it takes part if it did in the cycle before the choice
        part = Signal(2)
        m.d.sync += part.eq(Cat(u.eligible.bit_select(owner, 1), part))
        with m.If(chosen):
            m.d.sync += locked.eq(locked + 1)
            m.d.comb += [Assert(locked < owned.length), Assert(_wears(beat.entry, owned.at(locked))), Assert(part[1])]
        owned.put(insert, mark)
        owned.take(judged & stays, locked + 1)
        owned.clear((judged & ~stays) | flush)
        with m.If(judged | flush):
            m.d.sync += locked.eq(0)

        _holds(m, u.selected)
        self._match(m, owned, locked + chosen, waiting & (told.request == owner))
        self._progress(m)
        return m

    def _match(self, m: Module, owned: _Watched, locked: Any, removing: Any) -> None:
        """What a look shows is what the owner has, and never more than there is room for."""
        u, p = self.unit, self.p
        looked, awake = Signal(), Signal()
        with m.If(u.flush.ready):
            m.d.sync += awake.eq(1)
        m.d.sync += looked.eq(awake | u.flush.ready)
        # in the middle of a verdict of several cycles it shows what is left
        with m.If(looked & ~removing):
            m.d.comb += [Assert(u.match_count == owned.length), Assert(u.match_locked == locked),
                         Assert(sum(u.match[e] for e in range(p.entries)) == owned.length)]
            with m.If(owned.length > locked):
                m.d.comb += Assert(u.match_token[0] == owned.at(locked))
        m.d.comb += [Assert(u.used <= p.entries), Assert(u.full == (u.used == p.entries)), Assert(u.locked <= u.used),
                     Assert(~(u.insert.ready & u.full))]

    def _progress(self, m: Module) -> None:
        """Left alone, a full pool takes a verdict, a round ends, and the next can start."""
        u, p = self.unit, self.p
        step = p.request_width + 1
        limit = 2 * p.requests + step * (p.entries + p.requests + 1) + p.requests + 9
        quiet = Signal(range(limit + 1))
        with m.If(u.flush.valid | (u.insert.valid & ~u.full) | u.start.valid | ~u.selected.ready | u.verdict.valid):
            m.d.sync += quiet.eq(0)
        with m.Elif(quiet != limit):
            m.d.sync += quiet.eq(quiet + 1)
        with m.If(quiet == limit):
            m.d.comb += [Assert(~u.selecting), Assert(~u.selected.valid), Assert(u.start.ready == (u.locked == 0))]
        # a verdict waits for nothing but insertions and flushes, and takes no longer than there are tokens
        long, awake = Signal(range(p.entries + 5)), Signal()
        with m.If(u.start.ready | u.selecting):
            m.d.sync += awake.eq(1)
        with m.If(~awake | ~u.verdict.valid | u.verdict.ready | u.insert.valid | u.flush.valid):
            m.d.sync += long.eq(0)
        with m.Elif(long != p.entries + 4):
            m.d.sync += long.eq(long + 1)
        m.d.comb += Assert(long <= p.entries + 2)
        self._unlocks(m)

    def _unlocks(self, m: Module) -> None:
        """A full pool has room in the cycle after a verdict on a request with locked tokens was taken."""
        u = self.unit
        freed = Signal()
        judged = u.verdict.valid & u.verdict.ready & (u.verdict.payload.request == u.look)
        # what the look of the cycle before shows: a look and a verdict of one request
        m.d.sync += freed.eq(judged & u.full & (u.match_locked != 0))
        with m.If(freed):
            m.d.comb += Assert(~u.full)


class TournamentSpecification(Elaboratable):
    """The highest of all keys, whichever change."""

    def __init__(self, unit: Tournament) -> None:
        self.unit, self.p = unit, unit.p
        self.inputs = [unit.change, unit.request, unit.key]

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.unit = u = self.unit
        count = 1 << self.p.request_width
        keys = Array(Signal(self.p.key_width, name=f"key_of_{r}") for r in range(count))
        turn, awake, foreseen, begun = Signal(self.p.request_width), Signal(), Signal(self.p.request_width), Signal()
        with m.If(u.change):
            m.d.sync += keys[u.request].eq(u.key)
            m.d.comb += Assume(awake | (u.request == turn))
            m.d.sync += [turn.eq(turn + 1), awake.eq(awake | turn.all())]
        with m.If(awake & u.settled):
            for r in range(count):
                m.d.comb += [Assert(keys[r] <= u.best_key), Assert((keys[r] < u.best_key) | (u.best <= r)),
                             Assert((keys[r] == u.best_key) | (u.best != r))]
        m.d.sync += [foreseen.eq(u.upcoming), begun.eq(1)]
        with m.If(begun):
            m.d.comb += Assert(u.best == foreseen)
        return m
