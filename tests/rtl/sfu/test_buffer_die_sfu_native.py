"""The special function unit's hardware against its model: hundreds of commands, every FP16 number, every cycle."""

import numpy as np
import pytest

from rtl.sfu.buffer_die_sfu import BufferDieSfu
from rtl.sfu.layouts import sfu_beat, sfu_response
from sim_models.golden.sfu.buffer_die_sfu import sfu_cycles
from sim_models.numerics.float32 import bits
from sim_models.params.sfu.buffer_die_sfu import BufferDieSfuParams
from sim_models.spec.sfu import SfuOp
from tb.common.native import NativeLibrary, NativeSim
from tb.common.packing import codec
from tb.common.scoreboard import compare
from tb.sfu.sfu_traffic import FAULTS, Job, check, job, pack, random_job
from tests.conftest import Extent
from tests.designs.run import BUILDS

P = BufferDieSfuParams()


@pytest.fixture(scope="module")
def library() -> NativeLibrary:
    return NativeSim(BufferDieSfu(P), BUILDS).library


def push(sim: NativeSim, jobs: list[Job]) -> None:
    packed = pack(P, jobs)
    for name in ("command", "row", "operands"):
        sim.push(f"i_{name}", getattr(packed, name))


def run(sim: NativeSim, jobs: list[Job], what: str) -> None:
    """Send commands one behind the other and compare all that comes."""
    answers = [j.answer(P) for j in jobs]
    beats = sum(len(a.data) for a in answers)
    until = {"o_row": sim.total("o_row") + beats, "o_response": sim.total("o_response") + len(jobs)}
    push(sim, jobs)
    sim.run(until, 40 * beats + 1000 * len(jobs))
    check(P, answers, codec(sfu_beat(P)).unpack(sim.take("o_row", beats)[0]),
          codec(sfu_response(P)).unpack(sim.take("o_response", len(jobs))[0]), what)


@pytest.mark.parametrize("pace", [1.0, 0.4])
def test_hundreds_of_commands(library: NativeLibrary, pace: float, extent: Extent) -> None:
    """All operations and lengths, one in five with a fault."""
    gen = extent.generator(3, int(10 * pace))
    sim = NativeSim(library)
    for stream in sim.streams:
        sim.rate(stream, pace)
    faults = [*FAULTS[:1], *FAULTS[2:]]
    spoilt = [str(gen.choice(faults)) if gen.random() < 0.2 else None for _ in range(extent.count(250, 10_000))]
    jobs = [random_job(P, gen, int(gen.integers(0, 120)), fault=fault) for fault in spoilt]
    run(sim, jobs, f"pace {pace}")


@pytest.mark.parametrize("op", [SfuOp.SILU, SfuOp.GELU, SfuOp.RELU, SfuOp.COPY])
def test_every_fp16_number(library: NativeLibrary, op: SfuOp) -> None:
    """As the operand, results in both formats."""
    codes = bits(np.arange(1 << 16).astype(np.uint16).view(np.float16).astype(np.float32))
    rows = codes.reshape(-1, P.max_length)
    run(NativeSim(library), [job(P, op, row, fp16=bool(k % 2)) for row in rows for k in range(2)], op.name)


@pytest.mark.parametrize("length", [1, 2, 15, 16, 17, 255, 1024])
def test_rows_of_attention(library: NativeLibrary, length: int) -> None:
    """Softmax with 1 / sqrt(d), as FP16; a causal mask leaves 1 to all positions."""
    gen = np.random.default_rng(length)
    jobs = []
    for width in (32, 64, 128):
        scores = gen.normal(0, width**0.5 * 3, length).astype(np.float32)
        for seen in {1, length // 2 + 1, length}:
            masked = np.where(np.arange(length) < seen, scores, np.float32(-np.inf))
            jobs.append(job(P, SfuOp.SOFTMAX, bits(masked), scalar=width**-0.5, fp16=True))
    run(NativeSim(library), jobs, f"length {length}")


def test_cycles_equal_the_closed_form(library: NativeLibrary) -> None:
    """Random operations and lengths: the cycles of a command are those of ``sfu_cycles``."""
    gen = np.random.default_rng(4)
    sim = NativeSim(library)
    lengths = [0, 1, P.lanes, P.lanes + 1, P.max_length, *gen.integers(0, 300, 240).tolist()]
    jobs = [random_job(P, gen, length, op=k % len(SfuOp)) for k, length in enumerate(lengths)]
    beats = np.cumsum([0, *(len(j.row.data) for j in jobs)])
    push(sim, jobs)
    sim.run({"o_row": int(beats[-1]), "o_response": len(jobs)}, 300_000)
    began, results, responses = sim.accepted("i_command"), sim.take("o_row")[1], sim.take("o_response")[1]
    want = [sfu_cycles(P, SfuOp(j.op), n) for j, n in zip(jobs, lengths, strict=True)]
    compare(results[beats[:-1]] - began, [w.first for w in want], "cycles to the first beat [command]")
    compare(results[beats[1:] - 1] - began, [w.last for w in want], "cycles to the last beat [command]")
    compare(responses - began, [w.last - 1 for w in want], "cycles to the response [command]")
    compare(np.diff(began), [w.period for w in want[:-1]], "cycles to the next command [command]")


def test_reset_at_any_cycle(library: NativeLibrary, extent: Extent) -> None:
    """Every operation cut off at many cycles; the next command is as if nothing had been."""
    gen = extent.generator(5)
    sim = NativeSim(library)
    for op in SfuOp:
        cut_off = random_job(P, gen, 11, op=op)
        long = sfu_cycles(P, op, 11).period
        for after in range(1, long + 2, max(1, long // extent.count(30, 1 << 20))):
            push(sim, [cut_off] * 2)
            sim.step(after)
            sim.reset(1)
            run(sim, [random_job(P, gen, int(gen.integers(0, 20)))], f"{op.name} cut off after {after} cycles")
            sim.reset(1)
