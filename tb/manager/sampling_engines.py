"""Draft and verify engines that sample, by the rules of :mod:`sim_models.specdec`, around a Verilated Manager.

Time stands still while the Manager decides, as it does in :class:`sim_models.specdec.simulation.Simulation`; the
cycles of the engines pass only while it has nothing to do. So both see the same events in the same order. With
``overlap`` the Manager's cycles count as well, and tokens and verdicts come while it is busy with others.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

from sim_models.golden.manager.manager import END, REQUEST, Switches
from sim_models.specdec.draws import Draws, Place
from sim_models.specdec.fixed import ONE, quantise
from sim_models.specdec.models import Model, Session
from sim_models.specdec.rules import Rule, Verdict, verify
from sim_models.specdec.simulation import Costs
from tb.common.native import NativeSim
from tb.manager.manager_engines import ProtocolError, Widths, packed, unpacked
from tb.manager.manager_machine import Machine, Stuck

__all__ = ["Passed", "SamplingEngines", "run_sampling"]

#: cycles between two looks at the Manager; an engine takes at least as many with ``overlap``
LOOK = 8


@dataclasses.dataclass(frozen=True)
class Passed:
    """A verdict and what the Manager emitted for it; see :class:`sim_models.specdec.simulation.Record`."""

    time: int
    passed: int
    request: int
    drafts: tuple[int, ...]
    accepted: int
    matches: bool
    emitted: tuple[int, ...]


@dataclasses.dataclass
class _Context:
    """A request: ``tokens`` are prompt, emitted and live draft tokens, ``q`` belongs to the live ones."""

    tokens: list[int]
    known: int
    branch: int
    stop: int
    draft: "_Cache"
    target: "_Cache"
    q: list[Any] = dataclasses.field(default_factory=list)
    done: bool = False


class _Cache:
    """A model's session and the tokens that it holds."""

    def __init__(self, session: Session) -> None:
        self._session, self._seen = session, list[int]()

    def rows(self, tokens: list[int], count: int) -> Any:
        """The distributions behind the last ``count`` tokens."""
        same = 0
        while same < min(len(self._seen), len(tokens) - count) and self._seen[same] == tokens[same]:
            same += 1
        self._session.roll_back(same)
        self._seen = list(tokens)
        return self._session.extend(tokens[same:])[-count:]


class SamplingEngines:
    """Both engines and whoever sends requests.

    Parameters
    ----------
    draft, target: Model
    prompts, limits:
        Of request i; one without tokens wanted is not sent.
    costs: Costs
        A draft step takes in a row for each of its requests, also where it has to catch up.
    lanes: int
        Micro-batches.

    Members
    -------
    log: list of Passed
        Verdicts in the order in which the Manager took them.
    """

    def __init__(self, draft: Model, target: Model, prompts: Sequence[Sequence[int]], limits: Sequence[int],
                 rule: Rule, draws: Draws, costs: Costs, *, lanes: int = 1) -> None:
        self.rule, self.draws, self.costs, self.lanes = rule, draws, costs, lanes
        self.contexts = [_Context(list(p), len(p), len(p), len(p) + n, _Cache(draft.open(i)), _Cache(target.open(i)))
                         for i, (p, n) in enumerate(zip(prompts, limits, strict=True))]
        self.texts: list[list[int]] = [[] for _ in prompts]
        self.log: list[Passed] = []
        self._step: list[int] = []
        self._pass: dict[int, list[int]] = {}
        #: under way: (end, [(request, branch)]) of each step, (end, {request: tokens}) of the pass
        self._steps: list[tuple[int, list[tuple[int, int]]]] = []
        self._passing: tuple[int, dict[int, list[int]]] | None = None
        #: verdicts that were offered and not yet taken: time, tokens, verdict
        self._offered: list[tuple[int, int, tuple[int, ...], Verdict]] = []
        self._passes = 0
        self._emitted: dict[int, list[int]] = {}

    @property
    def arrivals(self) -> list[tuple[int, int, int, int]]:
        """All requests, as the Manager takes them."""
        return [(i, c.known, c.stop, c.tokens[-1]) for i, c in enumerate(self.contexts) if c.stop > c.known]

    @property
    def done(self) -> bool:
        """Whether every request is complete."""
        return all(c.done or c.stop == c.known for c in self.contexts)

    @property
    def next_due(self) -> int | None:
        """When a step or the pass ends."""
        return min([end for end, _ in self._steps] + ([self._passing[0]] if self._passing else []), default=None)

    def due_tokens(self, now: int) -> list[tuple[int, int, int]]:
        """Draft tokens of the steps that end by now, the lowest micro-batch first."""
        ended = sorted((s for s in self._steps if s[0] <= now), key=lambda s: s[1][0][0] % self.lanes)
        self._steps = [s for s in self._steps if s[0] > now]
        return [self._draft(*job) for _, jobs in ended for job in jobs]

    def due_verdicts(self, now: int) -> list[tuple[int, int, int, int]]:
        """Verdicts of a pass that ends by now, the lowest request first.

        The first token that was drafted and is not in the pass is tested on the bonus distribution, if it has come.
        """
        if self._passing is None or self._passing[0] > now:
            return []
        passed, self._passing, out = self._passing[1], None, []
        for request in sorted(passed):
            verdict = self.judge(request, passed[request])
            self._offered.append((now, request, tuple(passed[request]), verdict))
            out.append((request, verdict.accepted, verdict.token, int(verdict.matches)))
        return out

    def _draft(self, request: int, branch: int) -> tuple[int, int, int]:
        c = self.contexts[request]
        if c.done or c.branch != branch:
            return request, 0, 0            # comes too late
        q = c.draft.rows(c.tokens, 1)[0]
        token = self.rule.draft(q, self.draws, Place(request, len(c.tokens), branch))
        c.tokens.append(token)
        c.q.append(q)
        return request, token, min(quantise(float(q[token])), ONE)

    def judge(self, request: int, tokens: list[int]) -> Verdict:
        """The verdict on a request's tokens."""
        c, n = self.contexts[request], len(tokens)
        if tokens != c.tokens[c.known:c.known + n]:
            raise ProtocolError(f"request {request}: tokens {tokens} in a pass, {c.tokens[c.known:]} were drafted")
        p = c.target.rows(c.tokens[:c.known + n], n + 1)
        live = list(zip(c.tokens[c.known:], c.q, strict=True))
        return verify(self.rule, self.draws, Place(request, c.known, c.branch), live[:n],
                      live[n] if len(live) > n else None, p)

    def drafts(self, now: int, request: int, position: int, token: int, end: int) -> None:
        """A beat to the draft engine."""
        if end:
            jobs = [(r, self.contexts[r].branch) for r in self._step]
            self._steps.append((now + self.costs.draft(len(jobs), len(jobs)), jobs))
            self._step = []
            return
        c = self.contexts[request]
        if (position, token) != (len(c.tokens), c.tokens[-1]):
            raise ProtocolError(f"request {request} drafts at {position} behind token {token}, not {c.tokens}")
        self._step.append(request)

    def verifies(self, now: int, request: int, position: int, token: int, kind: int) -> None:
        """A beat to the verify engine."""
        if kind == END:
            rows = len(self._pass) + sum(map(len, self._pass.values()))
            self._passing = now + self.costs.verify(len(self._pass), rows), self._pass
            self._pass = {}
            self._passes += 1
        elif kind == REQUEST:
            if position != self.contexts[request].known:
                raise ProtocolError(f"request {request} in a pass at {position}, not {self.contexts[request].known}")
            self._pass[request] = []
        else:
            if position != self.contexts[request].known + len(self._pass[request]):
                raise ProtocolError(f"request {request}: a token of {position} behind {self._pass[request]}")
            self._pass[request].append(token)

    def emits(self, now: int, request: int, position: int, token: int, last: int, empty: int) -> None:
        """A token of a text; every request that is sent wants one."""
        c, texts = self.contexts[request], self._emitted.setdefault(request, [])
        if empty:
            raise ProtocolError(f"request {request} is answered with an empty beat")
        if c.done or position != c.known + len(texts):
            raise ProtocolError(f"request {request} emits at {position} behind {c.known} and {texts}")
        texts.append(token)
        self.texts[request].append(token)
        c.done = bool(last)

    def taken(self) -> None:
        """The Manager is done with the oldest verdict: what it emitted is certain, and the rest stays or goes."""
        time, request, tokens, verdict = self._offered.pop(0)
        c, emitted = self.contexts[request], self._emitted.pop(request)
        self.log.append(Passed(time, self._passes, request, tokens, verdict.accepted, verdict.matches,
                               tuple(emitted)))
        keep = verdict.matches and not c.done
        rest = slice(c.known + len(tokens) + 1, None)
        after, c.q = (c.tokens[rest], c.q[len(tokens) + 1:]) if keep else ([], [])
        c.tokens[c.known:] = [*emitted, *after]
        c.known += len(emitted)
        if not keep:
            c.branch = c.known


def run_sampling(machine: Machine, switches: Switches, engines: SamplingEngines, *, overlap: bool = False,
                 limit: int = 100_000) -> None:
    """Reset, and run until all requests are complete.

    Parameters
    ----------
    overlap: bool
        Whether the Manager's own cycles pass for the engines, too.
    limit: int
        Cycles of the Manager after which the run counts as stuck.
    """
    machine.restart(switches)
    sim, widths, begin, now, quiet = machine.sim, Widths.of(machine.p), machine.sim.cycle, 0, 0
    _push(sim, "requests", widths.requests, engines.arrivals)
    sent = {"drafted": 0, "verdicts": 0}
    while not engines.done or quiet < 2:
        if sim.cycle - begin > limit:
            raise Stuck(f"requests are not complete after {limit} cycles: {engines.texts}")
        sim.step(LOOK)
        came = _observe(sim, widths, engines, begin if overlap else None, now)
        idle = not sim.get("busy") and all(sim.total(name) == count for name, count in sent.items())
        quiet = quiet + 1 if idle and not came else 0
        if overlap:
            now = sim.cycle - begin
        elif quiet < 2 or engines.next_due is None:
            continue
        else:
            now, quiet = engines.next_due, 0
        for name, items in (("drafted", engines.due_tokens(now)), ("verdicts", engines.due_verdicts(now))):
            sent[name] += len(items)
            _push(sim, name, getattr(widths, name), items)


def _push(sim: NativeSim, name: str, widths: tuple[int, ...], items: Sequence[tuple[int, ...]]) -> None:
    if items:
        size = -(-sum(widths) // 8)
        sim.push(name, b"".join(packed(widths, item).to_bytes(size, "little") for item in items))


def _observe(sim: NativeSim, widths: Widths, engines: SamplingEngines, begin: int | None, now: int) -> bool:
    """Tell the engines what was transferred; whether anything was."""
    events: list[tuple[int, str, tuple[int, ...]]] = [(int(at), "taken", ()) for at in sim.accepted("verdicts")]
    for name, method in (("draft", "drafts"), ("verify", "verifies"), ("emitted", "emits")):
        beats, stamps = sim.take(name)
        events += [(int(at), method, unpacked(getattr(widths, name), int.from_bytes(beat.tobytes(), "little")))
                   for beat, at in zip(beats, stamps, strict=True)]
    for at, method, fields in sorted(events, key=lambda e: e[0]):
        if method == "taken":
            engines.taken()
        else:
            getattr(engines, method)(now if begin is None else at - begin, *fields)
    return bool(events)
