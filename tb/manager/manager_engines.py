"""Draft and verify engines, as the Manager sees them: recorded tokens, and cycles by a cost model or at random."""

import dataclasses
import heapq
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rtl.manager.layouts import manager_settings
from sim_models.golden.manager.manager import END, REQUEST, Inputs, Outputs, Switches
from sim_models.params.manager.draft_controller import TAU_ENTRIES
from sim_models.params.manager.manager import ManagerParams
from sim_models.params.manager.pools.pool import H_WIDTH
from sim_models.specdec.fixed import ONE
from sim_models.specdec.traces import RequestTrace

__all__ = ["Engines", "ProtocolError", "Widths", "expected_texts", "outputs", "packed", "random_traces",
           "settings_value", "unpacked"]


class ProtocolError(AssertionError):
    """The Manager said what it must not say."""


class Engines:
    """Both engines and whoever sends requests.

    Parameters
    ----------
    requests: sequence of RequestTrace
        Request i has number i.
    draft_cycles: function of (requests, place)
        Cycles of a draft step, with the draft's FC layers near the banks (0) or on tiles (1).
    verify_cycles: function of (requests, rows, place)
        Cycles of a verification pass, with the target's attention in such a place.
    gen:
        With it, tokens and verdicts come in random order.
    limit: int or None
        Tokens wanted of each request (default: all that the trace has).

    Members
    -------
    texts: list of lists of int
        Tokens emitted, by request.
    finished: set of int
        Requests whose last token came.
    intervals: list of (kind, lane, begin, end)
        Steps ("draft") and passes ("verify", lane 0), for a timeline.
    passes: list of lists of int
        The requests of each pass, in order.
    """

    def __init__(self, requests: Sequence[RequestTrace], draft_cycles: Callable[[int, int], int],
                 verify_cycles: Callable[[int, int, int], int], *, lanes: int = 1, limit: int | None = None,
                 gen: np.random.Generator | None = None) -> None:
        self.requests, self.lanes, self.gen = requests, lanes, gen
        self.draft_cycles, self.verify_cycles = draft_cycles, verify_cycles
        self.limits = [len(r.target) if limit is None else min(limit, len(r.target)) for r in requests]
        self.texts: list[list[int]] = [[] for _ in requests]
        self.finished: set[int] = set()
        self.intervals: list[tuple[str, int, int, int]] = []
        self.passes: list[list[int]] = []
        #: request and position of those that want no token and were not answered yet
        self.unwanted: list[tuple[int, int]] = []
        self._waiting = [i for i, n in enumerate(self.limits) if n]
        self._arriving: list[tuple[int, int, int, int]] = []
        self._new: tuple[int, int, int, int] | None = None
        #: text of each request behind its prompt as the draft engine believes it
        self._belief: list[list[int]] = [[] for _ in requests]
        self._step: list[tuple[int, int, int]] = []
        self._pass: dict[int, tuple[int, list[int]]] = {}
        self._passing = 0
        #: a step and a pass whose lists have ended: when, and the cycles they take by the mapping of 2 cycles later
        self._begun: list[tuple[int, Callable[[tuple[int, int]], None]]] = []
        self._heaps: tuple[list[Any], list[Any]] = ([], [])
        self._offered: list[Any] = [None, None]
        self._serial = 0

    #: what is offered while streams must be still
    nothing = Inputs(draft_ready=False, verify_ready=False, emitted_ready=False)

    @property
    def done(self) -> bool:
        """Whether every request is complete."""
        return len(self.finished) == sum(n > 0 for n in self.limits)

    def arrivals(self) -> list[tuple[int, int, int, int]]:
        """All requests at once, as the Manager takes them."""
        out = []
        for i in self._waiting:
            prompt = self.requests[i].prompt
            out.append((i, len(prompt), len(prompt) + self.limits[i], prompt[-1]))
        self._waiting = []
        return out

    def inputs(self, now: int, ready: float = 1.0) -> Inputs:
        """What is offered in a cycle; outputs are taken with probability ``ready``."""
        if not self._arriving and self._waiting:
            self._arriving = self.arrivals()
        if self._new is None and self._arriving:
            self._new = self._arriving.pop(0)
        for k, heap in enumerate(self._heaps):
            if self._offered[k] is None and heap and heap[0][0] <= now:
                self._offered[k] = heapq.heappop(heap)[-1]
        if self.gen is None:
            return Inputs(self._new, self._offered[0], self._offered[1])
        # what the softmax unit does is only counted: anything will do
        takes, softmax = (self.gen.random(3) < ready).tolist(), (self.gen.random(2) < 0.3).tolist()
        return Inputs(self._new, self._offered[0], self._offered[1], *takes, *softmax)

    def idle_until(self, now: int) -> int | None:
        """The cycle of the next event, if nothing is offered now."""
        if self._new or self._arriving or self._waiting or self._begun or any(self._offered):
            return None
        times = [heap[0][0] for heap in self._heaps if heap]
        return max(min(times), now) if times else None

    def observe(self, now: int, i: Inputs, o: Outputs) -> None:
        """Take over what was transferred in a cycle."""
        if i.requests and o.requests_ready:
            self._new = None
        if i.drafted and o.drafted_ready:
            self._offered[0] = None
        if i.verdicts and o.verdicts_ready:
            self._offered[1] = None
            self._passing -= 1
        self.mapped(now, o.mapping)
        if o.draft and i.draft_ready:
            self.drafts(now, *o.draft)
        if o.verify and i.verify_ready:
            self.verifies(now, *o.verify)
        if o.emitted and i.emitted_ready:
            self.emits(*o.emitted)

    def mapped(self, now: int, mapping: tuple[int, int]) -> None:
        """Where operators run in a cycle."""
        while self._begun and self._begun[0][0] + 2 <= now:
            self._begun.pop(0)[1](mapping)

    def drafts(self, now: int, request: int, position: int, token: int, end: int) -> None:
        """A beat to the draft engine."""
        if end:
            step, self._step = self._step, []
            if not step:
                raise ProtocolError(f"cycle {now}: a draft step without a request")

            def begin(mapping: tuple[int, int]) -> None:
                cycles = self.draft_cycles(len(step), mapping[0])
                self._schedule(0, now + cycles, step)
                self.intervals.append(("draft", step[0][0] % self.lanes, now, now + cycles))
            self._begun.append((now, begin))
            return
        r, belief = self.requests[request], self._belief[request]
        index = position - len(r.prompt)
        if not 0 <= index <= len(belief) or token != ([r.prompt[-1], *belief])[index]:
            raise ProtocolError(f"cycle {now}: request {request} drafts at {position} behind token {token}, and "
                                f"its text is {belief}")
        if {k % self.lanes for k, _, _ in self._step} - {request % self.lanes}:
            raise ProtocolError(f"cycle {now}: a draft step of several micro-batches")
        del belief[index:]
        wrong = next((k for k, (a, b) in enumerate(zip(belief, r.target, strict=False)) if a != b), None)
        drafted, probability = r.draft_token(index, wrong)
        belief.append(drafted)
        self._step.append((request, drafted, probability))

    def verifies(self, now: int, request: int, position: int, token: int, kind: int) -> None:
        """A beat to the verify engine."""
        if kind == END:
            count, rows = len(self._pass), sum(1 + len(tokens) for _, tokens in self._pass.values())
            if not self._pass or self._passing:
                raise ProtocolError(f"cycle {now}: an empty pass, or two at a time")
            verdicts = []
            for r, (base, tokens) in self._pass.items():
                accepted, following, _ = self.requests[r].verdict(base - len(self.requests[r].prompt), tokens, None)
                verdicts.append((r, accepted, following, accepted == len(tokens)))

            def begin(mapping: tuple[int, int]) -> None:
                cycles = self.verify_cycles(count, rows, mapping[1])
                self._schedule(1, now + cycles, verdicts)
                self.intervals.append(("verify", 0, now, now + cycles))
            self._begun.append((now, begin))
            self._passing = len(verdicts)
            self.passes.append(list(self._pass))
            self._pass = {}
        elif kind == REQUEST:
            if request in self._pass or position != len(self.requests[request].prompt) + len(self.texts[request]):
                raise ProtocolError(f"cycle {now}: request {request} in a pass at position {position}")
            self._pass[request] = position, []
        else:
            base, tokens = self._pass[request]
            if position != base + len(tokens):
                raise ProtocolError(f"cycle {now}: request {request}, token of {position} behind {len(tokens)}")
            tokens.append(token)

    def emits(self, request: int, position: int, token: int, last: int, empty: int) -> None:
        """A token of a text, or the answer to a request that wanted none."""
        if empty:
            if (request, position) not in self.unwanted or (token, last) != (0, 1):
                raise ProtocolError(
                    f"an empty beat of request {request} at {position}, where {self.unwanted} are due")
            self.unwanted.remove((request, position))
            return
        text, belief = self.texts[request], self._belief[request]
        if request in self.finished or position != len(self.requests[request].prompt) + len(text):
            raise ProtocolError(f"request {request} emits at position {position} behind {len(text)} tokens")
        if belief[len(text):len(text) + 1] != [token]:
            belief[len(text):] = [token]
        text.append(token)
        if last:
            self.finished.add(request)

    def due(self, kind: int, now: int) -> list[Any]:
        """Draft tokens (kind 0) or verdicts (1) that are there by now and were not offered."""
        heap, out = self._heaps[kind], []
        while heap and heap[0][0] <= now:
            out.append(heapq.heappop(heap)[-1])
        self._passing -= len(out) if kind else 0
        return out

    @property
    def next_mapped(self) -> int | None:
        """When the mapping counts for a step or pass that has begun; None without one."""
        return self._begun[0][0] + 2 if self._begun else None

    @property
    def next_due(self) -> int | None:
        """When the next token or verdict will be there; None while nothing is under way."""
        return min((heap[0][0] for heap in self._heaps if heap), default=None)

    @property
    def next_offer(self) -> int | None:
        """When another token or verdict will be offered beside what is; None while nothing else is under way."""
        return min((heap[0][0] for heap, offered in zip(self._heaps, self._offered, strict=True)
                    if heap and offered is None), default=None)

    def _schedule(self, kind: int, time: int, items: list[Any]) -> None:
        order = list(range(len(items))) if self.gen is None else self.gen.permutation(len(items)).tolist()
        for k in order:
            self._serial += 1
            heapq.heappush(self._heaps[kind], (time, self._serial, items[k]))


def random_traces(gen: np.random.Generator, count: int, length: int, *, vocab: int = 50, depth: int = 32,
                  right: Sequence[float] = (0.0, 0.3, 0.7, 0.95, 1.0), end: int | None = None) -> list[RequestTrace]:
    """Requests whose drafts are right with a probability each, in turn; with ``end``, that token is among them."""
    out = []

    def token() -> int:
        return int(gen.integers(vocab))

    def chance() -> int:
        return int(gen.choice([ONE, ONE - 1, 1, 0, *gen.integers(ONE // 2, ONE, 12)]))

    for n in range(count):
        target = [token() for _ in range(int(gen.integers(1, length + 1)))]
        if end is not None and gen.random() < 0.7:
            target[int(gen.integers(len(target)))] = end
        draft = []
        for t in target:
            good = gen.random() < right[n % len(right)]
            other = end if end is not None and gen.random() < 0.2 else token()
            draft.append((t if good else other, chance()))
        branches = {i: tuple((token(), chance()) for _ in range(depth))
                    for i, (t, d) in enumerate(zip(target, draft, strict=True)) if d[0] != t}
        prompt = tuple(token() for _ in range(int(gen.integers(1, 5))))
        out.append(RequestTrace(prompt, tuple(target), tuple(draft), branches))
    return out


def expected_texts(requests: Sequence[RequestTrace], end: int | None = None) -> list[list[int]]:
    """What decoding with the target alone emits."""
    texts = [list(r.target) for r in requests]
    return [t[:t.index(end) + 1] if end in t else t for t in texts]


@dataclasses.dataclass(frozen=True)
class Widths:
    """Bits of the fields of each stream's payload, as in ``rtl.manager.layouts``."""

    requests: tuple[int, ...]
    drafted: tuple[int, ...]
    verdicts: tuple[int, ...]
    draft: tuple[int, ...]
    verify: tuple[int, ...]
    emitted: tuple[int, ...]

    @classmethod
    def of(cls, p: ManagerParams) -> "Widths":
        """Of a Manager with these parameters."""
        r, position, token = p.request_width, p.position_width, p.token_width
        return cls((r, position, position, token), (r, token, H_WIDTH), (r, p.length_width, token, 1),
                   (r, position, token, 1), (r, position, token, 2), (r, position, token, 1, 1))


def packed(widths: Sequence[int], values: Sequence[int]) -> int:
    """Fields as a payload."""
    word = shift = 0
    for width, value in zip(widths, values, strict=True):
        word |= int(value) << shift
        shift += width
    return word


def unpacked(widths: Sequence[int], word: int) -> tuple[int, ...]:
    """The fields of a payload."""
    values = []
    for width in widths:
        values.append(word & ((1 << width) - 1))
        word >>= width
    return tuple(values)


def outputs(ready: Sequence[bool], beats: Sequence[tuple[int, ...] | None], busy: bool, dlm_fc: int,
            tlm_attention: int) -> Outputs:
    """Outputs from what a simulator gave, streams in the order of their fields."""
    draft, verify, emitted = beats
    return Outputs(ready[0], ready[1], ready[2], draft, verify, emitted, busy,     # type: ignore[arg-type]
                   (dlm_fc, tlm_attention))


def settings_value(p: ManagerParams, s: Switches) -> int:
    """Settings as the port has them."""
    layout = manager_settings(p)
    values = {
        "policy": s.policy, "tabled": s.taus is not None, "shared": s.shared, "eager": s.eager, "dynamic": s.dynamic,
        **{f"tau_{n}": tau for n, tau in enumerate(s.taus or (0,) * TAU_ENTRIES)},
        "initial_dlm_fc": s.initial[0], "initial_tlm_attention": s.initial[1],
        "stop_at_end": s.end_token is not None, "end_token": s.end_token or 0, "max_draft": s.max_draft,
        "tau": s.tau, "capacity": s.capacity, "start": s.start, "engines": s.engines,
        "dlm_fc_low": s.dlm_fc[0], "dlm_fc_high": s.dlm_fc[1],
        "tlm_attention_low": s.tlm_attention[0], "tlm_attention_high": s.tlm_attention[1],
    }
    word = 0
    for name, field in layout:
        value = int(values[str(name)])
        if value >> field.width:
            raise ValueError(f"{name} has {field.width} bits, {value} does not fit")
        word |= value << field.offset
    return word
