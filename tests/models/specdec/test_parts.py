"""Probabilities in UQ1.15, keyed uniforms, policies, pools and the acceptance rule, one by one."""

import math
from fractions import Fraction

import numpy as np
import pytest

from sim_models.params.base import ParamError
from sim_models.specdec.draws import Key, KeyedDraws, Place, Purpose, mix, uniform
from sim_models.specdec.fixed import ONE, multiply, quantise
from sim_models.specdec.models import LlamaModel, TableModel
from sim_models.specdec.policies import (
    Confidence,
    Cumulative,
    Entropy,
    Fixed,
    Goodput,
    LoadTau,
    Oracle,
    Step,
    load_index,
)
from sim_models.specdec.pools import EagerPool, Entry, PoolError, SharedPool
from sim_models.specdec.rules import Greedy, Sampling, Verdict, decode, verify
from sim_models.specdec.scheduler import Job, Scheduler, Settings
from sim_models.transformer.checkpoint import ModelShape, random_checkpoint
from sim_models.transformer.int8_model import Int8Model

# UQ1.15


@pytest.mark.parametrize(("p", "wanted"), [
    (0, 0), (1, 0x8000), (0.5, 0x4000), (2 ** -15, 1), (2 ** -16, 0), (3 * 2 ** -16, 2), (1 - 2 ** -16, 0x8000),
    (1 - 2 ** -15, 0x7fff), (1 + 1e-7, 0x8000), (1e-30, 0)])
def test_quantise(p: float, wanted: int) -> None:
    assert quantise(p) == wanted


@pytest.mark.parametrize("p", [-1e-9, 1.01, math.nan, math.inf])
def test_quantise_takes_probabilities_only(p: float) -> None:
    with pytest.raises(ValueError, match=rf"^a probability must be from 0 to 1, not {p}$"):
        quantise(p)


def test_multiply_rounds_to_nearest_even_and_never_rises() -> None:
    rng = np.random.default_rng(1)
    edge = [0, 1, 2, 3, 0x3fff, 0x4000, 0x4001, 0x7ffe, 0x7fff, 0x8000]
    pairs = [(a, b) for a in edge for b in edge] + rng.integers(0, ONE + 1, (20000, 2)).tolist()
    for a, b in pairs:
        product = multiply(a, b)
        assert product == round(Fraction(a * b, ONE)), (hex(a), hex(b))
        assert product <= min(a, b)
    assert [multiply(a, ONE) for a in edge] == edge


# Uniforms


def test_mix_is_splitmix64() -> None:
    """The first outputs for seed 1234567, as published with the generator."""
    state, out = 1234567, []
    for _ in range(3):
        out.append(mix(state))
        state += 0x9E3779B97F4A7C15
    assert out == [6457827717110365317, 3203168211198807973, 9817491932198370423]


def test_uniforms_are_uniform_and_differ_in_every_part_of_the_name() -> None:
    keys = [Key(r, p, Purpose(w), b) for r in range(8) for p in range(64) for w in range(4) for b in range(4)]
    values = np.array([uniform(seed, k) for seed in (0, 1) for k in keys])
    assert len(set(values)) == len(values)
    assert ((values >= 0) & (values < 1)).all()
    counts = np.histogram(values, 16, (0, 1))[0]
    expected = len(values) / 16
    # 15 degrees of freedom: exceeded by 1 in 1,000
    assert ((counts - expected) ** 2 / expected).sum() < 37.7
    table = values.reshape(2, 8, 64, 4, 4)
    for axis in range(5):
        a, b = np.take(table, 0, axis), np.take(table, 1, axis)
        assert abs(np.corrcoef(a.ravel(), b.ravel())[0, 1]) < 0.1


def test_only_drafts_know_their_branch() -> None:
    keys = [Place(1, 2, 3).key(p) for p in Purpose]
    assert keys == [(1, 2, 0, 3), (1, 2, 1, 3), (1, 2, 2, 0), (1, 2, 3, 0)]
    assert Place(1, 2, 3).ahead(4) == (1, 6, 3)


def test_picks_follow_the_weights_and_skip_zeros() -> None:
    draws, weights = KeyedDraws(3), [0.0, 0.5, 0.0, 0.3, 0.2, 0.0]
    picks = [draws.pick(weights, Key(0, i, Purpose.DRAFT, 0)) for i in range(4000)]
    np.testing.assert_allclose(np.bincount(picks, minlength=6) / 4000, weights, atol=0.03)
    assert draws.pick([0.0, 0.0, 1e-300], Key(0, 0, Purpose.DRAFT, 0)) == 2
    accepted = np.mean([draws.accept(0.3, Key(0, i, Purpose.ACCEPT, 0)) for i in range(4000)])
    assert abs(accepted - 0.3) < 0.03


# Policies


def test_when_policies_stop() -> None:
    half = quantise(0.5)
    assert Cumulative(0.5).stops(Step(1, half - 1, ONE))
    assert not Cumulative(0.5).stops(Step(1, half, ONE))
    assert not Cumulative(0).stops(Step(9, 0, 0))
    assert Cumulative(1).stops(Step(1, ONE - 1, ONE - 1))
    assert not Cumulative(1).stops(Step(1, ONE, ONE))
    assert [Fixed(3).wants(n, 1) for n in range(5)] == [True, True, True, False, False]
    assert not Fixed(3).stops(Step(3, 0, 0))
    assert Confidence(0.5).stops(Step(1, ONE, half - 1))
    assert not Confidence(0.5).stops(Step(1, 0, half))
    assert [Confidence(0.5, 2).wants(n, 1) for n in (1, 2)] == [True, False]
    assert Entropy(0.5).stops(Step(1, ONE, ONE, entropy=1.26))
    assert not Entropy(0.5).stops(Step(1, ONE, ONE, entropy=1.24))
    assert Oracle().stops(Step(1, ONE, ONE, right=False))
    assert not Oracle().stops(Step(1, 0, 0, right=True))


def test_tau_by_load() -> None:
    assert [load_index(n) for n in (1, 2, 3, 4, 5, 8, 9, 16, 17, 32, 33, 64, 65, 128, 500)] == [
        0, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 7]
    policy = LoadTau(tuple(i / 8 for i in range(8)))
    h = quantise(0.5)
    assert [policy.stops(Step(1, h, h, load=n)) for n in (16, 17, 32, 33)] == [False, True, True, True]
    with pytest.raises(ValueError, match=r"^a table of thresholds must have 8 entries, not 2$"):
        LoadTau((0.1, 0.2))


def test_goodput_drafts_less_where_rows_cost_and_drafts_fail() -> None:
    policy = Goodput(1, 32, 1, 8)
    assert [policy.best(n) for n in (1, 64)] == [8, 0]
    lengths = []
    for _ in range(12):
        for _ in range(8):
            policy.observe(3, 0)
        lengths.append(policy.best(1))
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[-1] == 0
    for _ in range(100):
        policy.observe(0, 0)
    assert policy.best(1) > 0
    other = Goodput(1, 32, 1, 8)
    other.load_state(policy.state())
    assert other.rate == policy.rate


# Pools


def test_select_takes_prefixes_of_the_likeliest() -> None:
    pool = SharedPool(8)
    for request, position, h in [(2, 5, 90), (0, 7, 80), (2, 6, 80), (1, 3, 70), (0, 8, 80), (2, 7, 10)]:
        pool.insert(Entry(request, position, 0, h))
    assert [pool.select(n, [0, 1, 2]) for n in range(7)] == [
        {0: 0, 1: 0, 2: 0}, {0: 0, 1: 0, 2: 1}, {0: 1, 1: 0, 2: 1}, {0: 2, 1: 0, 2: 1}, {0: 2, 1: 0, 2: 2},
        {0: 2, 1: 1, 2: 2}, {0: 2, 1: 1, 2: 3}]
    assert pool.select(3, [1]) == {1: 1}
    assert [e.position for e in pool.lock(2, 2)] == [5, 6]
    assert [e.position for e in pool.pending([2])] == [7]
    assert pool.select(9, [2]) == {2: 1}
    assert [e.position for e in pool.unlock(2)] == [5, 6]
    assert pool.flush(0) == 2
    assert [(e.request, e.position) for e in pool.entries] == [(1, 3), (2, 7)]
    assert pool.free == 6


def test_pools_refuse_what_would_lose_or_reorder_tokens() -> None:
    pool = EagerPool(2)
    pool.insert(Entry(0, 4, 9, 100))
    for entry in (Entry(0, 6, 9, 100), Entry(0, 4, 9, 100), Entry(0, 5, 9, 101)):
        with pytest.raises(PoolError, match="cannot stand behind"):
            pool.insert(entry)
    pool.insert(Entry(0, 5, 9, 100))
    with pytest.raises(PoolError, match=r"^a pool of 2 entries is full$"):
        pool.insert(Entry(1, 0, 9, 100))


# The scheduler, without models


def test_a_request_step_by_step() -> None:
    s = Scheduler(Settings(max_draft=8), Cumulative(0.3), [(3, 20)])
    half = ONE // 2
    assert s.dispatch() is None
    assert s.begin_drafts(0) == [Job(0, 3)]
    assert s.begin_drafts(0) == []
    s.drafted(Job(0, 3), 11, half)
    dispatched = s.dispatch()
    assert dispatched is not None
    assert [(e.position, e.token, e.h) for e in dispatched[0]] == [(3, 11, half)]
    # under verification: to the Eager Pool; 0.25 is below tau, and stays
    assert s.begin_drafts(0) == [Job(0, 3)]
    s.drafted(Job(0, 3), 12, half)
    assert [e.token for e in s.eager[0].entries] == [12]
    assert s.begin_drafts(0) == []
    assert s.dispatch() is None
    waiting = s.waiting(0)
    assert waiting is not None
    assert waiting.token == 12
    assert s.verdict(0, 1, 12, True) == [11, 12]
    # nothing is left of the draft, and nothing is in doubt
    r = s.requests[0]
    assert (r.base, r.live, r.branch, r.h, r.stopped) == (5, 0, 3, ONE, False)
    assert s.begin_drafts(0) == [Job(0, 3)]
    s.check()


def test_h_goes_on_where_a_part_is_accepted() -> None:
    s = Scheduler(Settings(shared=False, eager=False, capacity=2), Cumulative(0.2), [(1, 20)])
    while jobs := s.begin_drafts(0):
        s.drafted(jobs[0], 5, ONE // 2)
    assert [e.h / ONE for e in s.pool.entries] == [0.5, 0.25, 0.125]
    dispatched = s.dispatch()
    assert dispatched is not None
    assert [e.h / ONE for e in dispatched[0]] == [0.5]
    assert s.verdict(0, 1, 5, True) == [5, 5]
    assert [e.h / ONE for e in s.pool.entries] == [0.125]
    # the token that took H below tau is still there, so the request rests
    assert s.begin_drafts(0) == []
    assert s.dispatch() == {0: s.pool.entries}
    assert s.verdict(0, 1, 7, False) == [5, 7]
    assert (s.requests[0].h, s.requests[0].branch) == (ONE, 5)
    assert s.begin_drafts(0) == [Job(0, 5)]


@pytest.mark.parametrize("matches", [True, False])
def test_eager_tokens_move_or_go(matches: bool) -> None:
    s = Scheduler(Settings(), Cumulative(0), [(1, 20)])
    for token in (5, 6, 7, 8):
        job, = s.begin_drafts(0)
        s.drafted(job, token, ONE)
        s.dispatch()
    job, = s.begin_drafts(0)
    assert s.verdict(0, 1, 6 if matches else 9, matches) == [5, 6 if matches else 9]
    assert [e.token for e in s.pool.entries] == ([7, 8] if matches else [])
    assert s.eager[0].entries == []
    assert s.valid(job) == matches
    s.drafted(job, 10, ONE)
    assert [e.token for e in s.pool.entries] == ([7, 8, 10] if matches else [])
    assert s.counters.stale == (not matches)
    s.check()


def test_eager_tokens_wait_for_their_own_verdict() -> None:
    s = Scheduler(Settings(lanes=2), Cumulative(0), [(1, 20), (1, 20)])
    for token in (5, 6, 7):
        jobs = s.begin_drafts(0) + s.begin_drafts(1)
        assert [j.request for j in jobs] == [0, 1]
        for job in jobs:
            s.drafted(job, token, ONE)
        s.dispatch()
    assert s.verdict(0, 1, 6, True) == [5, 6]
    assert [(e.request, e.token, e.locked) for e in s.pool.entries] == [(1, 5, True), (0, 7, False)]
    assert [e.token for e in s.eager[1].entries] == [6, 7]
    assert s.dispatch() is None
    assert s.verdict(1, 1, 6, True) == [5, 6]
    assert [(e.request, e.token) for e in s.pool.entries] == [(0, 7), (1, 7)]
    assert s.dispatch() == {r: [Entry(r, 3, 7, ONE, locked=True)] for r in (0, 1)}


def test_in_turn_a_full_pass_waits_for_the_drafts_under_way() -> None:
    s = Scheduler(Settings(lanes=2, capacity=3, eager=False), Fixed(4), [(1, 20), (1, 20)])
    jobs = s.begin_drafts(0) + s.begin_drafts(1)
    s.drafted(jobs[0], 5, ONE)
    assert s.dispatch() is None
    assert s.begin_drafts(0) == []
    s.drafted(jobs[1], 6, ONE)
    assert s.dispatch() == {0: [Entry(0, 1, 5, ONE, locked=True)], 1: []}
    assert s.begin_drafts(0) == s.begin_drafts(1) == []


def test_a_flushed_end_token_does_not_end_drafting() -> None:
    s = Scheduler(Settings(shared=False, eager=False), Fixed(4), [(1, 20)], end=0)
    job, = s.begin_drafts(0)
    s.drafted(job, 0, ONE)
    assert s.begin_drafts(0) == []
    s.dispatch()
    assert s.verdict(0, 0, 3, False) == [3]
    assert s.begin_drafts(0) == [Job(0, 2)]


def test_state_is_all_there_is() -> None:
    def grown() -> Scheduler:
        return Scheduler(Settings(lanes=2), Goodput(1, 8, 1), [(2, 9), (1, 9), (4, 9)], end=0)

    s, copy = grown(), grown()
    for token in (3, 4):
        for lane in (0, 1):
            for job in s.begin_drafts(lane):
                s.drafted(job, token, ONE // 2)
        s.dispatch()
    assert s.state() != copy.state()
    copy.load_state(s.state())
    assert copy.state() == s.state()
    assert hash(copy.state()) == hash(s.state())
    assert [s.verdict(1, 1, 4, True), copy.verdict(1, 1, 4, True)] == [[3, 4]] * 2
    assert copy.state() == s.state()


def test_settings_out_of_range() -> None:
    with pytest.raises(ParamError, match=r"^capacity must be from 1 to 4096, not 0$"):
        Settings(capacity=0)


# The rule


def test_verify_greedy() -> None:
    p, draws, q = np.eye(4)[[1, 2, 3]], KeyedDraws(), np.full(4, 0.25)
    two = [(1, q), (2, q)]
    assert verify(Greedy(), draws, Place(0, 0), two, None, p) == Verdict(2, 3, False)
    assert verify(Greedy(), draws, Place(0, 0), two, (3, q), p) == Verdict(2, 3, True)
    assert verify(Greedy(), draws, Place(0, 0), two, (0, q), p) == Verdict(2, 3, False)
    assert verify(Greedy(), draws, Place(0, 0), [(1, q), (3, q)], (3, q), p) == Verdict(1, 2, False)
    assert verify(Greedy(), draws, Place(0, 0), [(0, q), (2, q)], (3, q), p) == Verdict(0, 1, False)
    assert verify(Greedy(), draws, Place(0, 0), [], None, p[:1]) == Verdict(0, 1, False)
    assert verify(Greedy(), draws, Place(0, 0), [], (1, q), p[:1]) == Verdict(0, 1, True)


def test_the_lowest_of_equal_tokens_wins() -> None:
    tie = np.array([0.2, 0.4, 0.4])
    assert Greedy().draft(tie, KeyedDraws(), Place(0, 0)) == 1
    assert Greedy().target(tie, KeyedDraws(), Place(0, 0)) == 1
    assert not Greedy().accepts(2, tie, tie, KeyedDraws(), Place(0, 0))


def test_uniforms_are_named_by_the_token_they_decide() -> None:
    class Noted:
        def __init__(self, until: int) -> None:
            self.until, self.keys = until, []

        def pick(self, weights: object, key: Key) -> int:
            self.keys.append(key)
            return 0

        def accept(self, probability: float, key: Key) -> bool:
            self.keys.append(key)
            return key.position < self.until

    q, p = np.array([0.5, 0.5]), np.full((3, 2), [0.4, 0.6])
    tests = [Key(1, 10 + i, Purpose.ACCEPT, 7) for i in range(3)]
    for until, waiting, keys in ((11, None, [*tests[:2], Key(1, 11, Purpose.RESIDUAL, 0)]),
                                 (12, None, [*tests[:2], Key(1, 12, Purpose.TARGET, 0)]),
                                 (12, (0, q), [*tests, Key(1, 12, Purpose.RESIDUAL, 0)]),
                                 (13, (0, q), tests)):
        draws = Noted(until)
        verify(Sampling(), draws, Place(1, 10, 7), [(0, q), (0, q)], waiting, p)
        assert draws.keys == keys


def test_the_same_distribution_is_always_accepted() -> None:
    rng = np.random.default_rng(2)
    for position in range(200):
        p = rng.dirichlet(np.ones(5))
        token = Sampling().draft(p, KeyedDraws(1), Place(0, position))
        assert Sampling().accepts(token, p, p.copy(), KeyedDraws(1), Place(0, position))


def test_a_residual_of_rounding_alone() -> None:
    q = np.array([0.5, 0.5])
    p = np.array([np.nextafter(0.5, 0), 0.5])
    assert Sampling().correct(q, p, KeyedDraws(), Place(0, 0)) in (0, 1)


def test_decode_stops_at_the_end() -> None:
    model = TableModel(np.eye(3)[[1, 2, 0]])
    assert decode(Greedy(), model, [0], 5, KeyedDraws()) == [1, 2, 0, 1, 2]
    assert decode(Greedy(), model, [0], 5, KeyedDraws(), end=0) == [1, 2, 0]
    assert decode(Greedy(), model, [0], 0, KeyedDraws()) == []


# Models


@pytest.mark.parametrize(("table", "message"), [
    ([[0.5, 0.5]], r"^a table must be square, not of shape \[1, 2\]$"),
    ([[0.5, 0.4], [0, 1]], "^every row of a table must be a distribution: at least 0, sum 1$"),
    ([[1.5, -0.5], [0, 1]], "^every row of a table must be a distribution: at least 0, sum 1$"),
])
def test_tables_that_are_no_model(table: list, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TableModel(table)


def test_table_contexts_roll_back() -> None:
    session = TableModel(np.eye(2)).open()
    session.extend([0, 1, 1])
    session.roll_back(1)
    assert session.length == 1
    with pytest.raises(ValueError, match=r"^a context can be rolled back to 0 to 1 tokens, not 2$"):
        session.roll_back(2)


def test_temperature() -> None:
    shape = ModelShape(dim=16, hidden_dim=24, n_layers=1, n_heads=2, n_kv_heads=1, vocab_size=16, max_seq_len=8)
    model = Int8Model(random_checkpoint(shape, 1))
    logits = model.forward([1, 2], model.new_cache()).astype(np.float64)
    rows = {t: LlamaModel(model, t).open().extend([1, 2]) for t in (0.01, 1.0, 100.0)}
    np.testing.assert_allclose(rows[1.0], np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True), rtol=1e-12)
    for row in rows.values():
        np.testing.assert_allclose(row.sum(axis=1), 1, rtol=1e-14)
        assert (row.argmax(axis=1) == logits.argmax(axis=1)).all()
    assert rows[0.01].max() > rows[1.0].max() > rows[100.0].max()
    with pytest.raises(ValueError, match=r"^the temperature must be above 0, not 0; 0 is greedy decoding$"):
        LlamaModel(model, 0)
