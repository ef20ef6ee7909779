"""Golden model of the Shared Pool, cycle by cycle: queues of tokens, one a request, and a store of entries."""

import dataclasses

from sim_models.params.manager.pools.shared_pool import SharedPoolParams

__all__ = ["Inputs", "Outputs", "SharedPool", "Token"]


@dataclasses.dataclass(frozen=True)
class Token:
    """A draft token; H in units of 2^-15."""

    request: int
    position: int
    token: int
    h: int


@dataclasses.dataclass(frozen=True)
class Inputs:
    """What stands at the inputs in a cycle; None where a stream offers nothing.

    Members
    -------
    verdict: (request, accepted, bonus) or None
    start: int or None
        Capacity of a round.
    ineligible: frozenset of int
        Requests that take no part in a round; they count for choices of the next cycle.
    """

    insert: Token | None = None
    flush: int | None = None
    verdict: tuple[int, int, bool] | None = None
    start: int | None = None
    selected_ready: bool = True
    ineligible: frozenset[int] = frozenset()
    aging: int = 0
    look: int = 0


@dataclasses.dataclass(frozen=True)
class Outputs:
    """What the outputs show before the edge that ends a cycle.

    Members
    -------
    selected: Token or "end" or None
    match: int
        A bit an entry; with count, locked, first and token of the request that was looked for in the cycle
        before, after what was done in that cycle. first and token are None where undefined.
    """

    insert_ready: bool
    flush_ready: bool
    verdict_ready: bool
    start_ready: bool
    selected: Token | str | None
    match: int
    count: int
    match_locked: int
    first: int | None
    token: int | None
    used: int
    locked: int
    selecting: bool


@dataclasses.dataclass
class _Entry:
    index: int
    token: Token
    locked: bool = False


class _Free:
    """Which entry the next token gets: those never used in order, then the one freed last.

    The entries of a list that is freed as a whole come out in the list's order.
    """

    def __init__(self, entries: int) -> None:
        self.fresh, self.entries = 0, entries
        self.chain: list[int] = []

    def take(self) -> int:
        if self.fresh < self.entries:
            self.fresh += 1
            return self.fresh - 1
        return self.chain.pop(0)

    def give(self, freed: list[_Entry]) -> None:
        self.chain[:0] = [e.index for e in freed]


class SharedPool:
    """The pool.

    Parameters
    ----------
    p:
        Parameters of the pool.
    """

    def __init__(self, p: SharedPoolParams) -> None:
        self.p = p
        self.reset()

    def reset(self) -> None:
        """Forget everything; nothing is taken for 2 * requests cycles."""
        p = self.p
        self.lists: list[list[_Entry]] = [[] for _ in range(p.requests)]
        self.free = _Free(p.entries)
        self.ages = [0] * p.requests
        #: key of each request as the last change left it: (urgent age, H), None if it does not compete
        self.keys: list[tuple[int, int] | None] = [None] * p.requests
        self.waking = 2 * p.requests
        #: cycles until the last change of a key has reached the top
        self.unsettled = 0
        self.selecting = self.ending = self.walking = False
        #: what this cycle is for: "taken" (an insertion or flush of the cycle before), "verdict", "turn", "best"
        self.slot: str | None = None
        #: whose insertion or flush it is
        self.doing: int | None = None
        #: tokens, and locked ones, of a flush that is being done
        self.leaving = self.unlocking = 0
        self.budget = 0
        self.turn: int | None = None            # request that grows older next
        self.ineligible: frozenset[int] = frozenset()
        self.selected: Token | str | None = None
        self.seen: tuple[int, int, int, int | None, int | None] = (0, 0, 0, None, None)

    @property
    def used(self) -> int:
        """Tokens in the pool; those of a flush count for a cycle more."""
        return sum(map(len, self.lists)) + self.leaving

    @property
    def locked(self) -> int:
        """Tokens under verification; those of a flush count for a cycle more."""
        return sum(e.locked for entries in self.lists for e in entries) + self.unlocking

    @property
    def candidate(self) -> int | None:
        """The request whose first pending token comes next: the highest key, ties to the lowest request."""
        best = None
        for request, key in enumerate(self.keys):
            if key is not None and (best is None or key > self.keys[best]):     # type: ignore[operator]
                best = request
        return best

    def step(self, i: Inputs) -> Outputs:
        """One cycle: what the outputs show with these inputs; then the edge."""
        awake = not self.waking
        best = self.candidate
        settled = awake and not self.unsettled and self.slot != "taken"
        room = self.selected is None or i.selected_ready
        over = self.budget == 0 or (settled and best is None)
        choosing = self.selecting and settled and room and not over and self.slot == "best"
        start_ready = (awake and not self.selecting and not self.ending and self.turn is None
                       and not self.locked)
        flush_ready = awake and not self.walking and self.slot != "verdict"
        flushing = flush_ready and i.flush is not None
        insert_ready = awake and self.used < self.p.entries and not flushing
        inserting = insert_ready and i.insert is not None
        judging = self.slot == "verdict"
        last = judging and self._verdict_ends(i)
        outputs = Outputs(
            insert_ready, flush_ready, last, start_ready, self.selected, *self.seen, self.used, self.locked,
            self.selecting)

        # The round's state as it was in this cycle decides what follows.
        ends, closes = self.selecting and over, self.ending and room
        aging = self.turn if self.slot == "turn" else None
        slot = self._next_slot(i, inserting or flushing, awake, last)
        if self.selected is not None and i.selected_ready:
            self.selected = None
        self.unsettled = max(self.unsettled - 1, 0)
        if not awake:
            self.waking -= 1
            if self.waking == 0:
                self.unsettled = self.p.request_width
        elif judging:
            self._judge(i)
        elif choosing:
            assert best is not None
            self._choose(best, best not in self.ineligible)
        elif aging is not None:
            self._age(aging, i.aging)
        if ends:
            self.selecting, self.ending = False, True
        if closes:
            self.ending, self.selected, self.turn = False, "end", 0
        if start_ready and i.start is not None:
            self.selecting, self.budget = True, i.start
        self._look(i.look)
        self.slot, self.ineligible = slot, i.ineligible
        self._take(i.insert if inserting else None, i.flush if flushing else None)
        return outputs

    def _next_slot(self, i: Inputs, taken: bool, awake: bool, verdict_ends: bool) -> str | None:
        """What the next cycle is for."""
        if taken:
            return "taken"
        if awake and i.verdict is not None:
            # what a verdict means is found out a cycle ahead, and not while its request changes
            clear = self.walking or self.slot != "taken" or self.doing != i.verdict[0]
            return "verdict" if clear and not verdict_ends else None
        return "turn" if not awake or self.ending or self.turn is not None else "best"

    def _pending(self, request: int) -> list[_Entry]:
        return [e for e in self.lists[request] if not e.locked]

    def _look(self, request: int) -> None:
        entries, pending = self.lists[request], self._pending(request)
        self.seen = (sum(1 << e.index for e in entries), len(entries), len(entries) - len(pending),
                     entries[0].index if entries else None, pending[0].token.token if pending else None)

    def _change(self, request: int, urgent: int = 0, after: int = 0) -> None:
        """The request's key is that of its first pending token, ``after`` cycles from now on."""
        pending = self._pending(request)
        self.keys[request] = (urgent, pending[0].token.h) if pending else None
        self.unsettled = self.p.request_width + after

    def _take(self, token: Token | None, flushed: int | None) -> None:
        """An insertion or a flush: the lists change at once, all else when it is done in the next cycle."""
        self.doing = flushed if token is None else token.request
        self.leaving = self.unlocking = 0
        if flushed is not None:
            self.leaving = len(self.lists[flushed])
            self.unlocking = sum(e.locked for e in self.lists[flushed])
            self._drop(flushed, after=1)
        elif token is not None:
            first = not self._pending(token.request)
            self.lists[token.request].append(_Entry(self.free.take(), token))
            if first:
                self.ages[token.request] = 0
                self._change(token.request, after=1)

    def _drop(self, request: int, after: int = 0) -> None:
        self.free.give(self.lists[request])
        self.lists[request] = []
        self._change(request, after=after)

    def _verdict_ends(self, i: Inputs) -> bool:
        assert i.verdict is not None
        request, accepted, bonus = i.verdict
        return not (self.lists[request][0].locked if self.walking else self._rest_stays(request, accepted, bonus))

    def _rest_stays(self, request: int, accepted: int, bonus: bool) -> bool:
        pending = self._pending(request)
        return bonus and bool(pending) and accepted == len(self.lists[request]) - len(pending)

    def _judge(self, i: Inputs) -> None:
        """A step of a verdict; a rest that stays costs one, and one for each token that leaves."""
        assert i.verdict is not None
        request, accepted, bonus = i.verdict
        if not self.walking:
            self.walking = self._rest_stays(request, accepted, bonus)
            if not self.walking:
                self._drop(request)
            return
        gone = self.lists[request].pop(0)
        self.free.give([gone])
        self.walking = gone.locked
        if not gone.locked:
            self.ages[request] = 0
            self._change(request)

    def _choose(self, request: int, eligible: bool) -> None:
        if not eligible:
            self.keys[request] = None
            self.unsettled = self.p.request_width
            return
        entry = self._pending(request)[0]
        entry.locked = True
        self.budget -= 1
        self.selected = entry.token
        self.ages[request] = 0
        self._change(request)

    def _age(self, request: int, limit: int) -> None:
        """Make a request a round older, if ages count; also puts ineligible ones back into the race."""
        age = self.ages[request] = min(self.ages[request] + 1, (1 << self.p.age_width) - 1)
        if self._pending(request):
            self._change(request, age if 0 < limit <= age else 0)
        self.turn = request + 1 if request + 1 < self.p.requests else None
