"""The pools never lose, duplicate or reorder a token, never hold too many, and never stand still: proven.

Everything may stand at the inputs in any cycle. Proofs are for all cycles (ABC's property-directed reachability);
controls break the hardware.
"""

import inspect
import textwrap
from typing import Any

import pytest

import rtl.manager.pools.tournament as tournaments
from rtl.manager.pools import shared_pool, token_lists
from rtl.manager.pools.shared_pool import SharedPool
from rtl.manager.pools.token_lists import TokenLists
from rtl.manager.pools.tournament import Tournament
from sim_models.params.manager.pools.shared_pool import SharedPoolParams
from sim_models.params.manager.pools.token_lists import TokenListsParams
from sim_models.params.manager.pools.tournament import TournamentParams
from tests.formal_tools import Proven, Violated, check
from tests.rtl.manager.pools.pool_specifications import (
    ListsSpecification,
    PoolSpecification,
    TournamentSpecification,
)


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


def tournament(request_width: int, make: Any = Tournament) -> TournamentSpecification:
    return TournamentSpecification(make(TournamentParams(request_width=request_width, key_width=2)))


def pool(entries: int, make: Any = SharedPool, request_width: int = 1) -> PoolSpecification:
    return PoolSpecification(make(SharedPoolParams(
        entries=entries, request_width=request_width, token_width=1, position_width=1, aging_width=1)))


@pytest.mark.parametrize("entries", [1, 2, 3])
def test_lists_keep_every_token_in_order(entries: int) -> None:
    spec = lists(entries)
    assert isinstance(check(spec, spec.inputs), Proven)


@pytest.mark.parametrize("entries", [1, pytest.param(2, marks=pytest.mark.long)])
def test_pool_keeps_every_token_in_order_and_never_stands_still(entries: int) -> None:
    spec = pool(entries)
    # half a minute on an idle machine
    assert isinstance(check(spec, spec.inputs, timeout=1800), Proven)


@pytest.mark.parametrize("change", [
    # a list that was empty hangs its entry behind one of another list
    ("self.pop | ((self.append | self.drop) & self.some)", "self.pop | self.append | self.drop"),
    # the chain of free entries stands still
    ("free.eq(after_free.data)", "free.eq(free)"),
    # a list that was empty keeps its old first entry
    ("self.pop | (self.append & ~self.some)", "self.pop"),
    # a popped entry is not free again
    ("free.eq(self.query)", "free.eq(free)"),
    # an entry more than there are
    ("all_used_once.eq(fresh == p.entries - 1)", "all_used_once.eq(0)"),
], ids=["hang", "chain", "first", "popped", "fresh"])
def test_broken_lists_are_noticed(change: tuple[str, str]) -> None:
    spec = lists(2, changed(token_lists, "TokenLists", change))
    assert isinstance(check(spec, spec.inputs), Violated)


@pytest.mark.parametrize("change", [
    # a token that nobody took yet is overwritten
    ("op.settled & room & ~over", "op.settled & ~over"),
    # the choice stays with the same token
    ("| op.last_pop | op.pick)", "| op.last_pop)"),
    # a full pool takes another token
    ("op.awake & ~self.full & ~(self.flush", "op.awake & ~(self.flush"),
    # the bonus token stays in the pool
    ("self.verdict.ready.eq(op.judge & Mux(op.walking, last, ~stays))",
     "self.verdict.ready.eq(op.judge & Mux(op.walking, last | (left == 1), ~stays))"),
    # a rest stays although not all were accepted
    ("told.bonus & (told.accepted == op.ask.data)", "told.bonus"),
    # a flush in the middle of a verdict
    ("op.awake & ~op.judge & ~op.walking", "op.awake & ~op.judge"),
    # flushed tokens are found
    ("cam.every.eq(op.initial | op.drop)", "cam.every.eq(op.initial)"),
    # memory is not cleared after reset
    ("self.initial = Signal(init=1)", "self.initial = Signal()"),
    # a round does not notice that nothing is left
    ("over.eq(spent | (op.settled & ~tournament.best_key[-1]))", "over.eq(spent)"),
    # verdicts wait until there is room
    ("op.judge.eq(op.awake & clear", "op.judge.eq(op.awake & ~self.full & clear"),
    # requests grow older for ever, and no round can start
    ("m.d.sync += aging.eq(0)", "m.d.sync += aging.eq(1)"),
    # a flush of several tokens counts as one
    ("leaving.eq(Mux(op.drop, lists.count, op.pop))", "leaving.eq(op.drop | op.pop)"),
    # a pool that was full stays full
    ("with m.If(op.pop | (op.drop & lists.some))", "with m.If(op.pop)"),
    # the second of two pending tokens is forgotten
    ("Cat(1, op.pending, count + 1)", "Cat(1, 0, count + 1)"),
    # a request that takes no part is chosen
    ("op.may_choose & op.eligible)", "op.may_choose)"),
    # the answer of the other half
    ("Mux(tournament.upcoming[-1], answers[1], answers[0])", "answers[0]"),
    # H does not follow its token
    ("link.en.eq(op.insert & lists.some)", "link.en.eq(op.insert & (lists.count > 1))"),
    # a flush is taken while a verdict begins
    ("op.awake & ~op.judge & ~op.walking", "op.awake & ~op.walking"),
    # what a verdict means is found out while its request changes
    ("(op.request != told.request)", "1"),
    # the entry of a request that came to the top long ago
    ("with m.If(half == n)", "with m.If((half == n) & ~entry.any())"),
], ids=["overwritten", "choice", "full", "bonus", "rest", "flush", "cam", "clear", "round", "verdict", "aging",
        "leaving", "full again", "second", "part", "half", "h", "begun", "changing", "ahead"])
def test_broken_pools_are_noticed(change: tuple[str, str]) -> None:
    # the smallest pool that shows it: what stands still shows late, and in a pool of one as well
    spec = pool(1 if "aging" in change[0] else 2, changed(shared_pool, "SharedPool", change))
    assert isinstance(check(spec, spec.inputs), Violated)


@pytest.mark.parametrize("request_width", [1, 2])
def test_tournament_finds_the_highest_key_of_the_lowest_request(request_width: int) -> None:
    spec = tournament(request_width)
    assert isinstance(check(spec, spec.inputs), Proven)


@pytest.mark.parametrize("change", [
    ("Cat(0, key) < Cat(odd, sibling[:p.key_width])", "Cat(0, key) < Cat(~odd, sibling[:p.key_width])"),
    ("odd ^ lost", "odd"),
    ("self.settled.eq(settled if moving else 1)", "self.settled.eq(1)"),
    ("Cat(change & ~path[0], change & path[0])", "Cat(change, change & path[0])"),
], ids=["ties", "name", "settled", "sibling"])
def test_broken_tournaments_are_noticed(change: tuple[str, str]) -> None:
    spec = tournament(2, changed(tournaments, "Tournament", change))
    assert isinstance(check(spec, spec.inputs), Violated)
