"""The stack's Verilog on real matrices and random shapes: results bit for bit, cycles as the timing model says."""

from functools import cache

import numpy as np
import pytest

from sim_models.golden.pim.stack.pim_stack import Work
from sim_models.golden.tile.engine.compute_engine import ComputeEngine
from sim_models.mapping.gemm import Program
from sim_models.mapping.pim import Attention, Gemv
from sim_models.numerics.rows import quantise
from sim_models.params.pim.bank.dram_bank import TIMINGS
from sim_models.params.pim.stack.pim_stack import PimStackParams
from sim_models.params.tile.engine.compute_engine import ComputeEngineParams
from sim_models.transformer.checkpoint import WEIGHTS, Checkpoint
from sim_models.transformer.pair import load_pair
from sim_models.transformer.smollm2 import load_smollm2
from tb.pim.stack.stack_meter import StackMeter
from tests.conftest import Extent
from tests.designs.run import BUILDS
from tests.needs import SMOLLM2

#: short rows and frequent refreshes; and a stack with one open row that is large enough for SmolLM2
SMALL = PimStackParams(pseudo_channels=3, lanes=4, accumulators=8, buffer_words=64, rows=64, columns=8,
                       sfu_length=256, **TIMINGS["fast"])
LARGE = PimStackParams(pseudo_channels=1, open_rows=1, **{**TIMINGS["fast"], "refi": 1500})


@cache
def meter(p: PimStackParams) -> StackMeter:
    """One simulation of each stack serves all tests."""
    return StackMeter(p, BUILDS, seed=7)


def test_cycles_and_results_of_random_shapes(extent: Extent) -> None:
    shapes = extent.count(120, 4000)
    for seed in extent.seeds(7, 1):
        stack = StackMeter(SMALL, BUILDS, seed=seed) if extent.seed else meter(SMALL)
        assert stack.random(shapes) == shapes
        assert stack.compared > shapes


def matrices(checkpoint: Checkpoint, names: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Float32 [K, N] of the first layer."""
    return {name: (checkpoint.classifier if name == "wcls" else checkpoint[name][0]).T for name in names}


def check(w: np.ndarray, name: str) -> None:
    """FP16 and int8 through the RTL; int8 is what the compute engine gives."""
    stack = meter(LARGE)
    half = w.astype(np.float16)
    x = stack.gen.standard_normal(len(w)).astype(np.float16)
    mapping = Gemv(LARGE, half)
    stack.write(mapping.image())
    _, [got] = stack.run(mapping.run(x), name)
    exact = x.astype(np.float64) @ half.astype(np.float64)
    np.testing.assert_allclose(got.view(np.float32), exact, rtol=1e-6, atol=1e-6)

    byte = np.ascontiguousarray(quantise(w.T)[0].T)
    x8 = stack.gen.integers(-127, 128, len(w), np.int8)
    mapping = Gemv(LARGE, byte)
    stack.write(mapping.image())
    _, [got] = stack.run(mapping.run(x8), f"{name}, int8")
    p = ComputeEngineParams()
    want, _ = ComputeEngine(p).run(Program(p, x8[None].astype(np.int64), byte.astype(np.int64)))
    np.testing.assert_array_equal(got.view(np.int32), want[0])


@pytest.mark.parametrize("which", [pytest.param("target", marks=pytest.mark.long), "draft"])
def test_matrices_of_the_shipped_pair(which: str) -> None:
    for name, w in matrices(getattr(load_pair(), which), (*WEIGHTS, "wcls")).items():
        check(w, f"{which} {name}")


@SMOLLM2
def test_matrices_of_smollm2() -> None:
    found = matrices(load_smollm2(), ("w1", "wk"))
    assert [w.shape for w in found.values()] == [(576, 1536), (576, 192)]
    for name, w in found.items():
        check(w, name)


@pytest.mark.parametrize("length", [1, 2, 15, 16, 17, 255, 1024])
def test_attention(length: int) -> None:
    stack = meter(LARGE)
    mapping = Attention(LARGE, 64, length)
    q, k, v = (stack.gen.standard_normal(s).astype(np.float16) for s in ((64,), (length, 64), (length, 64)))
    stack.write(mapping.write(k, v))
    _, [got] = stack.run(mapping.run(q, length), f"attention over {length}")
    scores = k.astype(np.float64) @ q.astype(np.float64) / 8
    power = np.exp(scores - scores.max())
    np.testing.assert_allclose(got.view(np.float32), power / power.sum() @ v.astype(np.float64), rtol=4e-3, atol=4e-3)


def test_a_head_that_grows_position_by_position() -> None:
    stack = meter(LARGE)
    mapping, before = Attention(LARGE, 64, 40), stack.compared
    k, v = (stack.gen.standard_normal((40, 64)).astype(np.float16) for _ in range(2))
    for length in (30, 31, 32, 33):
        stack.write(mapping.write(k[:length], v[:length], 0 if length == 30 else length - 1))
        q = stack.gen.standard_normal(64).astype(np.float16)
        stack.run(mapping.run(q, length), f"position {length}")
    assert stack.compared == before + 4 * 64


def _head(stack: StackMeter) -> tuple[list[Work], list[np.ndarray]]:
    """Attention over positions that are in the banks, and what it gives."""
    head = Attention(SMALL, 19, 37)
    q, k, v = (stack.gen.standard_normal(shape).astype(np.float16) for shape in ((19,), (37, 19), (37, 19)))
    stack.write(head.write(k, v))
    work = head.run(q, 37)
    return work, stack.model.run(work).results


def test_reset_at_any_cycle() -> None:
    """What was under way is forgotten in every unit: afterwards the same work takes the same cycles."""
    stack = meter(SMALL)
    stack.host.reset()
    work, _ = _head(stack)
    course, _ = stack.run(work, "uncut")
    before = stack.compared
    for cut in range(1, course.cycles + 1):
        stack.host.reset()
        for stream, beats in stack.host.codecs.queues(work).items():
            stack.host.sim.push(stream, beats)
        stack.host.sim.step(cut)
        stack.run(work, f"after a reset in cycle {cut}")
    assert stack.compared - before == course.cycles * 19


def test_results_do_not_depend_on_the_pace() -> None:
    """Every stream pauses at random, each in its own way."""
    stack, gen = meter(SMALL), np.random.default_rng(5)
    stack.host.reset()
    work, [want] = _head(stack)
    sim = stack.host.sim
    for number in range(20):
        stack.host.reset()
        for stream in sim.streams:
            sim.rate(stream, float(gen.choice([1.0, 0.7, 0.3, 0.05])))
        [got] = stack.host.run(work, results=-(-len(want) // 4)).outcome.results
        np.testing.assert_array_equal(got, want, err_msg=f"pace {number}")
    for stream in sim.streams:
        sim.rate(stream, 1.0)
