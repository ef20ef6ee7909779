"""The law in the hardware: thousands of products through the Verilated engine, at any pace, right and wrong.

For random operands of any size, every mode gives what numpy gives, and every response the cycles of the golden
model; sizes beyond the local memories go through accumulating commands.
"""

from dataclasses import replace

import numpy as np
import pytest

from rtl.tile.engine.compute_engine import ComputeEngine
from sim_models.golden.tile.engine.compute_engine import Response, cycles, gap, steps
from sim_models.mapping.gemm import MODES, Command, Program, activation_block, psum_block, weight_block
from sim_models.params.tile.engine.compute_engine import ComputeEngineParams
from tb.common.native import NativeLibrary, NativeSim, NativeTimeout
from tb.tile.engine.engine_host import EngineHost
from tb.tile.engine.engine_sessions import Session, SessionMaker, check_results
from tests.designs.run import BUILDS

P = ComputeEngineParams
ENGINES = {
    "default": P(),
    "systolic_only": P(dual_mode=False),
    "vector_only": P(vector_only=True),
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
def test_law(library: tuple[ComputeEngineParams, NativeLibrary], largest: int) -> None:
    """Hundreds of programs, one after the other without a reset, in batches that are queued at once.

    Faults excluded: wrong rows, or garbage from the padding, with shapes that are no multiple of the tile (the
    padding is the most negative operand, memories start random); a cycle formula that is off by one.
    """
    p, compiled = library
    gen = np.random.default_rng(largest)
    host = EngineHost(p, BUILDS, library=compiled)
    # engines with small memories cut a product into many commands
    rounds = (100 if largest == 40 else 10) // (1 if p.activation_depth > 100 else 5)
    for _ in range(rounds):
        _pace(host.sim, gen)
        _check(host, _programs(p, gen, 6, largest))


def test_reset_in_the_middle(library: tuple[ComputeEngineParams, NativeLibrary]) -> None:
    """Stopped at any cycle by a reset of one cycle or more, the engine starts afresh, twice without another."""
    p, compiled = library
    gen = np.random.default_rng(7)
    host = EngineHost(p, BUILDS, library=compiled)
    for _ in range(40):
        _pace(host.sim, gen)
        for program, _ in _programs(p, gen, 4, 30):
            for stream, beats in host.codecs.queues(program).items():
                host.sim.push(stream, beats)
        host.sim.step(int(gen.integers(1, 1500)))
        host.sim.reset(int(gen.integers(1, 4)))
        _check(host, _programs(p, gen, 2, 20))
        _check(host, _programs(p, gen, 2, 20))


def _run_session(host: EngineHost, session: Session, gen: np.random.Generator, name: str) -> None:
    """Queue a session all at once, or let commands or operands wait for each other."""
    sim = host.sim
    beats = session.result_beats(host.p)
    target = {"o_response": sim.total("o_response") + len(session.responses),
              "o_result": sim.total("o_result") + beats}
    order = [*session.beats, "i_command"]
    if gen.random() < 0.5:
        order.reverse()
    for stream in order:
        blocks = [host.codecs.commands(session.commands)] if stream == "i_command" else session.beats[stream]
        for block in blocks:
            sim.push(stream, block)
        if gen.random() < 0.3:
            sim.step(int(gen.integers(1, 200)))
    sim.run(target, LIMIT)
    sim.step(40)
    answers = host.codecs.responses(sim.take("o_response")[0])
    for i, (got, want) in enumerate(zip(answers, session.responses, strict=True)):
        assert got == want, f"{name}, command {i}: {session.commands[i]}"
    payloads = sim.take("o_result")[0]
    assert len(payloads) == beats
    if beats:
        check_results(host.codecs, payloads, session.outputs, name)


def test_sessions(library: tuple[ComputeEngineParams, NativeLibrary]) -> None:
    """Thousands of commands with random halves, releases, kept results, malformed blocks and wrong sizes."""
    p, compiled = library
    gen = np.random.default_rng(11)
    host = EngineHost(p, BUILDS, library=compiled)
    maker = SessionMaker(p, gen)
    seen: set[str] = set()
    for number in range(100):
        _pace(host.sim, gen)
        session = maker.make(int(gen.integers(1, 50)))
        _run_session(host, session, gen, f"session {number}")
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


def _operands(host: EngineHost, c: Command, gen: np.random.Generator, late: bool = False) -> np.ndarray:
    """Push operands of a command, the weights a while after the activations if ``late``; the product."""
    x, w = gen.integers(-8, 8, (c.m, c.k)), gen.integers(-8, 8, (c.k, c.n))
    host.sim.push("i_activation", host.codecs.block("i_activation", c.activation_half, activation_block(host.p, x)))
    if late:
        host.sim.step(40)
    host.sim.push("i_weight", host.codecs.block("i_weight", c.weight_half, weight_block(host.p, w)))
    return x @ w


def _answers(host: EngineHost, commands: list[Command], wanted: list[np.ndarray]) -> list[str]:
    """Statuses of commands; all results since the last call are compared."""
    sim = host.sim
    sim.push("i_command", host.codecs.commands(commands))
    sim.run({"o_response": sim.total("o_response") + len(commands)}, 5000)
    sim.step(200)
    payloads = sim.take("o_result")[0]
    assert bool(len(payloads)) == bool(wanted)
    if wanted:
        check_results(host.codecs, payloads, wanted, "results")
    return [r.status for r in host.codecs.responses(sim.take("o_response")[0])]


def test_release_of_a_refused_command_comes_in_its_turn(wide: EngineHost) -> None:
    """A block that is queued on the answer to a refused command is not lost to the release of an earlier one."""
    gen = np.random.default_rng(0)
    wide.sim.reset()
    sim, good = wide.sim, Command(m=1, k=2, n=16)
    for _ in range(3):
        first = _operands(wide, good, gen)
        sim.push("i_command", wide.codecs.commands([good, Command(m=0, k=1, n=1)]))
        sim.run({"o_response": sim.total("o_response") + 2}, 500)
        assert [r.status for r in wide.codecs.responses(sim.take("o_response")[0])] == ["ok", "shape"]
        second = _operands(wide, good, gen, late=True)
        assert _answers(wide, [good], [first, second]) == ["ok"]


def test_kept_results_replace_those_still_in_use(wide: EngineHost) -> None:
    """A command keeps its results in a half that the one before still reads or writes; neither loses anything."""
    gen = np.random.default_rng(1)
    maker = SessionMaker(wide.p, gen)
    wide.sim.reset()
    for n in range(16, 129, 16):
        for first in ({"accumulate": True}, {"keep": True}):
            session = maker.script([
                {"m": 1, "k": 2, "n": n, **first},
                {"m": 1, "k": 1, "n": 16, "keep": True, "activation_half": 1, "weight_half": 1},
                {"m": 1, "k": 2, "n": 16, "accumulate": True}])
            _run_session(wide, session, gen, f"N = {n}, {first}")


@pytest.mark.parametrize("half", [0, 1])
def test_keep_finds_a_part_of_a_block(wide: EngineHost, half: int) -> None:
    """A block whose beats have begun to come is neither mixed with kept results nor lost: the command is refused."""
    sim, p = wide.sim, wide.p
    sim.reset()
    gen = np.random.default_rng(4)
    psum = gen.integers(-99, 99, (1, 64))
    block = wide.codecs.block("i_psum", half, psum_block(p, psum))
    keeping = Command(m=1, k=2, n=64, keep=True, psum_half=half, release_activation=False, release_weight=False)
    product = _operands(wide, keeping, gen)
    for there in range(1, len(block)):
        other = Command(m=1, k=2, n=64, keep=True, psum_half=1 - half, release_activation=False, release_weight=False)
        using = [Command(m=1, k=2, n=64, accumulate=True, psum_half=h, release_activation=False,
                         release_weight=False) for h in (half, 1 - half)]
        sim.push("i_psum", block[:there])
        sim.step(20)
        assert _answers(wide, [keeping, other], []) == ["psum", "ok"]
        sim.push("i_psum", block[there:])
        assert _answers(wide, using, [product + psum, 2 * product]) == ["ok", "ok"]


def test_keep_and_a_block_that_comes_at_any_time(wide: EngineHost) -> None:
    """The block is there before the command, refuses it, or waits until what was kept is used: never a mixture."""
    sim, p = wide.sim, wide.p
    sim.reset()
    gen = np.random.default_rng(5)
    psum = gen.integers(-99, 99, (1, 64))
    keeping = Command(m=1, k=2, n=64, keep=True, release_activation=False, release_weight=False)
    using = replace(keeping, keep=False, accumulate=True)
    product = _operands(wide, keeping, gen)
    seen = set()
    for start in range(-6, 24):
        target, filled = sim.total("o_response") + 1, sim.total("i_psum") + len(psum_block(p, psum))
        pushes = [("i_command", wide.codecs.commands([keeping])),
                  ("i_psum", wide.codecs.block("i_psum", 0, psum_block(p, psum)))]
        for stream, beats in pushes if start >= 0 else pushes[::-1]:
            sim.push(stream, beats)
            sim.step(abs(start))
        sim.run({"o_response": target}, 500)
        # a complete block that was there is replaced, as a block of the model is
        status = wide.codecs.responses(sim.take("o_response")[0])[0].status
        replaced = status == "ok" and sim.total("i_psum") == filled
        if status == "ok":
            assert _answers(wide, [using], [2 * product]) == ["ok"]
        if not replaced:
            assert _answers(wide, [using], [product + psum]) == ["ok"]
        seen.add((status, replaced))
    assert seen == {("ok", True), ("psum", False), ("ok", False)}


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
