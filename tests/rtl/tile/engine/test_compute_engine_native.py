"""The law in the hardware: thousands of products through the Verilated engine, at any pace, right and wrong.

For random operands of any size, every mode gives what numpy gives, and every response the cycles of the golden
model; sizes beyond the local memories go through accumulating commands.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from rtl.tile.engine.compute_engine import ComputeEngine
from sim_models.golden.tile.engine.compute_engine import STATUS, Response, cycles, gap, steps
from sim_models.mapping.gemm import (
    KEPT,
    MODES,
    NONE,
    SOURCES,
    STREAMED,
    Command,
    Program,
    activation_block,
    psum_block,
    weight_block,
)
from sim_models.params.tile.engine.compute_engine import ComputeEngineParams
from tb.common.native import NativeLibrary, NativeSim, NativeTimeout
from tb.common.timings import at_every_timing
from tb.tile.engine.engine_host import EngineHost
from tb.tile.engine.engine_sessions import Session, SessionMaker, check_results
from tests.conftest import Extent
from tests.designs.run import BUILDS

P = ComputeEngineParams
ENGINES = {
    "default": P(),
    "systolic_only": P(modes="systolic"),
    "vector_only": P(modes="vector"),
    "4x2": P(rows=4, cols=2, columns_per_hop=1, activation_depth=16, weight_depth=16, psum_depth=16),
    "2x16": P(rows=2, cols=16, columns_per_hop=1, operand_width=4, acc_width=9, psum_width=16, activation_depth=4,
              weight_depth=16, psum_depth=8),
    "16x1": P(rows=16, cols=1, activation_depth=4, weight_depth=8, psum_depth=16),
}
PACES = [1.0, 1.0, 1.0, 0.7, 0.3, 0.1]
LIMIT = 400_000


@pytest.fixture(scope="module", params=ENGINES)
def library(request: pytest.FixtureRequest) -> tuple[ComputeEngineParams, NativeLibrary]:
    p = ENGINES[request.param]
    return p, NativeSim(ComputeEngine(p), BUILDS).library


def _pace(sim: NativeSim, gen: np.random.Generator) -> None:
    for stream in sim.streams:
        sim.rate(stream, float(gen.choice(PACES)))


def _programs(p: ComputeEngineParams, gen: np.random.Generator, count: int,
              largest: int) -> list[tuple[Program, np.ndarray]]:
    """Random programs with their results by numpy, some with partial sums."""
    low = -(1 << (p.operand_width - 1))
    most = 1 << (p.psum_width - 2)
    modes = ["auto", *["systolic"] * p.systolic, *["vector"] * p.vector]
    made = []
    for _ in range(count):
        m, n = (int(size) for size in gen.integers(1, largest + 1, 2))
        k = min(int(gen.integers(1, largest + 1)), p.k_total_max)
        if gen.random() < 0.2:
            x, w = gen.choice([low, -low - 1], (m, k)), gen.choice([low, -low - 1], (k, n))
        else:
            x, w = gen.integers(low, -low, (m, k)), gen.integers(low, -low, (k, n))
        psum = gen.integers(-most, most, (m, n)) if gen.random() < 0.3 else None
        want = x @ w if psum is None else x @ w + psum
        half = 1 << (p.psum_width - 1)
        want = (want + half) % (2 * half) - half
        made.append((Program(p, x, w, psum, mode=str(gen.choice(modes)), fill=low), want))
    return made


def _check(host: EngineHost, batch: list[tuple[Program, np.ndarray]]) -> None:
    outcomes = host.run([program for program, _ in batch])
    for (program, want), outcome in zip(batch, outcomes, strict=True):
        assert outcome.result.shape == want.shape
        assert (outcome.result == want).all(), program.shape
        modes = [MODES[c.mode] for c in program.commands]
        assert outcome.responses == [Response("ok", cycles(host.p, c.m, c.k, c.n, mode))
                                     for c, mode in zip(program.commands, modes, strict=True)]
    extra = host.sim.total("o_result"), host.sim.total("o_response")
    host.sim.step(40)
    assert extra == (host.sim.total("o_result"), host.sim.total("o_response"))


@pytest.mark.parametrize("largest", [40, 80])
def test_law(library: tuple[ComputeEngineParams, NativeLibrary], largest: int, extent: Extent) -> None:
    """Hundreds of programs, one after the other without a reset, in batches that are queued at once.

    Faults excluded: wrong rows, or garbage from the padding, with shapes that are no multiple of the tile (the
    padding is the most negative operand, memories start random); a cycle formula that is off by one.
    """
    p, compiled = library
    gen = extent.generator(largest)
    host = EngineHost(p, BUILDS, library=compiled)
    # engines with small memories cut a product into many commands
    rounds = extent.count(50, 1000) // (1 if largest == 40 else 10) // (1 if p.activation_depth > 100 else 5)
    for _ in range(rounds):
        _pace(host.sim, gen)
        _check(host, _programs(p, gen, 6, largest))


def test_reset_in_the_middle(library: tuple[ComputeEngineParams, NativeLibrary], extent: Extent) -> None:
    """Stopped at any cycle by a reset of one cycle or more, the engine starts afresh, twice without another."""
    p, compiled = library
    gen = extent.generator(7)
    host = EngineHost(p, BUILDS, library=compiled)
    for _ in range(extent.count(20, 400)):
        _pace(host.sim, gen)
        for program, _ in _programs(p, gen, 4, 30):
            for stream, beats in host.codecs.queues(program).items():
                host.sim.push(stream, beats)
        host.sim.step(int(gen.integers(1, 1500)))
        host.sim.reset(int(gen.integers(1, 4)))
        _check(host, _programs(p, gen, 2, 20))
        _check(host, _programs(p, gen, 2, 20))


def _run_session(host: EngineHost, session: Session, gen: np.random.Generator) -> None:
    """Queue a session all at once, or let commands or operands wait for each other."""
    sim, counts = host.sim, session.counts(host.p)
    queues = session.queues(host.codecs)
    order = list(queues)
    if gen.random() < 0.5:
        order.reverse()
    target = {stream: sim.total(stream) + count for stream, count in counts.items()}
    for stream in order:
        sim.push(stream, queues[stream])
        if gen.random() < 0.3:
            sim.step(int(gen.integers(1, 200)))
    sim.run(target, LIMIT)
    sim.step(40)
    session.check(host.codecs, {stream: sim.take(stream)[0] for stream in counts})


def test_sessions(library: tuple[ComputeEngineParams, NativeLibrary], extent: Extent) -> None:
    """Thousands of commands with random halves, releases, kept results, malformed blocks and wrong sizes."""
    p, compiled = library
    gen = extent.generator(11)
    host = EngineHost(p, BUILDS, library=compiled)
    maker = SessionMaker(p, gen)
    seen: set[str] = set()
    for _ in range(extent.count(100, 2000)):
        _pace(host.sim, gen)
        session = maker.make(int(gen.integers(1, 50)))
        _run_session(host, session, gen)
        seen |= {r.status for r in session.responses}
    assert seen == {"ok", "shape", "mode", "activation", "weight", "psum"}


@pytest.fixture(scope="module")
def default_library() -> NativeLibrary:
    return NativeSim(ComputeEngine(ENGINES["default"]), BUILDS).library


@pytest.fixture(scope="module")
def wide() -> EngineHost:
    """Sixteen column groups: the last one is far behind the first."""
    p = ENGINES["2x16"]
    return EngineHost(p, BUILDS, library=NativeSim(ComputeEngine(p), BUILDS).library)


def _operands(host: EngineHost, c: Command, gen: np.random.Generator) -> np.ndarray:
    """Push operands of a command; the product."""
    x, w = gen.integers(-8, 8, (c.m, c.k)), gen.integers(-8, 8, (c.k, c.n))
    host.sim.push("i_activation", host.codecs.block("i_activation", activation_block(host.p, x), c.activation_half))
    host.sim.push("i_weight", host.codecs.block("i_weight", weight_block(host.p, w), c.weight_half))
    return x @ w


def _answers(host: EngineHost, count: int, wanted: Sequence[np.ndarray], limit: int = 5000) -> list[str]:
    """Statuses of so many commands; all results since the last call are compared."""
    sim = host.sim
    beats = sum(len(psum_block(host.p, out)) for out in wanted)
    sim.run({stream: sim.total(stream) - sim.available(stream) + wait
             for stream, wait in (("o_response", count), ("o_result", beats))}, limit)
    sim.step(40)
    payloads = sim.take("o_result")[0]
    assert len(payloads) == beats
    if beats:
        check_results(host.codecs, payloads, list(wanted), "results")
    return [r.status for r in host.codecs.responses(sim.take("o_response", count)[0])]


def test_any_timing_gives_the_same_answers(library: tuple[ComputeEngineParams, NativeLibrary],
                                           extent: Extent) -> None:
    """Random sessions, each stream held back or ahead of all others: statuses, cycles and results stay the same.

    Faults excluded: a streamed block of partial sums that an earlier command takes, or that kept results replace; a
    refused command that releases its blocks if they have come by then.
    """
    p, compiled = library
    gen = extent.generator(12)
    host = EngineHost(p, BUILDS, library=compiled)
    maker = SessionMaker(p, gen)
    seen: set[tuple[int, bool, str]] = set()
    for _ in range(extent.count(20, 300)):
        session = maker.make(30)
        at_every_timing(host.sim, session.queues(host.codecs), session.counts(p),
                        partial(session.check, host.codecs), limit=LIMIT)
        seen |= {(c.accumulate, c.keep, r.status)
                 for c, r in zip(session.commands, session.responses, strict=True)}
    sources = NONE, STREAMED, KEPT
    assert seen >= {(source, keep, "ok") for source in sources for keep in (False, True)}
    both = {(source, status) for source, _, status in seen}
    assert both >= {(source, status) for source in sources for status in STATUS} - {(NONE, "psum")}


@pytest.fixture
def four() -> EngineHost:
    """A small engine of 4 x 4 elements, which keeps nothing from another test."""
    return EngineHost(P(rows=4, cols=4, activation_depth=32, weight_depth=32, psum_depth=32), BUILDS)


def _in_two_parts(host: EngineHost, commands: list[Command], block: np.ndarray, start: int, there: int,
                  pause: int) -> None:
    """Commands, and a block of partial sums ``start`` cycles later, or before; ``there`` beats of it at first."""
    sim = host.sim
    pushes = [("i_command", host.codecs.commands(commands)), ("i_psum", block[:there])]
    for stream, beats in pushes if start >= 0 else pushes[::-1]:
        sim.push(stream, beats)
        sim.step(abs(start))
    sim.step(pause)
    sim.push("i_psum", block[there:])


def test_a_streamed_block_belongs_to_its_command(four: EngineHost) -> None:
    """Kept, taken up, then a streamed block for the same half: right whenever its beats come.

    Once an early block was taken by the second command, or replaced by what the first one kept, without a word.
    """
    gen = np.random.default_rng(5)
    held = {"psum_half": 1, "release_activation": False, "release_weight": False}
    commands = [Command(m=4, k=8, n=4, accumulate=source, keep=source == NONE, **held)
                for source in (NONE, KEPT, STREAMED)]
    product = _operands(four, commands[0], gen)
    for start in range(-8, 100):
        psum = gen.integers(-99, 99, (4, 4))
        block = four.codecs.block("i_psum", psum_block(four.p, psum))
        _in_two_parts(four, commands, block, start, int(gen.integers(len(block) + 1)), int(gen.integers(40)))
        assert _answers(four, 3, [2 * product, product + psum]) == ["ok"] * 3


@pytest.mark.parametrize("wrong", [{"m": 200}, {"mode": 3}, {"accumulate": len(SOURCES)}, {"k": 7, "n": 64}])
def test_a_refused_command_takes_its_blocks_whenever_they_come(four: EngineHost, wrong: dict[str, int]) -> None:
    """The blocks sent for a wrong command are gone with it, at any time; those for the next one are not."""
    gen = np.random.default_rng(6)
    sim = four.sim
    good = Command(m=3, k=8, n=4, accumulate=STREAMED)
    refused = replace(good, **wrong)
    for start in range(-40, 60, 3):
        first = [("i_command", four.codecs.commands([refused, good]))]
        x, psum = gen.integers(-8, 8, (2, 3, 8)), gen.integers(-99, 99, (2, 3, 4))
        w = gen.integers(-8, 8, (2, 8, 4))
        streamed = psum if refused.accumulate == STREAMED else psum[1:]
        blocks = {"i_activation": [four.codecs.block("i_activation", activation_block(four.p, a), 0) for a in x],
                  "i_weight": [four.codecs.block("i_weight", weight_block(four.p, b), 0) for b in w],
                  "i_psum": [four.codecs.block("i_psum", psum_block(four.p, s)) for s in streamed]}
        operands = [(stream, np.concatenate(b)) for stream, b in blocks.items()]
        for queue in (first, operands) if start >= 0 else (operands, first):
            for stream, beats in queue:
                sim.push(stream, beats)
            sim.step(abs(start))
        status = "mode" if "mode" in wrong or "accumulate" in wrong else "shape"
        assert _answers(four, 2, [x[1] @ w[1] + psum[1]]) == [status, "ok"]


def test_a_command_of_no_size_takes_no_block(four: EngineHost) -> None:
    """M, K or N of 0 is refused without waiting for blocks that have no words; the other block goes with it."""
    gen = np.random.default_rng(7)
    good = Command(m=1, k=4, n=4)
    for name, taken in (("m", "i_weight"), ("k", None), ("n", "i_activation")):
        bad = replace(good, accumulate=STREAMED if name != "k" else NONE, **{name: 0})
        four.sim.push("i_command", four.codecs.commands([bad]))
        if taken:
            four.sim.step(60)
            assert four.sim.available("o_response") == 0
            words = 1 if taken == "i_activation" else 4
            four.sim.push(taken, four.codecs.block(taken, np.zeros((1, 4 * words), np.int64), 0))
        assert _answers(four, 1, []) == ["shape"]
        product = _operands(four, good, gen)
        four.sim.push("i_command", four.codecs.commands([good]))
        assert _answers(four, 1, [product]) == ["ok"]


def test_no_later_command_takes_older_sums(four: EngineHost) -> None:
    """A command that should have kept its results is refused, and so is the one that asks for them."""
    gen = np.random.default_rng(8)
    keeping = Command(m=2, k=4, n=4, keep=True, release_activation=False, release_weight=False)
    taking = replace(keeping, keep=False, accumulate=KEPT)
    product = _operands(four, keeping, gen)
    for bad in (replace(keeping, mode=3), replace(keeping, m=200), replace(keeping, m=1), replace(taking, m=1)):
        four.sim.push("i_command", four.codecs.commands([keeping, bad, taking, keeping, taking, taking]))
        statuses = _answers(four, 6, [2 * product])
        assert statuses == ["ok", statuses[1], "psum", "ok", "ok", "psum"]
        assert statuses[1] != "ok"


def test_split_products_with_and_without_partial_sums_follow_each_other(four: EngineHost) -> None:
    """Products whose K is cut, each behind the other in one queue: each gets its own partial sums."""
    gen = np.random.default_rng(9)
    for n in range(20):
        batch = []
        for has_psum in (False, True, bool(gen.integers(2)), True):
            x, w = gen.integers(-128, 128, (4, 200)), gen.integers(-128, 128, (200, 4))
            psum = gen.integers(-(1 << 30), 1 << 30, (4, 4))
            batch.append((Program(four.p, x, w, psum if has_psum else None), x @ w + psum * has_psum))
        assert min(len(program.commands) for program, _ in batch) > 1
        if n:
            _pace(four.sim, gen)
        _check(four, batch)


def test_kept_results_replace_those_still_in_use(wide: EngineHost) -> None:
    """A command keeps its results in a half that the one before still reads or writes; neither loses anything."""
    gen = np.random.default_rng(1)
    maker = SessionMaker(wide.p, gen)
    wide.sim.reset()
    for n in range(16, 129, 16):
        for first in ({"accumulate": STREAMED}, {"keep": True}):
            session = maker.script([
                {"m": 1, "k": 2, "n": n, **first},
                {"m": 1, "k": 1, "n": 16, "keep": True, "activation_half": 1, "weight_half": 1},
                {"m": 1, "k": 2, "n": 16, "accumulate": KEPT}])
            _run_session(wide, session, gen)


@pytest.mark.parametrize(("m", "k", "n", "share"), [(8, 64, 64, 1.0), (9, 64, 172, 0.94), (1, 64, 172, 0.97)])
def test_back_to_back_keeps_the_array_busy(default_library: NativeLibrary, m: int, k: int, n: int,
                                           share: float) -> None:
    """With operands on chip commands follow each other in exactly the steps and the gap of the golden model."""
    p = ENGINES["default"]
    host = EngineHost(p, BUILDS, library=default_library)
    command = Command(m=m, k=k, n=n, release_activation=False, release_weight=False)
    product = _operands(host, command, np.random.default_rng(3))
    count, sim = 12, host.sim
    sim.push("i_command", host.codecs.commands([command] * count))
    beats = m * -(-n // p.cols)
    sim.run({"o_response": count, "o_result": count * beats}, 10_000 + count * steps(p, m, k, n))
    check_results(host.codecs, sim.take("o_result")[0], [product] * count, "results")
    between = np.diff(sim.take("o_response")[1])
    assert between.tolist() == [steps(p, m, k, n) + gap(p, (m, "auto"), (m, "auto"))] * (count - 1)
    assert m * k * n / (p.rows * p.cols * between[0]) >= share


def test_waiting_for_ever_is_reported(default_library: NativeLibrary) -> None:
    """A command without its operands waits, and the host says for what."""
    host = EngineHost(ENGINES["default"], BUILDS, library=default_library)
    host.sim.push("i_command", host.codecs.commands([Command(m=1, k=1, n=1)]))
    with pytest.raises(NativeTimeout, match="o_response 1 transfers were wanted, after 500 cycles"):
        host.sim.run({"o_response": 1}, 500)
