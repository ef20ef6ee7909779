"""Long runs of the golden model of the Manager with softmax unit, which leap over cycles without a decision.

``tests/rtl/manager/test_saddle_leap.py`` has the proof that a run that leaps shows what one shows that does not, and
``tests/rtl/manager/test_saddle_manager_native.py`` that the RTL shows the same in every cycle.
"""

import dataclasses
from collections.abc import Callable, Sequence

from sim_models.golden.manager.saddle_manager import Inputs, SaddleManager
from tb.manager.manager_engines import Engines
from tb.manager.manager_machine import Stuck
from tb.manager.saddle_play import Feed, Vector

__all__ = ["Exposed", "Leaps", "exposed"]

Span = tuple[int, int]
"""First cycle, and the one behind the last."""


@dataclasses.dataclass(frozen=True)
class Exposed:
    """Cycles of deciding, by what the engines do meanwhile.

    Members
    -------
    deciding: int
        The Manager or the softmax unit is at work.
    drafter: int
        Of these, the draft engine computes no step: what the next step waits for.
    machine: int
        Of these, neither engine computes: what nothing hides.
    """

    deciding: int
    drafter: int
    machine: int


class Leaps:
    """Runs a golden model with engines that take every beat at once.

    Parameters
    ----------
    model:
        A model after reset.
    make: function of (request, token, probability)
        The vector of a draft token.

    Members
    -------
    deciding: list of spans
        When the Manager or the softmax unit was at work.
    leapt: int
        Cycles that were leapt over.
    """

    def __init__(self, model: SaddleManager, make: Callable[[int, int, int], Vector]) -> None:
        self.model, self.feed = model, Feed(model.p, make)
        self.deciding: list[Span] = []
        self.leapt = 0

    def run(self, engines: Engines, limit: int, *, leap: bool = True) -> int:
        """Run until all requests are complete and nothing is left to decide: the cycles that took."""
        model, feed = self.model, self.feed
        now, quiet = 0, False
        while not (engines.done and quiet):
            if now >= limit:
                raise Stuck(f"{len(engines.finished)} of {len(engines.requests)} requests are complete after {limit} "
                            f"cycles")
            seen = engines.inputs(now)
            i = feed.inputs(seen)
            count = self._room(now, i, engines) if leap else 0
            if count > 1:
                model.leap(count, feed.skip(count) if i.logits is not None else None)
                quiet = not model.softmax_busy
                self._decides(now, count, not quiet)
                self.leapt += count
                now += count
                continue
            o = model.step(i)
            engines.observe(now, seen, feed.outputs(i, o))
            quiet = not o.busy
            self._decides(now, 1, o.busy)
            now += 1
        return now

    def _room(self, now: int, i: Inputs, engines: Engines) -> int:
        """Cycles that may be leapt over."""
        model = self.model
        if not model.rests or i.requests or i.verdicts or engines.next_mapped is not None:
            return 0
        ends = [t for t in (engines.next_offer, model.softmax.next_shown) if t is not None]
        if i.logits is not None:
            beats = self.feed.left - 1
            if not self.feed.began or not model.softmax.moves:
                return 0
            ends.append(now + beats)
        return min(ends) - now if ends else 0

    def _decides(self, now: int, count: int, busy: bool) -> None:
        if busy and self.deciding and self.deciding[-1][1] == now:
            self.deciding[-1] = self.deciding[-1][0], now + count
        elif busy:
            self.deciding.append((now, now + count))


def exposed(deciding: Sequence[Span], intervals: Sequence[tuple[str, int, int, int]]) -> Exposed:
    """What of the deciding the engines' steps and passes leave open."""
    draft = _joined([(begin, end) for kind, _, begin, end in intervals if kind == "draft"])
    both = _joined([(begin, end) for _, _, begin, end in intervals])
    total = sum(end - begin for begin, end in deciding)
    return Exposed(total, total - _common(deciding, draft), total - _common(deciding, both))


def _joined(spans: Sequence[Span]) -> list[Span]:
    """The same cycles as spans that do not touch, in order."""
    out: list[Span] = []
    for begin, end in sorted(spans):
        if out and begin <= out[-1][1]:
            out[-1] = out[-1][0], max(end, out[-1][1])
        else:
            out.append((begin, end))
    return out


def _common(a: Sequence[Span], b: Sequence[Span]) -> int:
    """Cycles that are in both of two ordered lists of spans."""
    total = i = j = 0
    while i < len(a) and j < len(b):
        total += max(0, min(a[i][1], b[j][1]) - max(a[i][0], b[j][0]))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return total
