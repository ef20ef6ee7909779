"""Properties of speculation: the target's tokens for any schedule, caches without rejected positions, liveness."""

import dataclasses
import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim_models.specdec.draws import KeyedDraws
from sim_models.specdec.enumeration import target_law
from sim_models.specdec.models import LlamaModel, Model, TableModel
from sim_models.specdec.policies import Cumulative, Fixed
from sim_models.specdec.rules import Greedy, Sampling, Seeded, decode
from sim_models.specdec.scheduler import Scheduler, Settings
from sim_models.specdec.simulation import Roofline, Simulation
from sim_models.transformer.checkpoint import Checkpoint, ModelShape, random_checkpoint
from sim_models.transformer.decoding import generate
from sim_models.transformer.int8_model import Int8Model
from tests.models.specdec.cases import POLICIES, POOLS, random_pair

SHAPE = ModelShape(dim=16, hidden_dim=24, n_layers=2, n_heads=4, n_kv_heads=2, vocab_size=32, max_seq_len=64)


def llama_pair(noise: float = 0.15, draft: int = 64, target: int = 64) -> tuple[LlamaModel, LlamaModel]:
    """A random target, and a draft whose weights are the target's with some noise; so many positions each."""
    weights, other = random_checkpoint(SHAPE, 3), random_checkpoint(SHAPE, 4)
    noisy = {n: weights[n] + np.float32(noise) * other[n] for n in SHAPE.arrays()}
    one, two = (LlamaModel(Int8Model(Checkpoint(dataclasses.replace(SHAPE, max_seq_len=positions), arrays)))
                for positions, arrays in ((draft, noisy), (target, weights.arrays)))
    return one, two


def chain(*following: int) -> TableModel:
    """A model that is certain: token t is followed by ``following[t]``."""
    return TableModel(np.eye(len(following))[list(following)])


def alone(target: Model, prompts: list[list[int]], limits: list[int], end: Any = None) -> list[list[int]]:
    """Greedy decoding without speculation."""
    return [decode(Greedy(), target, p, n, KeyedDraws(), end=end) for p, n in zip(prompts, limits, strict=True)]


# Any schedule, same tokens


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("policy", POLICIES)
def test_greedy_tokens_of_a_transformer(policy: str, pool: str) -> None:
    draft, target = llama_pair()
    prompts, limits = [[1, 2, 3], [7], [30, 4]], [9, 12, 10]
    run = Simulation(draft, target, prompts, limits, POLICIES[policy](), POOLS[pool].replace(lanes=2))
    assert run.run() == alone(target, prompts, limits)


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("policy", POLICIES)
def test_seeded_tokens_of_a_transformer(policy: str, pool: str) -> None:
    """Sampled text with speculation is the sampled text without it, token by token."""
    draft, target = llama_pair()
    prompts, limits, rule = [[1, 2, 3], [7], [30, 4]], [9, 12, 10], Seeded(5)
    run = Simulation(draft, target, prompts, limits, POLICIES[policy](), POOLS[pool].replace(lanes=2), rule=rule)
    assert run.run() == [decode(rule, target, p, n, KeyedDraws(), request=i)
                         for i, (p, n) in enumerate(zip(prompts, limits, strict=True))]


SCHEDULES = st.builds(
    Settings, lanes=st.integers(1, 4), capacity=st.sampled_from([1, 2, 3, 5, 8, 64]),
    entries=st.sampled_from([1, 2, 3, 7, 512]), eager_entries=st.sampled_from([1, 2, 3, 7, 512]),
    max_draft=st.sampled_from([0, 1, 3, 8]), start=st.integers(1, 6), shared=st.booleans(), eager=st.booleans(),
    stop_at_end=st.booleans())
COSTS = st.builds(Roofline, st.integers(1, 5), st.integers(0, 2), st.integers(1, 9), st.integers(0, 2))


@settings(max_examples=200, deadline=None, derandomize=True)
@given(schedule=SCHEDULES, costs=COSTS, policy=st.sampled_from(sorted(POLICIES)), seed=st.integers(0, 99),
       limits=st.lists(st.integers(0, 9), min_size=1, max_size=7), end=st.sampled_from([None, 0, (0, 2)]),
       engines=st.integers(1, 4))
def test_greedy_tokens_for_any_schedule(schedule: Settings, costs: Roofline, policy: str, seed: int,
                                        limits: list[int], end: Any, engines: int) -> None:
    draft, target = random_pair(seed, 5)
    prompts = [[i % 5] for i in range(len(limits))]
    run = Simulation(draft, target, prompts, limits, POLICIES[policy](), schedule, costs=costs, end=end,
                     engines=engines)
    assert run.run() == alone(target, prompts, limits, end)
    seeded = Simulation(draft, target, prompts, limits, POLICIES[policy](), schedule, costs=costs, end=end,
                        engines=engines, rule=Seeded(seed))
    assert seeded.run() == [decode(Seeded(seed), target, p, n, KeyedDraws(), request=i, end=end)
                            for i, (p, n) in enumerate(zip(prompts, limits, strict=True))]
    counted = run.scheduler.counters
    assert counted.drafted == counted.accepted + counted.flushed + counted.stale
    assert counted.emitted == sum(map(len, run.outputs)) == counted.accepted + sum(
        len(r.emitted) > r.accepted + r.matches for r in run.log)


def test_sampled_tokens_do_not_depend_on_the_others_in_the_batch() -> None:
    draft, target = random_pair(1, 5)
    schedule = Settings(lanes=4, shared=False, eager=False)

    def first(others: list[int], costs: Roofline, seed: int = 7) -> list[int]:
        return Simulation(draft, target, [[0], *([t] for t in others)], 30, Fixed(3), schedule, rule=Sampling(),
                          draws=KeyedDraws(seed), costs=costs).run()[0]

    assert first([], Roofline()) == first([1, 2, 3], Roofline(3, 2, 5, 1)) == first([4], Roofline(1, 1, 20, 0))
    assert first([], Roofline()) != first([], Roofline(), seed=8)


def test_sampling_without_drafts_is_decoding() -> None:
    draft, target = random_pair(2, 5)
    run = Simulation(draft, target, [[0], [3]], 40, Fixed(0), rule=Sampling(), draws=KeyedDraws(5))
    assert run.run() == [decode(Sampling(), target, [t], 40, KeyedDraws(5), request=i)
                         for i, t in enumerate((0, 3))]


def test_frequencies_of_sampled_tokens() -> None:
    draft, target = random_pair(5, 3)
    law = target_law(target, [[0]], [2])
    counts = dict.fromkeys(law, 0)
    number = 2000
    for seed in range(number):
        run = Simulation(draft, target, [[0]], 2, Cumulative(0.3), Settings(max_draft=3), rule=Sampling(),
                         draws=KeyedDraws(seed))
        counts[tuple(map(tuple, run.run()))] += 1
    chi_square = sum((counts[o] - number * p) ** 2 / (number * p) for o, p in law.items())
    # 8 degrees of freedom: exceeded by 1 seed in 1,000
    assert chi_square < 26.1


# Fairness


def test_micro_batches_draft_in_turn() -> None:
    """One draft engine that is slow, equal requests in each micro-batch: who waits is overtaken by nobody."""
    model = chain(1, 2, 3, 0)
    schedule = Settings(lanes=4, start=4, max_draft=4)
    run = Simulation(model, model, [[0]] * 8, 40, Fixed(4), schedule, costs=Roofline(20, 0, 5, 0), engines=1)
    began: list[int] = []
    while not run.done:
        at_work = [lane for lane, step in enumerate(run.steps) if step and step[0] == run.now + 20]
        began += at_work
        run.step()
    ends = [max(n for n, lane in enumerate(began) if lane == k) for k in range(4)]
    whole = began[:min(ends) // 4 * 4]
    assert len(whole) >= 40
    assert whole == [0, 1, 2, 3] * (len(whole) // 4)
    passes = [max(r.passed for r in run.log if r.request == k) for k in range(8)]
    assert min(passes) >= 0.9 * max(passes)


def test_the_turn_is_part_of_the_state() -> None:
    """What `state` gave goes on as it would have, with another micro-batch next."""
    model = chain(1, 2, 3, 0)
    schedule = Settings(lanes=2, start=4, max_draft=4)

    def make() -> Simulation:
        return Simulation(model, model, [[0]] * 4, 9, Fixed(4), schedule, costs=Roofline(20, 0, 5, 0), engines=1)

    run, other = make(), make()
    run.step()
    assert run.scheduler.draft_order() == [0, 1]
    run.scheduler.draft_ring = 1
    other.load_state(run.state())
    assert other.scheduler.draft_order() == [1, 0]


# Caches


class Watched:
    """A model that notes the lengths of its contexts before and after each roll-back, and the rows of each step."""

    def __init__(self, model: Model) -> None:
        self.model, self.vocab_size, self.positions = model, model.vocab_size, model.positions
        self.rows: list[int] = []
        self.dropped: list[int] = []

    def open(self, request: int = 0) -> "Watched":
        opened = Watched(self.model)
        opened.rows, opened.dropped = self.rows, self.dropped
        opened.session = self.model.open(request)
        return opened

    @property
    def length(self) -> int:
        return self.session.length

    def extend(self, tokens: list[int]) -> Any:
        self.rows.append(len(tokens))
        return self.session.extend(tokens)

    def roll_back(self, length: int) -> None:
        self.dropped.append(self.session.length - length)
        self.session.roll_back(length)


@pytest.mark.parametrize("d", [1, 2, 4])
def test_what_is_rolled_back(d: int) -> None:
    """SADDLE's round: of n drafted a pass; n - a - 1 leave the draft's cache, n - a the target's."""
    pair = llama_pair()
    draft, target = Watched(pair[0]), Watched(pair[1])
    run = Simulation(draft, target, [[1, 2]], 40, Fixed(d), Settings(shared=False, eager=False))
    run.run()
    rounds = [(len(r.drafts), r.accepted) for r in run.log]
    assert {a for _, a in rounds} >= {0, d}
    *rounds, (n, a) = rounds
    assert target.dropped[:-1] == [n - a for n, a in rounds]
    assert draft.dropped[:-1] == [max(n - a - 1, 0) for n, a in rounds]
    # the prompt; then each round's first step takes in a second row if all tokens before it were accepted
    firsts = [1, *(2 if a == n else 1 for n, a in rounds)]
    assert draft.rows == [1, *itertools.chain(*(([first] + [1] * n)[:n] for first, (n, _) in
                                                zip(firsts, [*rounds, (n, a)], strict=True)))]
    assert target.rows == [1, *(n + 1 for n, _ in rounds), n + 1]


@pytest.mark.parametrize("pool", POOLS)
def test_length_of_both_caches_after_every_event(pool: str) -> None:
    draft, target = llama_pair()
    run = Simulation(draft, target, [[1, 2, 3], [7], [9, 9]], [12, 9, 15], Cumulative(0.1),
                     POOLS[pool].replace(lanes=2), costs=Roofline(2, 1, 5, 1))
    while not run.done:
        verdicts = len(run.log)
        run.step()
        for r in run.log[verdicts:]:
            c, live = run.contexts[r.request], run.scheduler.requests[r.request].live
            known = c.prompt + len(run.outputs[r.request])
            assert c.target.length == known - 1
            # What stays drafted is in the draft's cache but for its last token. Where nothing stays, the draft
            # has not seen its own last token if that was accepted, nor any token that it did not draft.
            if live:
                assert known + live - 2 <= c.draft.length <= known + live - 1
            elif r.accepted < len(r.drafts):
                assert c.draft.length == known - 1
            else:
                assert c.draft.length <= known - 1


# Ends


@pytest.mark.parametrize("stop_at_end", [True, False])
@pytest.mark.parametrize("pool", POOLS)
def test_end_token_inside_an_accepted_draft(pool: str, stop_at_end: bool) -> None:
    model = chain(1, 2, 3, 0)
    run = Simulation(model, model, [[0], [2]], 20, Fixed(8), POOLS[pool].replace(stop_at_end=stop_at_end), end=3)
    assert run.run() == [[1, 2, 3], [3]]
    assert [c.target.length for c in run.contexts] == [3, 1]
    assert [(r.done, r.live) for r in run.scheduler.requests] == [(True, 0)] * 2


@pytest.mark.parametrize("stop_at_end", [True, False])
@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("limit", [1, 2, 5])
def test_length_limit_inside_an_accepted_draft(pool: str, limit: int, stop_at_end: bool) -> None:
    model = chain(1, 2, 3, 0)
    run = Simulation(model, model, [[0], [1]], [limit, 9], Fixed(8), POOLS[pool].replace(stop_at_end=stop_at_end))
    assert run.run() == [[(i + 1) % 4 for i in range(limit)], [(i + 2) % 4 for i in range(9)]]
    assert run.contexts[0].target.length == limit


def test_accepted_tokens_behind_the_end_are_dropped() -> None:
    model = chain(1, 2, 3, 0)
    run = Simulation(model, model, [[0]], 20, Fixed(6), Settings(shared=False, eager=False, stop_at_end=False),
                     end=2)
    run.run()
    assert [(len(r.drafts), r.accepted, r.emitted) for r in run.log] == [(6, 6, (1, 2))]
    assert run.scheduler.counters.flushed == 4


@pytest.mark.parametrize("stop_at_end", [True, False])
@pytest.mark.parametrize("pool", POOLS)
def test_the_first_of_several_end_tokens_ends_a_text(pool: str, stop_at_end: bool) -> None:
    model = chain(1, 2, 3, 4, 5, 0)
    run = Simulation(model, model, [[0], [2], [5]], 20, Fixed(8), POOLS[pool].replace(stop_at_end=stop_at_end),
                     end=[5, 3])
    assert run.run() == [[1, 2, 3], [3], [0, 1, 2, 3]] == alone(model, [[0], [2], [5]], [20] * 3, (3, 5))
    assert [c.target.length for c in run.contexts] == [3, 1, 4]


def test_nothing_wanted() -> None:
    run = Simulation(chain(0, 1), chain(0, 1), [[0], [1]], [0, 2], Fixed(2))
    assert run.run() == [[], [1, 1]]
    assert Simulation(chain(0, 1), chain(0, 1), [[0]], 0, Fixed(2)).done


# Contexts that end


@pytest.mark.parametrize("stop_at_end", [True, False])
@pytest.mark.parametrize("policy", ["fixed3", "tau0", "oracle"])
@pytest.mark.parametrize("pool", POOLS)
def test_speculation_up_to_the_last_position(pool: str, policy: str, stop_at_end: bool) -> None:
    """A model of 32 positions, a prompt of 4: the 29th token comes from the last position and is not fed back."""
    draft, target = llama_pair(draft=32, target=32)
    prompts, limits = [[1, 2, 3, 4], [9]], [29, 32]
    run = Simulation(draft, target, prompts, limits, POLICIES[policy](), POOLS[pool].replace(stop_at_end=stop_at_end))
    assert run.run() == alone(target, prompts, limits) == [
        generate(target.model, p, n) for p, n in zip(prompts, limits, strict=True)]
    assert [c.target.length for c in run.contexts] == [32, 32]


def test_the_last_token_of_a_text_is_not_drafted() -> None:
    """Its row could emit nothing: the token before it is the last to be drafted, and the target gives the bonus."""
    model = chain(1, 2, 3, 0)
    for limit, passes in ((9, [8]), (10, [8, 0]), (11, [8, 1]), (2, [1]), (1, [0])):
        run = Simulation(model, model, [[0]], limit, Fixed(8), Settings(shared=False, eager=False))
        run.run()
        assert [len(r.drafts) for r in run.log] == passes
        assert run.scheduler.counters.rows == limit
        assert run.scheduler.counters.flushed == 0


@pytest.mark.parametrize("positions", [1, 3, 10, 20])
@pytest.mark.parametrize("pool", POOLS)
def test_a_draft_of_a_shorter_context(pool: str, positions: int) -> None:
    """The target goes on alone where the draft's context ends, and from the start where the prompt is too long."""
    draft, target = llama_pair(draft=positions, target=32)
    prompts, limits = [[1, 2, 3, 4], [7]], [29, 20]
    for stop_at_end in (True, False):
        run = Simulation(draft, target, prompts, limits, Fixed(4), POOLS[pool].replace(stop_at_end=stop_at_end))
        assert run.run() == alone(target, prompts, limits)
        assert run.scheduler.counters.drafted > 0


@pytest.mark.parametrize(("positions", "drafts"), [(10, [4, 4] + [0] * 10), (8, [4, 3] + [0] * 11), (99, [4] * 4)])
def test_the_last_token_that_a_context_allows_is_drafted(positions: int, drafts: list[int]) -> None:
    """A token is drafted from a context that holds all tokens before it: the last at the position behind its end."""
    model = chain(1, 2, 3, 0)
    draft = Watched(model)
    draft.positions = positions
    run = Simulation(draft, model, [[0]], 20, Fixed(4), Settings(shared=False, eager=False))
    assert run.run() == alone(model, [[0]], [20])
    assert [len(r.drafts) for r in run.log] == drafts


# Drafts that are right, wrong, or both


def test_all_drafts_right() -> None:
    model = chain(1, 2, 3, 0)
    run = Simulation(model, model, [[0]], 20, Fixed(4), Settings(shared=False, eager=False))
    run.run()
    assert [(len(r.drafts), r.accepted) for r in run.log] == [(4, 4)] * 4
    assert run.scheduler.counters.flushed == 0


def test_all_drafts_wrong() -> None:
    run = Simulation(chain(0, 2, 1, 3), chain(1, 2, 3, 0), [[0]], 8, Fixed(3), Settings())
    run.run()
    assert run.outputs == [[1, 2, 3, 0, 1, 2, 3, 0]]
    assert {r.accepted for r in run.log} == {0, 1}


@pytest.mark.parametrize("pool", POOLS)
def test_uneven_acceptance_in_a_batch(pool: str) -> None:
    """Tokens 0 to 3 are drafted right, 4 to 7 wrong: the neighbours of a rejected draft lose nothing."""
    draft, target = chain(1, 2, 3, 0, 4, 5, 6, 7), chain(1, 2, 3, 0, 5, 6, 7, 4)
    run = Simulation(draft, target, [[0], [4], [2], [6]], 12, Fixed(3), POOLS[pool].replace(lanes=2))
    assert run.run() == [[(t + 1 + i) % 4 + (t & 4) for i in range(12)] for t in (0, 4, 2, 6)]
    accepted = [sum(r.accepted + r.matches for r in run.log if r.request == i) for i in range(4)]
    assert accepted[1] == accepted[3] == 0
    if run.scheduler.settings.capacity > 4:
        assert min(accepted[0], accepted[2]) > 0


@pytest.mark.parametrize(("tau", "drafted"), [(0.0, {6}), (1.0, {1})])
def test_extreme_tau(tau: float, drafted: set[int]) -> None:
    draft, target = random_pair(3, 6)
    run = Simulation(draft, target, [[0]], 24, Cumulative(tau), Settings(shared=False, eager=False, max_draft=6))
    run.run()
    assert {len(r.drafts) for r in run.log if sum(len(e.emitted) for e in run.log if e.time < r.time) < 18} == drafted


def test_the_token_that_takes_h_below_tau_is_verified() -> None:
    table = np.full((4, 4), 0.1)
    np.fill_diagonal(table, 0.7)
    run = Simulation(TableModel(table), chain(0, 1, 2, 3), [[0]], 12, Cumulative(0.4),
                     Settings(shared=False, eager=False))
    run.run()
    # 0.7, 0.49, 0.343: the third is below 0.4
    assert [(len(r.drafts), r.accepted) for r in run.log] == [(3, 3)] * 3
    assert [round(e.h / 32768, 3) for e in run.log[0].drafts] == [0.7, 0.49, 0.343]


# Pools


def test_a_pending_suffix_waits_and_is_tested_on_the_bonus() -> None:
    model = chain(1, 2, 3, 0)
    run = Simulation(model, model, [[0]], 16, Fixed(5), Settings(shared=False, eager=False, capacity=3))
    assert run.run() == [[(1 + i) % 4 for i in range(16)]]
    # three rows verify two tokens and test a third
    first = run.log[0]
    assert (len(first.drafts), first.matches, first.emitted) == (2, True, (1, 2, 3))
    assert all(r.matches for r in run.log[:-1])
    assert run.scheduler.counters.flushed == 0


def test_an_eager_token_that_equals_the_bonus_is_kept_and_another_flushed() -> None:
    right = Simulation(chain(1, 2, 3, 0), chain(1, 2, 3, 0), [[0]], 12, Fixed(6), Settings())
    right.run()
    assert all(r.matches for r in right.log[:-1])
    assert right.scheduler.counters.flushed == 0
    # right behind 0 and 2 only: the eager token behind the right first one is always wrong
    wrong = Simulation(chain(1, 3, 3, 1), chain(1, 2, 3, 0), [[0]], 8, Fixed(6), Settings())
    assert wrong.run() == [[1, 2, 3, 0, 1, 2, 3, 0]]
    assert {(r.accepted, r.matches, r.emitted) for r in wrong.log} == {(1, False, (1, 2)), (1, False, (3, 0))}
    assert wrong.scheduler.counters.flushed > 0


@pytest.mark.parametrize(("requests", "capacity"), [(7, 1), (7, 2), (7, 3), (5, 5), (3, 64)])
@pytest.mark.parametrize("pool", ["shared", "eager", "eager-1-entry"])
def test_every_request_is_served_in_time(requests: int, capacity: int, pool: str) -> None:
    """Of any ceil(requests / capacity) passes in a row, each live request is in one, likely or not."""
    vocab = 2 * requests
    rng = np.random.default_rng(1)
    # the drafts of even tokens are sure, those of odd ones are not
    table = np.where(np.arange(vocab)[:, None] % 2, rng.dirichlet(np.ones(vocab), vocab), np.eye(vocab))
    run = Simulation(TableModel(table), TableModel(table), [[i] for i in range(requests)], 10, Cumulative(0.01),
                     POOLS[pool].replace(capacity=capacity))
    run.run()
    span = math.ceil(requests / capacity)
    for i in range(requests):
        passes = [0, *(r.passed for r in run.log if r.request == i)]
        assert max(b - a for a, b in itertools.pairwise(passes)) <= span


def test_micro_batches_take_turns() -> None:
    """However slow the target, and however soon a micro-batch is ready again."""
    model = chain(1, 2, 3, 0)
    run = Simulation(model, model, [[0], [1], [2]], 12, Fixed(1), Settings(lanes=3, shared=False, eager=False),
                     costs=Roofline(1, 1, 10, 1))
    run.run()
    assert [r.request for r in run.log] == [0, 1, 2] * 6


def test_rows_never_exceed_the_capacity() -> None:
    draft, target = random_pair(4, 6)
    run = Simulation(draft, target, [[i] for i in range(6)], 20, Cumulative(0.05), Settings(capacity=8, start=4))
    run.run()
    rows = [sum(1 + len(r.drafts) for r in group)
            for _, group in itertools.groupby(run.log, key=lambda r: r.passed)]
    assert max(rows) == 8
    assert sum(rows) == run.scheduler.counters.rows


def test_the_likeliest_tokens_go_first() -> None:
    """Of two requests, the rows that both do not need go to the one whose draft is sure."""
    table = np.full((4, 4), 0.1)
    np.fill_diagonal(table, 0.7)
    table[0] = np.eye(4)[0]
    run = Simulation(TableModel(table), TableModel(table), [[1], [0]], 5, Fixed(4),
                     Settings(shared=False, eager=False, capacity=6))
    while not run.log:
        run.step()
    assert {r.request: len(r.drafts) for r in run.log} == {0: 0, 1: 4}


def test_an_unlikely_draft_moves_on() -> None:
    """Three requests share one row beyond their own; two of them are always sure, the third never."""
    table = np.eye(6)[[1, 0, 3, 2, 4, 4]]
    table[4] = [0, 0, 0, 0, 0.6, 0.4]
    run = Simulation(TableModel(table), TableModel(table), [[0], [2], [4]], 20, Fixed(3),
                     Settings(shared=False, eager=False, capacity=4))
    run.run()
    unlikely = [r for r in run.log if r.request == 2]
    assert not any(r.drafts for r in unlikely[:10])
    assert all(r.matches for r in unlikely[:10])


# Time


def test_cycles_in_turn() -> None:
    """The second row of a draft step behind a bonus is paid for."""
    model = chain(1, 2, 3, 0)
    run = Simulation(model, model, [[0]], 9, Fixed(2), Settings(shared=False, eager=False),
                     costs=Roofline(1, 3, 1, 10))
    run.run()
    assert [r.time for r in run.log] == [3 + 3 + 30, 36 + 6 + 3 + 30, 75 + 6 + 3 + 30]
    assert (run.now, run.draft_busy, run.verify_busy) == (114, 24, 90)


def test_cycles_side_by_side() -> None:
    model = chain(1, 2, 3, 0)
    run = Simulation(model, model, [[0]], 9, Fixed(4), Settings(), costs=Roofline(1, 1, 1, 2))
    run.run()
    # from 1 to 5 the first token is verified and three eager ones come; two of those are left for the next pass
    assert [(r.time, len(r.drafts), len(r.emitted)) for r in run.log[:2]] == [(5, 1, 2), (11, 2, 3)]


# Wrong arguments


@pytest.mark.parametrize(("prompts", "limits", "more", "message"), [
    ([], 3, {}, "a batch needs at least 1 prompt, and each prompt at least 1 token"),
    ([[0], []], 3, {}, "a batch needs at least 1 prompt, and each prompt at least 1 token"),
    ([[0]], [3, 3], {}, "a limit is needed for each of 1 prompts, not 2"),
    ([[0]], -1, {}, "the number of tokens wanted must be at least 0, not -1"),
    ([[0], [1]], [3, -2], {}, "the number of tokens wanted must be at least 0, not -2"),
    ([[0, 2]], 3, {}, "a prompt's tokens must be from 0 to 1, not 2"),
    ([[-1]], 3, {}, "a prompt's tokens must be from 0 to 1, not -1"),
    ([[0]], 3, {"end": 2}, "an end token must be from 0 to 1, not 2"),
    ([[0]], 3, {"end": [0, -1]}, "an end token must be from 0 to 1, not -1"),
    ([[0]], 3, {"end": [1.0]}, "an end token must be from 0 to 1, not 1.0"),
    ([[0]], 3, {"engines": 0}, "at least 1 draft engine is needed, not 0"),
])
def test_wrong_batches(prompts: list[list[int]], limits: Any, more: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=r"^(a|the|an|at) ") as caught:
        Simulation(chain(0, 1), chain(0, 1), prompts, limits, Fixed(2), **more)
    assert str(caught.value) == message


def test_models_of_two_vocabularies() -> None:
    with pytest.raises(ValueError, match=r"^draft and target must have one vocabulary, not 2 and 3 tokens$"):
        Simulation(chain(0, 1), chain(0, 1, 2), [[0]], 3, Fixed(2))


@pytest.mark.parametrize("prompt", [4, 40])
def test_a_text_that_the_target_has_no_room_for(prompt: int) -> None:
    """Refused before anything is computed, alone as with a draft."""
    draft, target = llama_pair(target=32)
    message = (rf"^the model has 32 positions: 30 tokens do not fit behind a prompt of {prompt}, "
               rf"at most {max(33 - prompt, 0)} do$")
    for call in (lambda: Simulation(draft, target, [[0], [1] * prompt], 30, Fixed(2)),
                 lambda: decode(Greedy(), target, [1] * prompt, 30, KeyedDraws()),
                 lambda: generate(target.model, [1] * prompt, 30)):
        with pytest.raises(ValueError, match=message):
            call()


def test_a_scheduler_refuses_what_it_cannot_count() -> None:
    with pytest.raises(ValueError, match=r"^a limit must be at least 0, not -1$"):
        Scheduler(Settings(), Fixed(2), [(1, 3), (1, -1)])
    with pytest.raises(ValueError, match=r"^an end token must be at least 0, not -5$"):
        Scheduler(Settings(), Fixed(2), [(1, 3)], end=-5)
