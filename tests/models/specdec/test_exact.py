"""Speculation is lossless: its exact output law is that of the target alone, and faults are noticed."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sim_models.specdec import enumeration
from sim_models.specdec.draws import Draws, Key, Place, Purpose
from sim_models.specdec.enumeration import Script, output_law, target_law, total_variation
from sim_models.specdec.models import TableModel
from sim_models.specdec.policies import Confidence, Cumulative, Fixed, Policy
from sim_models.specdec.pools import Entry
from sim_models.specdec.rules import Sampling, Verdict
from sim_models.specdec.scheduler import Job, Settings
from sim_models.specdec.simulation import Roofline, Simulation
from tests.models.specdec.cases import POLICIES, POOLS, random_pair

#: a verification takes four draft steps, so that several eager tokens come
COSTS = Roofline(1, 1, 4, 1)


def distance(policy: Callable[[], Policy], settings: Settings, pair: tuple[TableModel, TableModel],
             prompts: list[list[int]], limits: list[int], *, end: Any = None, costs: Roofline = COSTS,
             rule: Sampling | None = None, simulation: type[Simulation] = Simulation) -> float:
    """Total variation between speculation and the target alone."""
    draft, target = pair
    law = output_law(lambda draws: simulation(draft, target, prompts, limits, policy(), settings, costs=costs,
                                              rule=rule or Sampling(), draws=draws, end=end))
    assert sum(law.values()) == pytest.approx(1, abs=1e-12)
    return total_variation(law, target_law(target, prompts, limits, end))


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("policy", POLICIES)
def test_sampling_is_lossless(policy: str, pool: str) -> None:
    settings = POOLS[pool].replace(max_draft=4)
    assert distance(POLICIES[policy], settings, random_pair(1, 3), [[2, 0]], [4]) <= 1e-12


@pytest.mark.parametrize("pool", ["shared", "eager-late", "eager-1-row"])
@pytest.mark.parametrize("policy", ["fixed3", "tau0.4"])
def test_with_a_vocabulary_of_4(policy: str, pool: str) -> None:
    settings = POOLS[pool].replace(max_draft=3)
    assert distance(POLICIES[policy], settings, random_pair(2, 4), [[1]], [4]) <= 1e-12


@pytest.mark.parametrize("pool", ["alone", "shared-3-rows", "eager", "eager-3-rows", "eager-1-entry"])
@pytest.mark.parametrize("policy", ["tau0.4", "goodput"])
def test_two_requests_are_lossless_and_independent(policy: str, pool: str) -> None:
    settings = POOLS[pool].replace(max_draft=3, lanes=2)
    assert distance(POLICIES[policy], settings, random_pair(3, 3), [[0], [1]], [2, 2]) <= 1e-12


@pytest.mark.parametrize("stop_at_end", [True, False])
@pytest.mark.parametrize("pool", ["alone", "eager", "eager-3-rows"])
def test_an_end_token_ends_where_it_would_have(pool: str, stop_at_end: bool) -> None:
    settings = POOLS[pool].replace(max_draft=4, stop_at_end=stop_at_end)
    assert distance(POLICIES["tau0.05"], settings, random_pair(4, 3), [[0]], [4], end=1) <= 1e-12


@pytest.mark.parametrize("seed", range(5, 9))
def test_draft_without_a_token_of_the_target(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tables = rng.dirichlet([1.0] * 3, (2, 3)) * (rng.random((2, 3, 3)) > 0.4) + np.eye(3) * 1e-9
    draft, target = (TableModel(t / t.sum(axis=1, keepdims=True)) for t in tables)
    assert distance(POLICIES["tau0.05"], Settings(max_draft=3), (draft, target), [[0]], [4]) <= 1e-12


class Short(TableModel):
    """A model whose contexts end."""

    def __init__(self, table: np.ndarray, positions: int) -> None:
        super().__init__(table)
        self._positions = positions

    @property
    def positions(self) -> int:
        return self._positions


def test_several_end_tokens_end_where_they_would_have() -> None:
    settings = POOLS["eager"].replace(max_draft=4)
    assert distance(POLICIES["tau0.05"], settings, random_pair(4, 4), [[0]], [3], end=(1, 3)) <= 1e-12


# Negative controls: what must not be lossless


class DropsTheStop(Simulation):
    """The token that makes the policy stop is thrown away."""

    def _finish_draft(self, job: Job) -> None:
        super()._finish_draft(job)
        r, c = self.scheduler.requests[job.request], self.contexts[job.request]
        if r.stopped and r.live:
            pools = [p for p in (self.scheduler.pool, self.scheduler.eager[r.lane]) if p.match(r.index)]
            pools[-1].entries.remove(pools[-1].match(r.index)[-1])
            r.live -= 1
            del c.tokens[-1], c.q[-1]
            self._roll_back(c)

    def check(self) -> None:
        """The scheduler's H is that of the dropped token."""


class KeepsTheTail(Simulation):
    """The bonus is drawn, and what was drafted behind another token stays, each with the q that it was drawn from.

    That is lossless: with y drawn from q, testing y against q and drawing from the residual gives p for any q, thus
    also for a q that belongs to another text. What is lost are rows, since such tokens seldom pass.
    """

    def judge(self, place: Place, drafts: list[tuple[int, Any]], waiting: tuple[int, Any] | None,
              p: np.ndarray) -> Verdict:
        verdict = super().judge(place, drafts, waiting, p)
        n = len(drafts)
        if waiting is None or verdict.accepted < n:
            return verdict
        return Verdict(n, self.rule.target(p[n], self.draws, place.ahead(n)), True)

    def check(self) -> None:
        """The draft's cache holds another token than the bonus."""


class RecomputesQ(KeepsTheTail):
    """The tail stays, and is tested against the q of the text with the bonus, from which it was not drawn."""

    def _finish_verification(self, request: int, entries: list[Entry]) -> None:
        super()._finish_verification(request, entries)
        c = self.contexts[request]
        c.q = list(self.draft_model.open(request).extend(c.tokens[:-1])[c.known - 1:]) if c.q else []


class TrustsTheFirst(Simulation):
    """The first draft token is accepted unchecked."""

    def judge(self, place: Place, drafts: list[tuple[int, Any]], waiting: tuple[int, Any] | None,
              p: np.ndarray) -> Verdict:
        if drafts:
            p = np.concatenate([np.eye(p.shape[1])[[drafts[0][0]]], p[1:]])
        return super().judge(place, drafts, waiting, p)


class ReplacesFromP(Sampling):
    """A rejected token is replaced by one drawn from p instead of the residual."""

    def correct(self, q: np.ndarray, p: np.ndarray, draws: Draws, place: Place) -> int:
        return self.target(p, draws, place)


class SharpensQ(Sampling):
    """The test uses a sharper distribution than the one that was drawn from."""

    def accepts(self, token: int, q: np.ndarray, p: np.ndarray, draws: Draws, place: Place) -> bool:
        return super().accepts(token, q ** 2 / (q ** 2).sum(), p, draws, place)


FAULTS: dict[str, dict[str, Any]] = {
    "drops the stop token": {"simulation": DropsTheStop},
    "keeps the tail behind a bonus with the q of the new text": {"simulation": RecomputesQ},
    "first token unchecked": {"simulation": TrustsTheFirst},
    "replaces from p": {"rule": ReplacesFromP()},
    "tests another distribution": {"rule": SharpensQ()},
}

#: short drafts hide a wrong eager rule, a tiny tau hides a wrong stop rule
SHORT: tuple[Policy, Settings] = Cumulative(0.5), Settings(eager=False)
LONG: tuple[Policy, Settings] = Cumulative(0), Settings()


@pytest.mark.parametrize(("fault", "case"), [
    ("drops the stop token", SHORT),
    ("drops the stop token", (Confidence(0.4), Settings())),
    ("keeps the tail behind a bonus with the q of the new text", LONG),
    ("first token unchecked", SHORT),
    ("first token unchecked", LONG),
    ("replaces from p", SHORT),
    ("replaces from p", LONG),
    ("tests another distribution", SHORT),
    ("tests another distribution", LONG),
])
def test_a_fault_is_noticed(fault: str, case: tuple[Policy, Settings]) -> None:
    policy, settings = case
    assert distance(lambda: policy, settings.replace(max_draft=4), random_pair(1, 3), [[0]], [4],
                    **FAULTS[fault]) > 1e-3


@pytest.mark.parametrize(("fault", "case"), [
    ("drops the stop token", (Fixed(3), Settings())),
    ("keeps the tail behind a bonus with the q of the new text", SHORT),
])
def test_where_a_fault_hides(fault: str, case: tuple[Policy, Settings]) -> None:
    policy, settings = case
    assert distance(lambda: policy, settings.replace(max_draft=4), random_pair(1, 3), [[0]], [4],
                    **FAULTS[fault]) <= 1e-12


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_tail_may_stay_with_the_q_that_it_was_drawn_from(seed: int) -> None:
    """Not a fault of the law: the enumeration keeps each token's q, as a sampler would."""
    policy, settings = LONG
    kept = []

    class Counts(KeepsTheTail):
        def _finish_verification(self, request: int, entries: list[Entry]) -> None:
            super()._finish_verification(request, entries)
            kept.append(len(self.contexts[request].q))

    for simulation, wanted in ((Counts, True), (RecomputesQ, False)):
        found = distance(lambda: policy, settings.replace(max_draft=4), random_pair(seed, 3), [[0]], [4],
                         simulation=simulation)
        assert (found <= 1e-12) == wanted, (simulation, found)
    assert any(kept)


@pytest.mark.parametrize("positions", [1, 2, 3])
@pytest.mark.parametrize("pool", ["alone", "eager", "eager-3-rows"])
def test_a_draft_whose_context_ends_is_lossless(pool: str, positions: int) -> None:
    draft, target = random_pair(6, 3)
    settings = POOLS[pool].replace(max_draft=4)
    assert distance(POLICIES["tau0.05"], settings, (Short(draft.table, positions), target), [[0]], [4]) <= 1e-12


class OneDrawAPosition(Script):
    """Draft tokens of a position all come from one uniform, whatever was flushed in between."""

    def pick(self, weights: Any, key: Key) -> int:
        return super().pick(weights, key._replace(branch=0))


@pytest.mark.parametrize(("script", "lossless"), [(Script, True), (OneDrawAPosition, False)])
def test_a_flushed_draft_is_drawn_anew(monkeypatch: pytest.MonkeyPatch, script: type[Script],
                                       lossless: bool) -> None:
    """A request that stopped early drafts in time for the next pass, one that went on does not.

    So whether a position is drafted follows from the flushed tokens; they must not tell what it is drafted as.
    """
    monkeypatch.setattr(enumeration, "Script", script)
    settings = Settings(max_draft=6, lanes=2, stop_at_end=False)
    found = distance(lambda: Cumulative(0.15), settings, random_pair(3, 2), [[0], [1]], [2, 3],
                     costs=Roofline(9, 1, 1, 5))
    assert found <= 1e-12 if lossless else found > 1e-3


# The enumeration itself


def test_a_known_law() -> None:
    target = TableModel([[0.5, 0.5], [0.25, 0.75]])
    assert target_law(target, [[0]], [2]) == {
        ((0, 0),): 0.25, ((0, 1),): 0.25, ((1, 0),): 0.125, ((1, 1),): 0.375}
    assert target_law(target, [[0], [1]], [1, 2], end=0) == {
        ((a,), b): 0.5 * w for a in (0, 1) for b, w in (((0,), 0.25), ((1, 0), 0.1875), ((1, 1), 0.5625))}


def test_total_variation_counts_what_only_one_has() -> None:
    assert total_variation({((0,),): 1.0}, {((1,),): 1.0}) == 1.0
    assert total_variation({((0,),): 0.5, ((1,),): 0.5}, {((0,),): 1.0}) == 0.5


def test_a_uniform_stays_what_it_was() -> None:
    key, script = Key(0, 0, Purpose.DRAFT, 0), Script()
    script.restart([1], {})
    assert script.pick([0.5, 0.25, 0.25], key) == 1
    assert script.known == {key: (0.5, 0.75)}
    assert script.weight == 0.25
    assert script.accept(0.75, key)
    assert not script.accept(0.5, key)
    assert script.weight == 0.25
