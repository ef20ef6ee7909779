"""Sampling through the Manager's RTL: texts as the simulation has them, and a law that is the target's."""

import math
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from sim_models.golden.manager.draft_controller import CONFIDENCE, FIXED
from sim_models.golden.manager.manager import Switches
from sim_models.specdec.draws import Draws, KeyedDraws, Place
from sim_models.specdec.enumeration import target_law
from sim_models.specdec.fixed import quantise
from sim_models.specdec.models import LlamaModel, Model
from sim_models.specdec.policies import Confidence, Cumulative, Fixed, LoadTau, Policy
from sim_models.specdec.rules import Sampling, Verdict
from sim_models.specdec.simulation import Roofline, Simulation
from sim_models.specdec.traces import shipped_models
from tb.manager.manager_machine import Machine
from tb.manager.sampling_engines import LOOK, SamplingEngines, run_sampling
from tests.designs.run import BUILDS
from tests.models.specdec.cases import random_pair
from tests.rtl.manager.test_manager_native import POOLS, SMALL

TAUS = (0.2, 0.4, 0.5, 0.5, 0.6, 0.7, 0.8, 0.9)
#: settings, and the policy that they stand for
CASES: dict[str, tuple[Switches, Callable[[], Policy]]] = {
    "fixed": (Switches(policy=FIXED, max_draft=3, shared=False, eager=False), lambda: Fixed(3)),
    "none": (Switches(policy=FIXED, max_draft=0), lambda: Fixed(0)),
    "-d": (Switches(tau=quantise(0.3), shared=False, eager=False), lambda: Cumulative(0.3)),
    "-p": (Switches(tau=quantise(0.3), eager=False, capacity=7), lambda: Cumulative(0.3)),
    "full": (Switches(tau=quantise(0.05)), lambda: Cumulative(0.05)),
    "full, 2 engines": (Switches(tau=quantise(0.05), engines=2, start=4, capacity=9), lambda: Cumulative(0.05)),
    "never stops": (Switches(tau=0, max_draft=6, capacity=5), lambda: Cumulative(0)),
    "confidence": (Switches(policy=CONFIDENCE, tau=quantise(0.4)), lambda: Confidence(0.4)),
    "table": (Switches(taus=tuple(map(quantise, TAUS)), engines=2), lambda: LoadTau(TAUS)),
    "end token": (Switches(tau=quantise(0.05), end_token=1), lambda: Cumulative(0.05)),
}


class Redeciding(Simulation):
    """As the Manager does, it looks anew at what is due after each step that begins."""

    def _start(self) -> None:
        while True:
            before = self.steps.copy(), self.passed
            allowed, self.engines = self.engines, min(self.engines, sum(s is not None for s in self.steps) + 1)
            super()._start()
            self.engines = allowed
            if (self.steps, self.passed) == before:
                return


def _simulation(machine: Machine, switches: Switches, policy: Policy, models: tuple[Model, Model],
                prompts: list[list[int]], limits: list[int], seed: int, costs: Roofline) -> Simulation:
    simulation = Redeciding(*models, prompts, limits, policy, switches.settings(machine.p), rule=Sampling(),
                            draws=KeyedDraws(seed), costs=costs, end=switches.end_token, engines=switches.engines)
    simulation.run()
    return simulation


def _compare(simulation: Simulation, engines: SamplingEngines) -> int:
    """Every verdict with its time, and the texts; how many tokens."""
    want = [(r.time, r.passed, r.request, tuple(e.token for e in r.drafts), r.accepted, r.matches, r.emitted)
            for r in simulation.log]
    got = [(g.time, g.passed, g.request, g.drafts, g.accepted, g.matches, g.emitted) for g in engines.log]
    for n, (a, b) in enumerate(zip(got, want, strict=False)):
        assert a == b, f"verdict {n}"
    assert len(got) == len(want)
    assert engines.texts == simulation.outputs
    return sum(map(len, engines.texts))


@pytest.mark.parametrize("entries", [1, 7, 16])
def test_texts_are_those_of_the_simulation(entries: int) -> None:
    """Every verdict of every pass, for all policies, pool switches, sizes of the pools and costs."""
    p = POOLS.get(entries, SMALL)
    machine, matched = Machine(p, Switches(), BUILDS), 0
    for number, (name, (switches, policy)) in enumerate(CASES.items()):
        switches = switches.fitted(p)
        for seed in range(2):
            gen = np.random.default_rng([number, seed])
            models = random_pair(10 * number + seed, 5)
            prompts = [gen.integers(5, size=int(gen.integers(1, 4))).tolist() for _ in range(p.requests)]
            limits = [int(n) for n in gen.integers(0, 10, p.requests)]
            # a step that catches up takes no longer
            costs = Roofline(int(gen.integers(1, 6)), 0, int(gen.integers(1, 30)), int(gen.integers(1, 4)))
            simulation = _simulation(machine, switches, policy(), models, prompts, limits, seed, costs)
            engines = SamplingEngines(*models, prompts, limits, Sampling(), KeyedDraws(seed), costs,
                                      lanes=p.lanes)
            run_sampling(machine, switches, engines)
            assert _compare(simulation, engines) > 0, (name, seed)
            matched += sum(r.matches for r in simulation.log)
    assert matched > 20


def test_real_distributions_are_sampled_as_the_simulation_does() -> None:
    """The shipped pair at temperature 0.8."""
    p = SMALL.replace(token_width=9)
    draft, target, prompts = shipped_models()
    models: tuple[Model, Model] = LlamaModel(draft.model, 0.8), LlamaModel(target.model, 0.8)
    machine, switches = Machine(p, Switches(), BUILDS), CASES["full"][0].fitted(p)
    starts, limits = [prompts[0], prompts[14], *[[0]] * 6], [9, 6, *[0] * 6]
    costs = Roofline(2, 0, 9, 1)
    simulation = _simulation(machine, switches, CASES["full"][1](), models, starts, limits, 1, costs)
    engines = SamplingEngines(*models, starts, limits, Sampling(), KeyedDraws(1), costs, lanes=SMALL.lanes)
    run_sampling(machine, switches, engines)
    assert _compare(simulation, engines) == 15


# The law


class ReplacesFromP(Sampling):
    """A rejected token is replaced by one drawn from p instead of the residual."""

    def correct(self, q: np.ndarray, p: np.ndarray, draws: Draws, place: Place) -> int:
        return self.target(p, draws, place)


class SharpensQ(Sampling):
    """The test uses a sharper distribution than the one that was drawn from."""

    def accepts(self, token: int, q: np.ndarray, p: np.ndarray, draws: Draws, place: Place) -> bool:
        return super().accepts(token, q ** 2 / (q ** 2).sum(), p, draws, place)


class TrustsTheWaiting(SamplingEngines):
    """Where all tokens of a pass are accepted, the next drafted one is the bonus without a test."""

    def judge(self, request: int, tokens: list[int]) -> Verdict:
        verdict, c, n = super().judge(request, tokens), self.contexts[request], len(tokens)
        if verdict.accepted == n and len(c.q) > n:
            return Verdict(n, c.tokens[c.known + n], True)
        return verdict


class BonusAsWhenGreedy(SamplingEngines):
    """The bonus is drawn whatever was drafted, and offered to whatever token equals it."""

    def judge(self, request: int, tokens: list[int]) -> Verdict:
        verdict, c, n = super().judge(request, tokens), self.contexts[request], len(tokens)
        if verdict.accepted < n:
            return verdict
        p = c.target.rows(c.tokens[:c.known + n], 1)[0]
        token = self.rule.target(p, self.draws, Place(request, c.known + n))
        return Verdict(n, token, len(c.q) > n and token == c.tokens[c.known + n])


#: of a text's tokens the last is never drafted
LENGTH, RUNS = 4, 300


def deviation(machine: Machine, switches: Switches, rule: Sampling, make: type[SamplingEngines], *,
              overlap: bool) -> float:
    """How unlikely the counts of all texts are under the target's law: chi-square as standard deviations.

    Wilson and Hilferty's cube root makes the statistic normal.
    """
    models, requests = random_pair(1, 3), machine.p.requests
    prompts, counts = [[r % 3] for r in range(requests)], Counter[tuple[int, tuple[int, ...]]]()
    law = {first: target_law(models[1], [[first]], [LENGTH]) for first in range(3)}
    for seed in range(RUNS):
        gen = np.random.default_rng(seed)
        costs = Roofline(int(gen.integers(LOOK, 40)), 0, int(gen.integers(4 * LOOK, 160)), 1)
        engines = make(*models, prompts, [LENGTH] * requests, rule, KeyedDraws(seed), costs, lanes=machine.p.lanes)
        run_sampling(machine, switches, engines, overlap=overlap)
        counts.update((prompt[0], tuple(text)) for prompt, text in zip(prompts, engines.texts, strict=True))
    samples = Counter(prompt[0] for prompt in prompts)
    square, bins, rare = 0.0, -3, [0.0, 0.0]
    for first, texts in law.items():
        for (text,), probability in texts.items():
            want, got = RUNS * samples[first] * probability, counts.pop((first, text), 0)
            if want < 8:
                rare = [rare[0] + want, rare[1] + got]
            else:
                square += (got - want) ** 2 / want
                bins += 1
    assert not counts, "texts that the target never writes"
    if rare[0]:
        square += (rare[1] - rare[0]) ** 2 / rare[0]
        bins += 1
    assert bins > 30
    return ((square / bins) ** (1 / 3) - (1 - 2 / (9 * bins))) / math.sqrt(2 / (9 * bins))


#: short drafts hide a wrong eager rule, a tiny threshold hides a wrong stop rule
SHORT, LONG = Switches(tau=quantise(0.5), eager=False, capacity=12), Switches(tau=0, max_draft=6, capacity=11)


@pytest.mark.parametrize(("switches", "overlap"), [
    (SHORT, False), (LONG, False), pytest.param(LONG, True, marks=pytest.mark.long),
], ids=["short", "long", "overlap"])
def test_the_law_is_the_targets(switches: Switches, overlap: bool) -> None:
    machine = Machine(SMALL, Switches(), BUILDS)
    assert deviation(machine, switches, Sampling(), SamplingEngines, overlap=overlap) < 3.1


@pytest.mark.parametrize(("rule", "make"), [
    (ReplacesFromP(), SamplingEngines), pytest.param(SharpensQ(), SamplingEngines, marks=pytest.mark.long),
    pytest.param(Sampling(), TrustsTheWaiting, marks=pytest.mark.long),
], ids=["replaces from p", "tests another distribution", "waiting token unchecked"])
def test_another_law_is_noticed(rule: Sampling, make: type[SamplingEngines]) -> None:
    machine = Machine(SMALL, Switches(), BUILDS)
    assert deviation(machine, LONG, rule, make, overlap=False) > 6


def test_a_bonus_that_is_not_the_tests_outcome_writes_other_texts() -> None:
    machine, (switches, policy) = Machine(SMALL, Switches(), BUILDS), CASES["full"]
    models, costs, limits = random_pair(1, 3), Roofline(1, 0, 6, 1), [6] * SMALL.requests
    switches, prompts = switches.fitted(SMALL), [[0]] * SMALL.requests
    simulation = _simulation(machine, switches, policy(), models, prompts, limits, 1, costs)
    engines = BonusAsWhenGreedy(*models, prompts, limits, Sampling(), KeyedDraws(1), costs, lanes=SMALL.lanes)
    run_sampling(machine, switches, engines)
    with pytest.raises(AssertionError, match="verdict"):
        _compare(simulation, engines)
