"""The law in the golden models: every schedule of a matrix product gives the same numbers as numpy."""

import itertools
import re
from collections.abc import Callable
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtl.tile.engine.layouts import ArrayMode, EngineStatus, PsumSource, gemm_command
from sim_models.golden.tile.engine.compute_engine import STATUS, ComputeEngine, Response, cycles, gap, multiply, steps
from sim_models.mapping.gemm import (
    KEPT,
    MODES,
    NONE,
    SOURCES,
    STREAMED,
    Command,
    GemmError,
    Program,
    activation_block,
    psum_block,
    result_matrix,
    weight_block,
)
from sim_models.params.tile.engine.compute_engine import DIM_WIDTH, ComputeEngineParams
from sim_models.params.tile.engine.pe import accumulator_width, largest_k

P = ComputeEngineParams
ENGINES = {
    "default": P(),
    "systolic_only": P(modes="systolic"),
    "vector_only": P(modes="vector"),
    "4x2": P(rows=4, cols=2, activation_depth=8, weight_depth=8, psum_depth=8),
    "2x16": P(rows=2, cols=16, activation_depth=4, weight_depth=16, psum_depth=4),
    "16x1": P(rows=16, cols=1, activation_depth=4, weight_depth=4, psum_depth=16),
    "narrow": P(operand_width=4, acc_width=9, activation_depth=16, weight_depth=16, psum_depth=16),
}
ENGINE = st.sampled_from(list(ENGINES.values()))
SIZE = st.integers(1, 40)
SEED = st.integers(0, 2**32 - 1)


def operands(p: ComputeEngineParams, m: int, k: int, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Random operands; one in four sets is all extremes."""
    gen = np.random.default_rng(seed)
    low = -(1 << (p.operand_width - 1))
    if seed % 4 == 0:
        return gen.choice([low, -low - 1], (m, k)), gen.choice([low, -low - 1], (k, n))
    return gen.integers(low, -low, (m, k)), gen.integers(low, -low, (k, n))


def has(p: ComputeEngineParams, mode: str) -> bool:
    """Whether the engine has the mode."""
    return {"auto": True, "systolic": p.systolic, "vector": p.vector}[mode]


@settings(max_examples=200, deadline=None)
@given(ENGINE, SIZE, SIZE, SIZE, SEED)
def test_every_mode_is_numpy(p: ComputeEngineParams, m: int, k: int, n: int, seed: int) -> None:
    """Systolic = vector-lane = AUTO = numpy, in one command's order of additions."""
    k = min(k, largest_k(p.operand_width, p.acc_width))
    x, w = operands(p, m, k, n, seed)
    for mode in MODES:
        assert (multiply(p, x, w, mode) == x @ w).all()


@settings(max_examples=150, deadline=None)
@given(ENGINE, SIZE, SIZE, SIZE, SEED, st.sampled_from(MODES), st.booleans())
def test_every_program_is_numpy(p: ComputeEngineParams, m: int, k: int, n: int, seed: int, mode: str,
                                has_psum: bool) -> None:
    """A program of any size: values, and one good response per command with the cycles stated."""
    if not has(p, mode):
        mode = "auto"
    x, w = operands(p, m, k, n, seed)
    psum = np.random.default_rng(seed).integers(-(1 << 20), 1 << 20, (m, n)) if has_psum else None
    program = Program(p, x, w, psum, mode=mode, fill=-1)
    result, responses = ComputeEngine(p).run(program)
    assert (result == x @ w + (0 if psum is None else psum)).all()
    assert responses == [Response("ok", cycles(p, c.m, c.k, c.n, mode)) for c in program.commands]


@settings(max_examples=150, deadline=None)
@given(ENGINE, SIZE, SIZE, SIZE, SEED, st.data())
def test_any_split_of_k_is_the_same(p: ComputeEngineParams, m: int, k: int, n: int, seed: int,
                                    data: st.DataObject) -> None:
    """K cut anywhere, pieces in any order of modes, accumulated over commands: numpy again."""
    m, n = min(m, p.psum_depth, p.activation_depth), min(n, p.cols * min(p.psum_depth, p.weight_depth))
    n = min(n, p.psum_depth // m * p.cols)
    x, w = operands(p, m, k, n, seed)
    piece = min(p.k_max, p.activation_depth // m * p.rows, p.weight_depth // -(-n // p.cols) * p.rows)
    cuts = [0]
    while cuts[-1] < k:
        cuts.append(min(k, cuts[-1] + data.draw(st.integers(1, piece))))
    engine = ComputeEngine(p)
    for start, end in itertools.pairwise(cuts):
        mode = data.draw(st.sampled_from([i for i, name in enumerate(MODES) if has(p, name)]))
        engine.fill("activation", 0, activation_block(p, x[:, start:end], -1))
        engine.fill("weight", 0, weight_block(p, w[start:end], -1))
        source = KEPT if start else NONE
        response = engine.command(Command(m=m, k=end - start, n=n, mode=mode, accumulate=source, keep=end < k))
        assert response.status == "ok"
    assert len(engine.outputs) == 1
    assert (engine.outputs[0] == x @ w).all()


@settings(max_examples=60, deadline=None)
@given(ENGINE, SIZE, SIZE, SIZE, st.booleans())
def test_program_covers_everything_once(p: ComputeEngineParams, m: int, k: int, n: int, has_psum: bool) -> None:
    """With ones for operands the result counts products: K everywhere, so nothing is left out or done twice."""
    ones = np.ones((m, k), np.int64), np.ones((k, n), np.int64)
    program = Program(p, *ones, np.zeros((m, n), np.int64) if has_psum else None)
    assert (ComputeEngine(p).run(program)[0] == k).all()
    assert sum(c.m * c.k * c.n for c in program.commands) == m * k * n
    covered = np.zeros((m, n), np.int64)
    for part in program.outputs:
        covered[part.rows, part.cols] += 1
    assert (covered == 1).all()
    # every command fits, and every block has the size that its commands want
    for c in program.commands:
        words, tiles = -(-c.k // p.rows), -(-c.n // p.cols)
        assert c.k <= p.k_max
        assert c.m * words <= p.activation_depth
        assert words * tiles <= p.weight_depth
        assert c.m * tiles <= p.psum_depth


@pytest.mark.parametrize(("p", "k", "n"), [
    (P(weight_depth=16384, psum_depth=16384), 8, 70_000),
    (P(operand_width=2, activation_depth=16384, weight_depth=16384), 70_000, 8),
])
def test_sizes_that_a_command_has_no_bits_for_are_split(p: ComputeEngineParams, k: int, n: int) -> None:
    """Memories can hold more of K or N than the fields of a command can say."""
    x, w = operands(p, 1, k, n, 1)
    program = Program(p, x, w)
    assert max(max(c.m, c.k, c.n) for c in program.commands) < 1 << DIM_WIDTH
    result, responses = ComputeEngine(p).run(program)
    assert {r.status for r in responses} == {"ok"}
    assert (result == x @ w).all()


@given(st.integers(2, 16), st.integers(1, 5000))
def test_accumulator_width_is_tight(width: int, k: int) -> None:
    """`accumulator_width` is the least width that holds K worst products, and `largest_k` its inverse."""
    acc = accumulator_width(width, k)
    worst = k << (2 * width - 2)
    assert worst <= (1 << (acc - 1)) - 1
    assert worst > (1 << (acc - 2)) - 1
    assert largest_k(width, acc) >= k > largest_k(width, acc - 1)


@pytest.mark.parametrize(("width", "acc"), [(8, 25), (8, 24), (8, 16), (4, 9), (2, 4), (2, 8), (16, 40)])
def test_largest_k_is_the_limit(width: int, acc: int) -> None:
    """Extreme operands: exact at the largest K, wrapped one beyond, in both modes' order of additions.

    Fault excluded: accumulators that wrap at the longest K with extreme operands.
    """
    p = P(operand_width=width, acc_width=acc, psum_width=64)
    low, longest = -(1 << (width - 1)), largest_k(width, acc)
    for mode in MODES:
        for k, exact in ((longest, True), (longest + 1, False)):
            x, w = np.full((9, k), low), np.full((k, 3), low)
            assert (multiply(p, x, w, mode) == x @ w).all() == exact
            # of all operands these are the worst: the other sign never overflows at the largest K
            if exact:
                assert (multiply(p, x, np.full((k, 3), -low - 1), mode) == k * low * (-low - 1)).all()


def test_command_beyond_k_max_is_refused() -> None:
    """What could overflow is refused, not computed: by a command for `k_max`, by a program for `k_total_max`."""
    p = P(acc_width=18, psum_width=18, activation_depth=2, weight_depth=2)
    assert (p.k_max, p.k_total_max) == (7, 7)
    engine = ComputeEngine(p)
    engine.fill("activation", 0, np.zeros((1, 8)))
    engine.fill("weight", 0, np.zeros((1, 64)))
    kept = Command(m=1, k=8, n=1, release_activation=False, release_weight=False)
    assert engine.command(kept) == Response("shape", 0)
    assert engine.command(replace(kept, k=7)).status == "ok"
    with pytest.raises(GemmError, match=r"^K must be at most 7, so that 18 bits cannot overflow, not 8$"):
        Program(p, np.zeros((1, 8), int), np.zeros((8, 1), int))


@settings(max_examples=50, deadline=None)
@given(ENGINE, SIZE, SIZE, SIZE, SEED)
def test_padding_never_matters(p: ComputeEngineParams, m: int, k: int, n: int, seed: int) -> None:
    """Poison beyond K and N stays where it is. Fault excluded: garbage from the padding used."""
    x, w = operands(p, m, k, n, seed)
    poison = -(1 << (p.operand_width - 1))
    clean, poisoned = (ComputeEngine(p).run(Program(p, x, w, fill=fill))[0] for fill in (0, poison))
    assert (clean == poisoned).all()


@settings(max_examples=50, deadline=None)
@given(ENGINE, SIZE, SIZE, SEED)
def test_blocks_are_laid_out_as_documented(p: ComputeEngineParams, a: int, b: int, seed: int) -> None:
    """Element by element, from the formulas in the layouts' docstrings."""
    matrix = np.random.default_rng(seed).integers(-100, 99, (a, b))
    words, tiles = -(-b // p.rows), -(-b // p.cols)
    block, partial = activation_block(p, matrix, 99), psum_block(p, matrix, 99)
    for m, k in np.ndindex(a, b):
        assert block[m * words + k // p.rows, k % p.rows] == matrix[m, k]
        assert partial[m * tiles + k // p.cols, k % p.cols] == matrix[m, k]
    assert (block == 99).sum() == block.size - matrix.size
    assert (result_matrix(p, partial, a, b) == matrix).all()
    weights = weight_block(p, matrix, 99)
    words = -(-a // p.rows)
    for k, n in np.ndindex(a, b):
        assert weights[n // p.cols * words + k // p.rows, k % p.rows * p.cols + n % p.cols] == matrix[k, n]


def test_steps_and_cycles_by_hand() -> None:
    """Counted by hand for 8 x 8: passes of 8 steps a word and tile, single rows of one; then the pipeline."""
    p = P()
    tail = 5 + p.groups - 1
    assert steps(p, 8, 64, 64) == 8 * 8 * 8
    assert steps(p, 9, 64, 172) == (8 + 1) * 8 * 22
    assert steps(p, 9, 64, 172, "systolic") == 16 * 8 * 22
    assert steps(p, 9, 64, 172, "vector") == 9 * 8 * 22
    assert steps(p, 1, 1, 1) == 1
    assert steps(p, 1, 1, 1, "systolic") == 8
    assert cycles(p, 1, 1, 1) == 1 + tail + 7
    assert cycles(p, 1, 1, 1, "systolic") == 8 + tail
    assert cycles(p, 8, 8, 8) == 8 + tail + 7
    assert cycles(p, 9, 8, 8, "systolic") == 16 + tail
    assert [gap(p, (9, "auto"), (8, "auto")), gap(p, (8, "auto"), (9, "auto")), gap(p, (1, "auto"), (1, "auto"))] == [
        1, 0, 0]
    assert gap(P(modes="systolic"), (9, "auto"), (9, "auto")) == 0
    assert gap(P(modes="vector"), (9, "auto"), (9, "auto")) == 0


@pytest.mark.parametrize(("make", "text"), [
    (lambda p, x, w: Program(p, x, w, mode="fast"), "mode must be one of auto, systolic, vector, not fast"),
    (lambda p, x, w: Program(p, x, w[:2]),
     "activations (M, K) and weights (K, N) were wanted, (2, 3) and (2, 4) came"),
    (lambda p, x, w: Program(p, x[0], w), "activations (M, K) and weights (K, N) were wanted, (3,) and (3, 4) came"),
    (lambda p, x, w: Program(p, x[:0], w), "M, K and N must be at least 1, not 0, 3, 4"),
    (lambda p, x, w: Program(p, x[:, :0], w[:0]), "M, K and N must be at least 1, not 2, 0, 4"),
    (lambda p, x, w: Program(p, x, w[:, :0]), "M, K and N must be at least 1, not 2, 3, 0"),
    (lambda p, x, w: Program(p, x + 128, w), "activations must fit 8 signed bits, not 128 to 128"),
    (lambda p, x, w: Program(p, x, w - 129), "weights must fit 8 signed bits, not -129 to -129"),
    (lambda p, x, w: Program(p, x, w, np.zeros((4, 2))), "partial sums of shape (2, 4) were wanted, (4, 2) came"),
    (lambda p, x, w: Program(p, x, w, np.full((2, 4), 1 << 31)),
     "partial sums must fit 32 signed bits, not 2147483648 to 2147483648"),
    (lambda p, x, w: Program(p, x, w).assemble(np.zeros((3, 8))), "2 beats of results were wanted, 3 came"),
])
def test_wrong_programs_are_refused(make: Callable[..., object], text: str) -> None:
    with pytest.raises(GemmError, match=f"^{re.escape(text)}$"):
        make(P(), np.zeros((2, 3), int), np.zeros((3, 4), int))


def test_waiting_for_ever_is_an_error_of_the_model() -> None:
    """Where the hardware would wait for ever the model says why."""
    engine = ComputeEngine(P())
    with pytest.raises(ValueError, match="the command needs half 1 of the activation memory, which is empty"):
        engine.command(Command(m=1, k=1, n=1, activation_half=1))
    for half in (0, 0, 1):
        engine.fill("activation", half, np.zeros((1, 8)))
    with pytest.raises(ValueError, match="the command needs half 0 of the weight memory, which is empty"):
        engine.command(Command(m=1, k=1, n=1))
    with pytest.raises(ValueError, match="the command needs half 0 of the weight memory, which is empty"):
        engine.command(Command(m=2, k=1, n=1))      # a wrong block decides nothing before all are there
    with pytest.raises(ValueError, match="needs half 1 of the activation memory, but the next block waits for half "
                                         "0, which is full"):
        engine.command(Command(m=1, k=1, n=1, activation_half=1))
    with pytest.raises(ValueError, match="the command needs a block of partial sums, and none was sent"):
        engine.command(Command(m=1, k=1, n=1, accumulate=STREAMED))


def _small(blocks: int) -> tuple[ComputeEngine, list[np.ndarray]]:
    """An engine with so many blocks of ones for commands of 1 x 1 x 1, and of partial sums 100, 200, and so on."""
    engine = ComputeEngine(P())
    for _ in range(blocks):
        engine.fill("activation", 0, np.ones((1, 8), int))
        engine.fill("weight", 0, np.ones((1, 64), int))
    psums = [np.full((1, 8), 100 * (i + 1)) for i in range(blocks)]
    for words in psums:
        engine.fill_psum(words)
    return engine, psums


def _play(engine: ComputeEngine, *commands: Command) -> tuple[list[str], list[int]]:
    """Statuses and results of commands of one element."""
    statuses = [engine.command(c).status for c in commands]
    return statuses, [int(out[0, 0]) for out in engine.outputs]


ONE = Command(m=1, k=1, n=1)


def test_partial_sums_belong_to_their_commands() -> None:
    """The n-th streamed block goes to the n-th command that asks for one, what is kept to the next that does."""
    assert _play(_small(3)[0], replace(ONE, keep=True), replace(ONE, accumulate=KEPT),
                 replace(ONE, accumulate=STREAMED)) == (["ok"] * 3, [2, 101])
    assert _play(_small(6)[0], replace(ONE, keep=True), replace(ONE, accumulate=STREAMED, psum_half=1, keep=True),
                 replace(ONE, accumulate=STREAMED, psum_half=1), replace(ONE, accumulate=KEPT, keep=True),
                 replace(ONE, accumulate=KEPT), ONE) == (["ok"] * 6, [201, 3, 1])
    # a streamed block, and results that are kept, replace what nobody asked for
    assert _play(_small(4)[0], replace(ONE, keep=True), replace(ONE, accumulate=STREAMED),
                 replace(ONE, accumulate=KEPT), ONE) == (["ok", "ok", "psum", "ok"], [101, 1])


@pytest.mark.parametrize("wrong", [{"mode": 3}, {"m": 65535}, {"m": 2}, {"accumulate": len(SOURCES)}])
def test_a_refused_command_takes_what_it_would_have_taken(wrong: dict[str, int]) -> None:
    """Its blocks are gone, and nothing is left in its half for a later one to add."""
    refused = {"m": ["shape"], "mode": ["mode"], "accumulate": ["mode"]}[next(iter(wrong))]
    refused = ["activation"] if wrong == {"m": 2} else refused
    engine, _ = _small(3)
    bad = replace(ONE, accumulate=STREAMED, keep=True)
    first = 200 if "accumulate" not in wrong else 100
    assert _play(engine, replace(bad, **wrong), replace(ONE, accumulate=STREAMED), replace(ONE, accumulate=KEPT)) == (
        [*refused, "ok", "psum"], [first + 1])
    engine, _ = _small(3)
    again = replace(ONE, keep=True, **wrong)
    assert _play(engine, replace(ONE, keep=True), again, replace(ONE, accumulate=KEPT)) == (
        ["ok", *refused, "psum"], [])


def test_a_command_of_no_size_takes_no_block() -> None:
    engine, _ = _small(1)
    for size in ("m", "k", "n"):
        bad = replace(ONE, release_activation=size != "n", release_weight=size != "m", **{size: 0})
        assert engine.command(replace(bad, accumulate=STREAMED if size != "k" else NONE)) == Response("shape", 0)
    assert _play(engine, replace(ONE, accumulate=STREAMED)) == (["ok"], [101])


def test_numbers_of_modes_and_statuses_are_those_of_the_hardware():
    assert [mode.name.lower() for mode in ArrayMode] == list(MODES)
    assert [status.name.lower() for status in EngineStatus] == list(STATUS)
    assert [source.name.lower() for source in PsumSource] == list(SOURCES)
    assert [s.value for s in PsumSource] == [NONE, STREAMED, KEPT]
    assert [m.value for m in ArrayMode] == list(range(len(MODES)))
    assert [s.value for s in EngineStatus] == list(range(len(STATUS)))
    assert [f.name for f in fields(Command)] == list(dict(gemm_command))
