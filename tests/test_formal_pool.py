"""The pools never lose, duplicate or reorder a token, never hold too many, and never stand still: proven.

One token is watched, any of any request: how many stand before it is counted from what goes in and out, so it has
to come out exactly when none is left before it. Everything else may be anything in any cycle. Proofs are for all
cycles (ABC's property-directed reachability) where a number of frames is not stated; controls break the hardware.
"""

import inspect
import textwrap
from typing import Any

import pytest
from amaranth.asserts import AnyConst
from amaranth.hdl import Array, Assert, Assume, Cat, Elaboratable, Module, Signal, Value

import rtl.manager.tournament as tournaments
from rtl.manager import eager_pool, shared_pool, token_lists
from rtl.manager.eager_pool import EagerPool
from rtl.manager.shared_pool import SharedPool
from rtl.manager.token_lists import TokenLists
from rtl.manager.tournament import Tournament
from rtl.manager_layouts import EagerAction
from sim_models.params.manager import EagerPoolParams, SharedPoolParams, TokenListsParams, TournamentParams
from tests.formal_tools import Proven, Violated, check


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

        lengths = Array(Signal(p.count_width, name=f"length_{r}") for r in range(p.requests))
        length = lengths[u.request]
        with m.If(u.append):
            m.d.comb += Assume(~u.full)
            m.d.sync += length.eq(length + 1)
        with m.If(u.pop):
            m.d.comb += Assume(length != 0)
            m.d.sync += length.eq(length - 1)
        with m.If(u.drop):
            m.d.sync += length.eq(0)
        with m.If(awake):
            m.d.comb += [
                Assert(u.count == length), Assert(u.look_count == lengths[u.look_request]),
                Assert(u.used == sum(lengths)), Assert(u.used <= p.entries), Assert(u.full == (u.used == p.entries)),
            ]

        owner = AnyConst(p.request_width)
        watching, ahead, where = Signal(), Signal(p.count_width), Signal(p.index_width)
        with m.If(watching):
            m.d.comb += Assert(~u.append | (u.entry != where))
            with m.If(u.request == owner):
                m.d.comb += [Assert(length > ahead), Assert((u.first == where) == (ahead == 0))]
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
        insert = u.insert.valid & u.insert.ready & (u.insert.payload.request == owner)
        flush = u.flush.valid & u.flush.ready & (u.flush.payload == owner)
        judged = u.verdict.valid & u.verdict.ready & (told.request == owner)

        # A verdict stands until it is taken, and does not come while a round is under way.
        waiting, told_before, selecting_before = Signal(), Signal(len(told.as_value())), Signal(2)
        m.d.sync += [waiting.eq(u.verdict.valid & ~u.verdict.ready), told_before.eq(told.as_value()),
                     selecting_before.eq(Cat(u.selecting, selecting_before))]
        with m.If(waiting):
            m.d.comb += Assume(u.verdict.valid & (told.as_value() == told_before))
        with m.Elif(u.verdict.valid):
            m.d.comb += Assume(~u.selecting & (selecting_before == 0))

        # What the owner has, from what goes in and out; a choice is seen a cycle late, and what a verdict removes
        # counts until the verdict is taken, while others come in.
        length, locked = Signal(p.count_width + 1), Signal(p.count_width)
        watching, ahead = Signal(), Signal(p.count_width + 1)
        room = Signal()
        m.d.sync += room.eq(~u.selected.valid | u.selected.ready)
        beat = u.selected.payload
        chosen = u.selected.valid & room & ~beat.end & (beat.entry.request == owner)
        stays = told.bonus & (told.accepted == locked) & (length > locked)
        mark = self.mark & insert & ~watching
        m.d.comb += Assume(~insert | (u.insert.payload.token[0] == mark))
        with m.If(chosen):
            m.d.sync += locked.eq(locked + 1)
            m.d.comb += [Assert(locked < length), Assert(beat.entry.token[0] == (watching & (ahead == locked)))]
        with m.If(insert):
            m.d.sync += length.eq(length + 1)
            with m.If(mark):
                m.d.sync += [watching.eq(1), ahead.eq(length)]
        with m.If(judged & stays):
            m.d.sync += [length.eq(length - locked - 1), locked.eq(0), ahead.eq(ahead - locked - 1)]
            with m.If(ahead <= locked):
                m.d.sync += watching.eq(0)
        with m.Elif(judged | flush):
            m.d.sync += [length.eq(0), locked.eq(0), watching.eq(0)]

        _holds(m, u.selected)
        self._match(m, length, waiting, owner)
        self._progress(m, waiting)
        return m

    def _match(self, m: Module, length: Any, waiting: Any, owner: Any) -> None:
        """What a look shows is what the owner has, and never more than there is room for."""
        u, p = self.unit, self.p
        looked, length_then, awake = Signal(), Signal(p.count_width + 1), Signal()
        mine = u.verdict.valid & (u.verdict.payload.request == owner)
        with m.If(u.flush.ready):
            m.d.sync += awake.eq(1)
        # in the middle of a verdict of several cycles it shows what is left
        m.d.sync += [looked.eq((awake | u.flush.ready) & ~(mine & waiting)), length_then.eq(length)]
        with m.If(looked):
            m.d.comb += [Assert(u.match_count == length_then),
                         Assert(sum(u.match[e] for e in range(p.entries)) == length_then)]
        m.d.comb += [Assert(u.used <= p.entries), Assert(u.full == (u.used == p.entries)), Assert(u.locked <= u.used),
                     Assert(~(u.insert.ready & u.full))]

    def _progress(self, m: Module, waiting: Any) -> None:
        """Left alone, a full pool takes a verdict, a round ends, and the next can start."""
        u, p = self.unit, self.p
        step = p.request_width + 1
        limit = 2 * p.requests + step * (p.entries + p.requests + 1) + p.requests + 8
        quiet = Signal(range(limit + 1))
        with m.If(u.flush.valid | (u.insert.valid & ~u.full) | u.start.valid | ~u.selected.ready | u.verdict.valid):
            m.d.sync += quiet.eq(0)
        with m.Elif(quiet != limit):
            m.d.sync += quiet.eq(quiet + 1)
        with m.If(quiet == limit):
            m.d.comb += [Assert(~u.selecting), Assert(~u.selected.valid), Assert(u.start.ready == (u.locked == 0))]
        # a verdict waits for nothing but insertions, and takes no longer than there are tokens
        long = Signal(range(p.entries + 3))
        awake = Signal()
        with m.If(u.start.ready | u.selecting):
            m.d.sync += awake.eq(1)
        with m.If(~awake | ~u.verdict.valid | u.verdict.ready | u.insert.valid | u.flush.valid):
            m.d.sync += long.eq(0)
        with m.Elif(long != p.entries + 2):
            m.d.sync += long.eq(long + 1)
        m.d.comb += Assert(long <= p.entries)


def _holds(m: Module, stream: Any) -> None:
    """What a stream offers stays until it is taken."""
    payload = Value.cast(stream.payload)
    offered, before = Signal(), Signal(len(payload))
    m.d.sync += [offered.eq(stream.valid & ~stream.ready), before.eq(payload)]
    with m.If(offered):
        m.d.comb += Assert(stream.valid & (payload == before))


class EagerSpecification(Elaboratable):
    """A slice of the Eager Pool with any offers and moves."""

    def __init__(self, unit: EagerPool) -> None:
        self.unit, self.p = unit, unit.p
        self.mark = Signal()
        u = unit
        self.inputs = [u.insert.valid, u.insert.payload, u.command.valid, u.command.payload, u.move, u.move_request,
                       u.moved.ready, self.mark]

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.unit = u = self.unit
        p = self.p
        owner = AnyConst(p.request_width)
        m.d.comb += u.look.eq(owner)
        insert = u.insert.valid & u.insert.ready & (u.insert.payload.request == owner)
        command = u.command.valid & u.command.ready & (u.command.payload.request == owner)
        length, watching, ahead = Signal(p.count_width), Signal(), Signal(p.count_width)
        mark = self.mark & insert & ~watching
        m.d.comb += Assume(~insert | (u.insert.payload.token[0] == mark))

        # a token that moves is seen a cycle later
        expected, marked = Signal(), Signal()
        moving = u.moving & (u.move_request == owner)
        leaves = moving | (command & (u.command.payload.action == EagerAction.DROP_FIRST) & (length != 0))
        m.d.sync += [expected.eq(moving), marked.eq(watching & (ahead == 0))]
        with m.If(expected):
            m.d.comb += Assert(u.moved.valid & (u.moved.payload.request == owner)
                               & (u.moved.payload.token[0] == marked))
        with m.If(insert):
            m.d.sync += length.eq(length + 1)
            with m.If(mark):
                m.d.sync += [watching.eq(1), ahead.eq(length)]
        with m.Elif(leaves):
            m.d.comb += Assert(length != 0)
            m.d.sync += [length.eq(length - 1), ahead.eq(ahead - 1)]
            with m.If(ahead == 0):
                m.d.sync += watching.eq(0)
        with m.Elif(command & (u.command.payload.action == EagerAction.FLUSH)):
            m.d.sync += [length.eq(0), watching.eq(0)]

        # a look, the capacity, and progress: what shall move does, unless something else is done
        awake, looked, length_then = Signal(), Signal(), Signal(p.count_width)
        with m.If(u.command.ready):
            m.d.sync += awake.eq(1)
        m.d.sync += [looked.eq(awake | u.command.ready), length_then.eq(length)]
        with m.If(looked):
            m.d.comb += Assert(u.look_count == length_then)
        with m.If(u.command.ready & ~u.command.valid & ~(u.insert.valid & u.insert.ready) & u.move & u.moved.ready):
            m.d.comb += Assert(u.moving | (u.move_request != owner) | (length == 0))
        m.d.comb += [Assert(u.used <= p.entries), Assert(~(u.insert.ready & u.full))]
        _holds(m, u.moved)
        return m


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
        turn, awake = Signal(self.p.request_width), Signal()
        with m.If(u.change):
            m.d.sync += keys[u.request].eq(u.key)
            m.d.comb += Assume(awake | (u.request == turn))
            m.d.sync += [turn.eq(turn + 1), awake.eq(awake | turn.all())]
        with m.If(awake & u.settled):
            for r in range(count):
                m.d.comb += [Assert(keys[r] <= u.best_key), Assert((keys[r] < u.best_key) | (u.best <= r)),
                             Assert((keys[r] == u.best_key) | (u.best != r))]
        return m


def changed(module: Any, name: str, *changes: tuple[str, str]) -> Any:
    """A class of a module with other code."""
    text = textwrap.dedent(inspect.getsource(module))
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    space: dict[str, Any] = {"__name__": module.__name__}
    exec(compile(text, module.__file__, "exec"), space)
    return space[name]


def lists(entries: int, make: Any = TokenLists) -> ListsSpecification:
    return ListsSpecification(make(TokenListsParams(entries=entries, request_width=1)))


def eager(entries: int, make: Any = EagerPool) -> EagerSpecification:
    return EagerSpecification(make(EagerPoolParams(
        entries=entries, request_width=1, token_width=1, position_width=1)))


def tournament(request_width: int, make: Any = Tournament) -> TournamentSpecification:
    return TournamentSpecification(make(TournamentParams(request_width=request_width, key_width=2)))


def pool(entries: int, make: Any = SharedPool, request_width: int = 1) -> PoolSpecification:
    return PoolSpecification(make(SharedPoolParams(
        entries=entries, request_width=request_width, token_width=1, position_width=1, aging_width=1)))


@pytest.mark.parametrize("entries", [1, 2, 3])
def test_lists_keep_every_token_in_order(entries: int) -> None:
    spec = lists(entries)
    assert isinstance(check(spec, spec.inputs), Proven)


@pytest.mark.parametrize("entries", [1, 2])
def test_pool_keeps_every_token_in_order_and_never_stands_still(entries: int) -> None:
    spec = pool(entries)
    assert isinstance(check(spec, spec.inputs), Proven)


@pytest.mark.parametrize("change", [
    # a list that was empty hangs its entry behind one of another list
    ("self.pop | ((self.append | self.drop) & ~empty)", "self.pop | self.append | self.drop"),
    # the chain of free entries stands still
    ("free.eq(after_free.data)", "free.eq(free)"),
    # a list that was empty keeps its old first entry
    ("self.pop | (self.append & empty)", "self.pop"),
    # a popped entry is not free again
    ("self.used.eq(self.used - 1), free.eq(self.first)", "self.used.eq(self.used - 1)"),
    # a dropped list counts as one entry
    ("self.used - self.count", "self.used - 1"),
    # an entry more than there are
    ("all_used_once.eq(fresh == p.entries)", "all_used_once.eq(0)"),
], ids=["hang", "chain", "first", "popped", "dropped", "fresh"])
def test_broken_lists_are_noticed(change: tuple[str, str]) -> None:
    spec = lists(2, changed(token_lists, "TokenLists", change))
    assert isinstance(check(spec, spec.inputs), Violated)


@pytest.mark.parametrize("change", [
    # a token that nobody took yet is overwritten
    ("op.settled & room & ~over", "op.settled & ~over"),
    # the choice stays with the same token
    ("pending.write.en.eq(first_pending | last_pop | op.pick)", "pending.write.en.eq(first_pending | last_pop)"),
    # a full pool takes another token
    ("op.awake & ~self.full & ~(self.flush", "op.awake & ~(self.flush"),
    # the bonus token stays in the pool
    ("self.verdict.ready.eq(op.locked == 0)", "self.verdict.ready.eq(op.locked <= 1)"),
    # a rest stays although not all were accepted
    ("told.bonus & (told.accepted == op.locked) & op.pending", "told.bonus & op.pending"),
    # a flush in the middle of a verdict
    ("self.flush.ready.eq(op.awake & ~walking)", "self.flush.ready.eq(op.awake)"),
    # flushed tokens are found
    ("cam.every.eq(op.initial | op.drop)", "cam.every.eq(op.initial)"),
    # memory is not cleared after reset
    ("self.initial = Signal(init=1)", "self.initial = Signal()"),
    # a round does not notice that nothing is left
    ("over.eq((budget == 0) | (op.settled & ~tournament.best_key[-1]))", "over.eq(budget == 0)"),
    # verdicts wait until there is room
    ("self.verdict.valid & op.awake", "self.verdict.valid & op.awake & ~self.full"),
    # requests grow older for ever, and no round can start
    ("m.d.sync += aging.eq(0)", "m.d.sync += aging.eq(1)"),
], ids=["overwritten", "choice", "full", "bonus", "rest", "flush", "cam", "clear", "round", "verdict", "aging"])
def test_broken_pools_are_noticed(change: tuple[str, str]) -> None:
    # the smallest pool that shows it: what stands still shows late, and in a pool of one as well
    spec = pool(1 if "aging" in change[0] else 2, changed(shared_pool, "SharedPool", change))
    assert isinstance(check(spec, spec.inputs), Violated)


@pytest.mark.parametrize("entries", [1, 2])
def test_eager_pool_keeps_every_token_in_order(entries: int) -> None:
    spec = eager(entries)
    assert isinstance(check(spec, spec.inputs), Proven)


@pytest.mark.parametrize("change", [
    ("(~self.moved.valid | self.moved.ready)", "1"),
    ("& ~self.full & ~self.command.valid", "& ~self.full"),
    ("lists.pop.eq((command.action == EagerAction.DROP_FIRST) & (lists.count != 0))",
     "lists.pop.eq(command.action == EagerAction.DROP_FIRST)"),
    ("lists.drop.eq(command.action == EagerAction.FLUSH)", "lists.drop.eq(0)"),
    ("self.move & (lists.count != 0)", "self.move & (lists.count > 1)"),
], ids=["overwritten", "collision", "empty", "flush", "last"])
def test_broken_eager_pools_are_noticed(change: tuple[str, str]) -> None:
    spec = eager(2, changed(eager_pool, "EagerPool", change))
    assert isinstance(check(spec, spec.inputs), Violated)


@pytest.mark.parametrize("request_width", [1, 2])
def test_tournament_finds_the_highest_key_of_the_lowest_request(request_width: int) -> None:
    spec = tournament(request_width)
    assert isinstance(check(spec, spec.inputs), Proven)


@pytest.mark.parametrize("change", [
    ("Cat(odd, sibling[:p.key_width]) > Cat(0, key)", "Cat(~odd, sibling[:p.key_width]) > Cat(0, key)"),
    ("odd ^ lost", "odd"),
    ("self.settled.eq(~Cat(moving).any() if moving else 1)", "self.settled.eq(1)"),
    ("Cat(change & ~path[0], change & path[0])", "Cat(change, change & path[0])"),
], ids=["ties", "name", "settled", "sibling"])
def test_broken_tournaments_are_noticed(change: tuple[str, str]) -> None:
    spec = tournament(2, changed(tournaments, "Tournament", change))
    assert isinstance(check(spec, spec.inputs), Violated)
