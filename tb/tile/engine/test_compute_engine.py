"""Bench of the compute engine: commands, blocks, halves, statuses, cycles and every kind of waiting."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sim_models.golden.tile.engine.compute_engine import ComputeEngine, Response, cycles, gap, multiply, steps
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
from tb.common import params
from tb.common.bench import bench_test
from tb.common.clock import cycles as wait
from tb.common.clock import engine, reset, rng, start
from tb.common.scenarios import closed_in_reset, every_scenario, play
from tb.common.scoreboard import compare
from tb.common.streams import Sink, Source, bursts, late, monitor, random
from tb.common.timings import same_at_every_timing
from tb.tile.engine.engine_host import EngineCodecs
from tb.tile.engine.engine_sessions import LARGEST, STREAMS, Session, SessionMaker, check_results

VARIANTS: dict[str, dict[str, object]] = {
    "default": {},
    "systolic_only": {"modes": "systolic", "activation_depth": 64, "weight_depth": 64, "psum_depth": 64},
    "vector_only": {"modes": "vector", "activation_depth": 64, "weight_depth": 64, "psum_depth": 64},
    "4x2": {"rows": 4, "cols": 2, "columns_per_hop": 1, "activation_depth": 16, "weight_depth": 16, "psum_depth": 16},
    "2x16": {"rows": 2, "cols": 16, "columns_per_hop": 1, "operand_width": 4, "acc_width": 12, "psum_width": 16,
             "activation_depth": 8, "weight_depth": 16, "psum_depth": 4},
    "16x1": {"rows": 16, "cols": 1, "activation_depth": 4, "weight_depth": 8, "psum_depth": 16},
}


class Host:
    """All drivers of the engine."""

    def __init__(self, dut: Any, gen: np.random.Generator) -> None:
        self.p: ComputeEngineParams = params()
        self.gen = gen
        self.codecs = EngineCodecs(self.p)
        self.fills = {s: Source(dut, s, self.codecs.fills[s], gen) for s in STREAMS.values()}
        self.commands = Source(dut, "i_command", self.codecs.command, gen)
        self.responses = Sink(dut, "o_response", self.codecs.response, gen)
        self.results = Sink(dut, "o_result", self.codecs.result, gen)
        self.sources, self.sinks = [*self.fills.values(), self.commands], [self.responses, self.results]

    def vary(self) -> None:
        """Another pace for every stream."""
        for driver in (*self.sources, *self.sinks):
            driver.rate([random(1.0), random(1.0), random(0.6), random(0.15), bursts(5, 9)][self.gen.integers(5)])

    def operands(self, m: int, k: int, n: int, values: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Random operands, or all of one value."""
        low = -(1 << (self.p.operand_width - 1))
        if values is not None:
            return np.full((m, k), values), np.full((k, n), values)
        return self.gen.integers(low, -low, (m, k)), self.gen.integers(low, -low, (k, n))

    def fill(self, memory: str, words: np.ndarray, half: int | np.ndarray | None = None) -> None:
        """Queue a block."""
        self.fills[STREAMS[memory]].send_packed(self.codecs.block(STREAMS[memory], words, half))

    def fill_operands(self, c: Command, x: np.ndarray, w: np.ndarray) -> None:
        """Queue the operands of a command, with poison in the padding."""
        low = -(1 << (self.p.operand_width - 1))
        self.fill("activation", activation_block(self.p, x, low), c.activation_half)
        self.fill("weight", weight_block(self.p, w, low), c.weight_half)

    def send(self, *commands: Command) -> None:
        """Queue commands."""
        self.commands.send_packed(self.codecs.commands(commands))

    async def answers(self, count: int) -> list[Response]:
        """The next responses."""
        return self.codecs.responses((await self.responses.take_packed(count))[0])

    async def outputs(self, wanted: Sequence[np.ndarray], name: str) -> None:
        """Take output blocks and compare them, int (M, N) each."""
        beats = sum(len(out) * -(-out.shape[1] // self.p.cols) for out in wanted)
        check_results(self.codecs, (await self.results.take_packed(beats))[0], list(wanted), name)

    async def run(self, programs: Sequence[Program], name: str) -> None:
        """Queue programs, and compare all that comes with the golden model."""
        for program in programs:
            for stream, beats in self.codecs.queues(program).items():
                {**self.fills, "i_command": self.commands}[stream].send_packed(beats)
        for program in programs:
            want, responses = ComputeEngine(self.p).run(program)
            compare_responses(await self.answers(len(responses)), responses, name)
            await self.outputs([want[o.rows, o.cols] for o in program.outputs], name)

    def start(self, session: Session) -> None:
        """Queue a whole session."""
        for stream, blocks in session.beats.items():
            for block in blocks:
                self.fills[stream].send_packed(block)
        self.send(*session.commands)

    async def session(self, session: Session, name: str) -> None:
        """Queue a whole session, and compare all that comes."""
        self.start(session)
        compare_responses(await self.answers(len(session.responses)), session.responses, name)
        if session.outputs:
            await self.outputs(session.outputs, name)


def compare_responses(got: list[Response], want: list[Response], name: str) -> None:
    """Statuses and cycles, in order."""
    for i, (g, w) in enumerate(zip(got, want, strict=True)):
        assert g.status == w.status, f"{name}: response {i} is {g.status}, {w.status} was wanted"
    compare([r.cycles for r in got], [r.cycles for r in want], f"{name}: cycles of responses")


def fitting(p: ComputeEngineParams, m: int, k: int, n: int) -> tuple[int, int, int]:
    """The sizes, cut down to one command."""
    m, k = min(m, p.activation_depth, p.psum_depth), min(k, p.k_max)
    k = min(k, p.activation_depth // m * p.rows)
    return m, k, min(n, min(p.weight_depth // -(-k // p.rows), p.psum_depth // m) * p.cols)


@every_scenario
@bench_test(timeout_us=4000)
async def scenarios(dut: Any, scenario: Any) -> None:
    """Programs with M up to four passes, split where the memories demand it."""
    await start(dut)
    gen = rng()
    host = Host(dut, gen)

    async def job(size: int) -> None:
        k, n = int(gen.integers(1, 3 * host.p.rows)), int(gen.integers(1, 3 * host.p.cols))
        program = Program(host.p, *host.operands(size, k, n), mode="auto", fill=-1)
        await host.run([program], f"M = {size}, K = {k}, N = {n}")

    await play(dut, scenario, lanes=host.p.rows, sources=host.sources, sinks=host.sinks, gen=gen, job=job)


@bench_test(timeout_us=6000)
async def random_sessions(dut: Any) -> None:
    """Commands of all kinds, right and wrong, on halves at random; no reset in between."""
    await start(dut)
    gen = rng()
    host = Host(dut, gen)
    maker = SessionMaker(host.p, gen, most_steps=150)
    for number in range(8):
        host.vary()
        await host.session(maker.make(25), f"session {number}")


@bench_test(timeout_us=20000)
async def same_answers_at_any_timing(dut: Any) -> None:
    """The same session with each stream held back, and ahead of the others, is answered alike to the last bit.

    Faults excluded: a streamed block of partial sums that an earlier command takes, or that kept results replace; a
    refused command that releases its blocks if they have come by then.
    """
    await start(dut)
    gen = rng()
    host = Host(dut, gen)
    maker = SessionMaker(host.p, gen, most_steps=100)
    for number in range(2):
        session = maker.make(20)

        async def job(session: Session = session, name: str = f"session {number}") -> np.ndarray:
            host.start(session)
            payloads, _ = await host.responses.take_packed(len(session.responses))
            compare_responses(host.codecs.responses(payloads), session.responses, name)
            if session.outputs:
                await host.outputs(session.outputs, name)
            return payloads

        await same_at_every_timing(sources=host.sources, sinks=host.sinks, job=job)


@bench_test(timeout_us=6000)
async def a_streamed_block_belongs_to_its_command(dut: Any) -> None:
    """Kept, taken up, then a streamed block for the same half: right whenever its beats come.

    Once an early block was taken by the second command, or replaced by what the first one kept, without a word.
    """
    await start(dut)
    gen, p = rng(), params()
    host = Host(dut, gen)
    m, k, n = fitting(p, p.rows, 2 * p.rows, p.cols)
    x, w = host.operands(m, k, n)
    commands = [Command(m=m, k=k, n=n, accumulate=source, keep=source == NONE, psum_half=1, release_activation=False,
                        release_weight=False) for source in (NONE, KEPT, STREAMED)]
    host.fill_operands(commands[0], x, w)
    await wait(4 * p.rows)
    length = 0
    for turn in range(12):
        psum = gen.integers(-99, 99, (m, n))
        block = host.codecs.block("i_psum", psum_block(p, psum))
        part = int(gen.integers(len(block) + 1)) if turn else len(block)
        began = engine().cycle
        if turn % 3 == 0:
            host.fills["i_psum"].send_packed(block[:part])
            await wait(3 * m)
        host.send(*commands)
        if turn % 3:
            await wait(int(gen.integers(length + 1)))
            host.fills["i_psum"].send_packed(block[:part])
        await wait(int(gen.integers(40)))
        host.fills["i_psum"].send_packed(block[part:])
        compare_responses(await host.answers(3), [Response("ok", cycles(p, m, k, n))] * 3, f"turn {turn}")
        await host.outputs([2 * x @ w, x @ w + psum], f"turn {turn}")
        length = length or engine().cycle - began


@bench_test(timeout_us=4000)
async def reset_at_any_time(dut: Any) -> None:
    """A session cut off by a reset leaves nothing behind that the next one could see."""
    await start(dut)
    gen = rng()
    host = Host(dut, gen)
    maker = SessionMaker(host.p, gen, most_steps=100)
    for number in range(6):
        host.vary()
        host.start(maker.make(12))
        await wait(int(gen.integers(1, 500)))
        await reset(dut, int(gen.integers(1, 4)))
        await host.session(maker.make(8), f"session after reset {number}")


@bench_test(timeout_us=20)
async def takes_nothing_in_reset(dut: Any) -> None:
    """Known fault: ready is high during reset."""
    await start(dut)
    await wait(1)
    await closed_in_reset(dut, closed=["i_psum"])
    # partial sums are taken for a command alone
    host = Host(dut, rng())
    host.send(Command(m=1, k=1, n=1, accumulate=STREAMED))
    await wait(8)
    for held, want in ((0, 1), (1, 0), (0, 0)):
        dut.rst.value = held
        await wait(1)
        compare(int(dut.i_psum__ready.value), want, f"ready of partial sums, reset {held}")


@bench_test(timeout_us=4000)
async def every_m(dut: Any) -> None:
    """M from 1 to 17 in every mode that is built, values and cycles; AUTO splits as documented."""
    await start(dut)
    gen, p = rng(), params()
    host = Host(dut, gen)
    modes = ["auto"] + ["systolic"] * p.systolic + ["vector"] * p.vector
    for mode in modes:
        for m in range(1, 18):
            m1, k, n = fitting(p, m, 2 * p.rows - 1, 2 * p.cols - (p.cols > 1))
            x, w = host.operands(m1, k, n)
            command = Command(m=m1, k=k, n=n, mode=MODES.index(mode))
            host.fill_operands(command, x, w)
            host.send(command)
            compare_responses(await host.answers(1), [Response("ok", cycles(p, m1, k, n, mode))], f"{mode}, M = {m1}")
            await host.outputs([x @ w], f"{mode}, M = {m1}")
            compare(multiply(p, x, w, mode), x @ w, "golden model")


@bench_test(timeout_us=2000)
async def statuses(dut: Any) -> None:
    """Every reason to refuse, each followed by a good command on the same blocks."""
    await start(dut)
    gen, p = rng(), params()
    host = Host(dut, gen)
    m, k, n = fitting(p, 2, p.rows + 1, p.cols + 1)
    x, w = host.operands(m, k, n)
    good = Command(m=m, k=k, n=n, release_activation=False, release_weight=False)
    host.fill_operands(good, x, w)
    too_large = [
        *[replace(good, **{name: LARGEST}) for name in "mkn"],
        replace(good, m=1, k=p.k_max + 1, n=1),
        replace(good, m=min(p.activation_depth, p.psum_depth) + 1, k=1, n=1),
        replace(good, m=1, k=1, n=min(p.weight_depth, p.psum_depth) * p.cols + 1),
        # each factor fits, their products do not
        replace(good, m=p.psum_depth // 2 + 1, k=1, n=p.cols + 1),
        replace(good, m=1, k=p.rows + 1, n=(p.weight_depth // 2) * p.cols + 1),
    ]
    wrong = [
        *[("shape", replace(good, **{name: 0})) for name in "mkn"],
        # deep memories hold more than a command can name
        *[("shape", c) for c in too_large
          if max(c.m, c.k, c.n) <= LARGEST and fitting(p, c.m, c.k, c.n) != (c.m, c.k, c.n)],
        ("mode", replace(good, mode=3)),
        ("mode", replace(good, accumulate=len(SOURCES))),
        # nothing was kept
        ("psum", replace(good, accumulate=KEPT)),
        ("activation", replace(good, m=m - 1)),
        ("activation", replace(good, k=1)),
        ("weight", replace(good, n=n - p.cols)),
    ]
    if not p.vector:
        wrong.append(("mode", replace(good, mode=MODES.index("vector"))))
    if not p.systolic:
        wrong.append(("mode", replace(good, mode=MODES.index("systolic"))))
    for status, command in wrong:
        host.send(command, good)
        answers = await host.answers(2)
        compare_responses(answers, [Response(status, 0), Response("ok", cycles(p, m, k, n))], f"{command}")
        await host.outputs([x @ w], f"after {status}")
    # partial sums of another size, and then of the right one
    psum = np.arange(m * n).reshape(m, n)
    host.fill("psum", psum_block(p, psum[:, :1]) if n > p.cols else psum_block(p, psum[:1]))
    host.fill("psum", psum_block(p, psum))
    accumulating = replace(good, accumulate=STREAMED, psum_half=1)
    host.send(accumulating, accumulating)
    compare_responses(await host.answers(2), [Response("psum", 0), Response("ok", cycles(p, m, k, n))], "psum")
    await host.outputs([x @ w + psum], "after psum")


@bench_test(timeout_us=4000)
async def malformed_blocks(dut: Any) -> None:
    """Too long, too short, half changed in the middle: refused, dropped, and the next block is fine."""
    await start(dut)
    gen, p = rng(), params()
    host = Host(dut, gen)
    m, k, n = fitting(p, 2, 2 * p.rows, 2 * p.cols)
    depths = {"activation": p.activation_depth, "weight": p.weight_depth, "psum": p.psum_depth}
    for memory, depth in depths.items():
        for half in range(2):
            x, w = host.operands(m, k, n)
            psum = gen.integers(-99, 99, (m, n))
            good = {"activation": activation_block(p, x), "weight": weight_block(p, w), "psum": psum_block(p, psum)}
            words = good[memory]
            changed = np.full(len(words), half)
            changed[-1] ^= 1
            bad = [(half, np.resize(words, (depth + 1, words.shape[1]))),
                   (half, np.resize(words, (2 * depth + 1, words.shape[1]))), (half, words[:-1])]
            if memory != "psum" and len(words) > 1:
                bad.append((changed, words))
            for at, block in bad:
                if not len(block):
                    continue
                for name in depths:
                    if name != memory:
                        host.fill(name, good[name], None if name == "psum" else half)
                host.fill(memory, block, None if memory == "psum" else at)
                host.fill(memory, words, None if memory == "psum" else half)
                halves: dict[str, Any] = {"activation_half": half, "weight_half": half, "psum_half": half}
                # what is malformed is let go, the other operands stay for the second attempt
                first = Command(m=m, k=k, n=n, accumulate=STREAMED, **halves,
                                release_activation=memory == "activation", release_weight=memory == "weight")
                second = Command(m=m, k=k, n=n, accumulate=STREAMED if memory == "psum" else NONE, **halves)
                host.send(first, second)
                want = [Response(memory, 0), Response("ok", cycles(p, m, k, n))]
                compare_responses(await host.answers(2), want, f"{memory} block of {len(block)} words")
                await host.outputs([x @ w + (psum if memory == "psum" else 0)], f"after a malformed {memory} block")


@bench_test(timeout_us=4000)
async def accumulate_chains(dut: Any) -> None:
    """A K in random pieces, kept from command to command, with and without partial sums to begin with."""
    await start(dut)
    gen, p = rng(), params()
    host = Host(dut, gen)
    for turn in range(8):
        host.vary()
        m, k, n = fitting(p, int(gen.integers(1, 2 * p.rows)), p.rows, int(gen.integers(1, 2 * p.cols + 1)))
        first = turn % 2 == 1
        low = -(1 << (p.psum_width - 1))
        psum = gen.integers(low, -low, (m, n)) if first else np.zeros((m, n), np.int64)
        model, commands, half = ComputeEngine(p), [], int(gen.integers(2))
        pieces = [int(gen.integers(1, k + 1)) for _ in range(int(gen.integers(2, 6)))]
        if first:
            host.fill("psum", psum_block(p, psum))
            model.fill_psum(psum_block(p, psum))
        responses = []
        for i, piece in enumerate(pieces):
            x, w = host.operands(m, piece, n)
            source = KEPT if i else STREAMED if first else NONE
            command = Command(m=m, k=piece, n=n, accumulate=source, keep=i < len(pieces) - 1, psum_half=half,
                              activation_half=i % 2, weight_half=i % 2)
            host.fill_operands(command, x, w)
            model.fill("activation", i % 2, activation_block(p, x))
            model.fill("weight", i % 2, weight_block(p, w))
            responses.append(model.command(command))
            commands.append(command)
        host.send(*commands)
        compare_responses(await host.answers(len(commands)), responses, f"chain {turn}")
        await host.outputs(model.outputs, f"chain {turn}")


@bench_test(timeout_us=2000)
async def kept_results_replace_a_block(dut: Any) -> None:
    """A half whose block is still being read, or still to be written, is taken over without loss.

    Both orders once failed: a release that came late emptied the half again (the next command waited for ever),
    and the size of results to come was compared with that of the results before.
    """
    await start(dut)
    gen, p = rng(), params()
    host = Host(dut, gen)
    m, k, n = fitting(p, 1, 2 * p.rows, min(p.cols * p.psum_depth, LARGEST))
    small = fitting(p, 1, p.rows, p.cols)
    two = fitting(p, 2, 2 * p.rows, p.cols)
    psum = gen.integers(-99, 99, (m, n))
    shapes = [(m, k, n), small, small, small, two, two]
    halves = [i % 2 for i in range(len(shapes))]
    operands = [host.operands(*shape) for shape in shapes]
    flags = [{"accumulate": STREAMED}, {"keep": True}, {"accumulate": KEPT}, {"keep": True}, {"keep": True},
             {"accumulate": KEPT}]
    host.fill("psum", psum_block(p, psum))
    commands = [Command(m=s[0], k=s[1], n=s[2], activation_half=h, weight_half=h, **f)
                for s, h, f in zip(shapes, halves, flags, strict=True)]
    for command, (x, w) in zip(commands, operands, strict=True):
        host.fill_operands(command, x, w)
    await wait(2 * p.weight_depth)
    host.send(*commands)
    products = [x @ w for x, w in operands]
    want = [Response("ok", cycles(p, c.m, c.k, c.n)) for c in commands]
    compare_responses(await host.answers(len(commands)), want, "kept results")
    await host.outputs([products[0] + psum, products[1] + products[2], products[4] + products[5]], "kept results")


@bench_test(timeout_us=4000)
async def a_streamed_block_waits_for_kept_results(dut: Any) -> None:
    """Partial sums for one half come in while results of a command are written to the other: both are kept whole.

    The memory has one write port. The last column group has the end of the results last.
    """
    await start(dut)
    gen, p = rng(), params()
    host = Host(dut, gen)
    for m, words, tiles in [(m, words, tiles) for m in range(1, 9) for words in (1, 2, 3) for tiles in (1, 4)]:
        m1, k1, n = fitting(p, m, words * p.rows, tiles * p.cols)
        m2, k2, n2 = fitting(p, 16, 1, p.cols)
        x1, w1 = host.operands(m1, k1, n)
        x2, w2 = host.operands(m2, k2, n2)
        psum = gen.integers(-99, 99, (m2, n2))
        keeping = Command(m=m1, k=k1, n=n, keep=True)
        adding = Command(m=m2, k=k2, n=n2, accumulate=STREAMED, activation_half=1, weight_half=1, psum_half=1)
        taking = replace(keeping, keep=False, accumulate=KEPT)
        for command, x, w in ((keeping, x1, w1), (adding, x2, w2), (taking, x1, w1)):
            host.fill_operands(command, x, w)
        host.send(keeping, adding, taking)
        # at once, so that it waits, or at any cycle of the first command
        await wait(int(gen.integers(cycles(p, m1, k1, n) + 2 * p.rows)) * int(gen.integers(3) != 0))
        host.fill("psum", psum_block(p, psum))
        name = f"M = {m1}, K = {k1}"
        want = [Response("ok", cycles(p, *size)) for size in ((m1, k1, n), (m2, k2, n2), (m1, k1, n))]
        compare_responses(await host.answers(3), want, name)
        await host.outputs([x2 @ w2 + psum, 2 * (x1 @ w1)], name)


@bench_test(timeout_us=2000)
async def fills_run_ahead(dut: Any) -> None:
    """While a command works on one half, memories take blocks into the other, and a full one waits.

    A block of partial sums waits for its command, and comes in while the command before is at work.
    """
    await start(dut)
    gen, p = rng(), params()
    host = Host(dut, gen)
    m, k, n = fitting(p, p.rows, p.k_max, 2 * p.cols)
    commands = [Command(m=m, k=k, n=n, accumulate=STREAMED, activation_half=i % 2, weight_half=i % 2,
                        psum_half=i % 2) for i in range(4)]
    wanted = []
    for command in commands:
        x, w = host.operands(m, k, n)
        psum = gen.integers(-100, 100, (m, n))
        host.fill_operands(command, x, w)
        host.fill("psum", psum_block(p, psum))
        wanted.append(x @ w + psum)
    words, tiles = -(-k // p.rows), -(-n // p.cols)
    blocks = {"activation": 2 * m * words, "weight": 2 * words * tiles, "psum": 0}
    # operands long before any command: two blocks of each fit, no beat more
    await wait(max(blocks.values()) + 40)
    for memory, count in blocks.items():
        compare(monitor(STREAMS[memory]).rules.transfers, count, f"{memory} beats before any command")
    host.send(*commands)
    payloads, stamps = await host.responses.take_packed(4)
    compare_responses(host.codecs.responses(payloads), [Response("ok", cycles(p, m, k, n))] * 4, "prefetch")
    await host.outputs(wanted, "prefetch")
    # of the four commands two have all their operands at once: partial sums cost them no cycle
    if words > 2:
        want = steps(p, m, k, n) + gap(p, (m, "auto"), (m, "auto"))
        compare(int(stamps[1] - stamps[0]), want, "cycles between two commands with partial sums")


@bench_test(timeout_us=2000)
async def commands_before_operands(dut: Any) -> None:
    """Commands wait for blocks that come late, one stream after the other."""
    await start(dut)
    gen, p = rng(), params()
    host = Host(dut, gen)
    m, k, n = fitting(p, p.rows + 1, p.rows, p.cols + 1)
    for last in STREAMS.values():
        for source in host.fills.values():
            source.rate(random(0.5))
        host.fills[last].rate(late(300))
        command = Command(m=m, k=k, n=n, accumulate=STREAMED)
        x, w = host.operands(m, k, n)
        host.send(command)
        host.fill_operands(command, x, w)
        host.fill("psum", psum_block(p, np.ones((m, n), np.int64)))
        await wait(250)
        compare(host.responses.available, 0, f"responses before {last}")
        compare_responses(await host.answers(1), [Response("ok", cycles(p, m, k, n))], f"{last} last")
        await host.outputs([x @ w + 1], f"{last} last")


@bench_test(timeout_us=4000)
async def tiny_commands(dut: Any) -> None:
    """Many 1 x 1 x 1 commands in flight; nobody takes responses or results for a long time, then all are there."""
    await start(dut)
    gen, p = rng(), params()
    host = Host(dut, gen)
    for sink in [None, host.responses, host.results]:
        if sink is not None:
            sink.rate(late(600))
        commands = [Command(m=1, k=1, n=1, activation_half=i % 2, weight_half=i % 2) for i in range(24)]
        wanted = []
        for command in commands:
            x, w = host.operands(1, 1, 1)
            host.fill_operands(command, x, w)
            wanted.append(x @ w)
        host.send(*commands)
        if sink is not None:
            await wait(500)
            compare(host.commands.waiting > 0, True, "commands still waiting behind a sink that is not ready")
        compare_responses(await host.answers(24), [Response("ok", cycles(p, 1, 1, 1))] * 24, "1 x 1 x 1")
        await host.outputs(wanted, "1 x 1 x 1")


@bench_test(timeout_us=6000)
async def back_to_back(dut: Any) -> None:
    """Commands that wait for nothing follow each other with exactly the gap that the model states."""
    await start(dut)
    gen, p = rng(), params()
    host = Host(dut, gen)
    m, k, n = fitting(p, 2 * p.rows + 1, 3 * p.rows, p.cols * max(1, min(p.psum_depth, 512) // (2 * p.rows + 1)))
    x, w = host.operands(m, k, n)
    modes = [name for name, built in (("auto", True), ("systolic", p.systolic), ("vector", p.vector)) if built]
    for before in modes:
        for after in modes:
            issued = [(m, before), (m, after)]
            commands = [Command(m=m, k=k, n=n, mode=MODES.index(mode)) for _, mode in issued]
            commands[1] = Command(m=m, k=k, n=n, mode=MODES.index(after), activation_half=1, weight_half=1)
            for command in commands:
                host.fill_operands(command, x, w)
            await wait(p.activation_depth + p.weight_depth + 40)
            host.send(*commands)
            payloads, stamps = await host.responses.take_packed(2)
            each = [cycles(p, m, k, n, mode) for _, mode in issued]
            name = f"{before} then {after}"
            compare_responses(host.codecs.responses(payloads), [Response("ok", c) for c in each], name)
            await host.outputs([x @ w, x @ w], name)
            # a response comes with the last result, so two of them tell when the second command began
            busy = steps(p, m, k, n, before)
            if busy > 40:                               # longer than the decoder takes for the second one
                want = busy + gap(p, *issued) + each[1] - each[0]
                compare(int(stamps[1] - stamps[0]), want, f"{name}: cycles between responses")


@bench_test(timeout_us=8000)
async def longest_sums(dut: Any) -> None:
    """The largest K that a command may have, with the worst operands, in each mode; and partial sums that wrap.

    Fault excluded: accumulators that wrap at the longest K with extreme operands.
    """
    await start(dut)
    gen, p = rng(), params()
    host = Host(dut, gen)
    worst, top = -(1 << (p.operand_width - 1)), (1 << (p.psum_width - 1)) - 1
    k = p.k_max
    m, k, n = fitting(p, max(1, p.activation_depth // -(-k // p.rows)), k, p.cols)
    compare([k, k * worst * worst <= (1 << (p.acc_width - 1)) - 1], [p.k_max, True], "the largest K, which fits")
    for mode in ["auto"] + ["systolic"] * p.systolic + ["vector"] * p.vector:
        x, w = host.operands(m, k, n, worst)
        command = Command(m=m, k=k, n=n, mode=MODES.index(mode), accumulate=STREAMED)
        for psum in (0, top, -top - 1, top - k * worst * worst):
            host.fill_operands(command, x, w)
            host.fill("psum", psum_block(p, np.full((m, n), psum)))
            host.send(command)
            compare_responses(await host.answers(1), [Response("ok", cycles(p, m, k, n, mode))], f"{mode}, K = {k}")
            exact = psum + k * worst * worst
            wrapped = (exact + top + 1) % (2 * top + 2) - top - 1
            await host.outputs([np.full((m, n), wrapped)], f"{mode}, K = {k}, partial sums {psum}")
