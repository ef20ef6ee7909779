"""Golden models of the array, the PE, the memory and the queue, against hand-made cases and plain numpy."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim_models.golden.memory.fifo import Fifo
from sim_models.golden.memory.ram import Ram
from sim_models.golden.tile.engine.pe import PE
from sim_models.golden.tile.engine.pe_array import Step, latency, run, wrap
from sim_models.params.memory.fifo import FifoParams
from sim_models.params.memory.ram import RamParams
from sim_models.params.tile.engine.pe import PEParams
from sim_models.params.tile.engine.pe_array import PEArrayParams

P = PEArrayParams(rows=4, cols=3)


def tile(a: np.ndarray, w: np.ndarray) -> list[Step | None]:
    """Systolic steps of int (rows, K) x (K, cols)."""
    return [Step(True, k == 0, k == len(w) - 1, a[:, k], w[k]) for k in range(len(w))]


def dot(a: np.ndarray, w: np.ndarray, rows: int) -> list[Step | None]:
    """Vector-lane steps of int (K,) x (K, cols), K a multiple of ``rows``."""
    count = len(a) // rows
    return [Step(False, k == 0, k == count - 1, a[k * rows:(k + 1) * rows], w[k * rows:(k + 1) * rows])
            for k in range(count)]


@settings(max_examples=100, deadline=None)
@given(st.integers(4, 30), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_both_modes_are_numpy(k: int, words: int, seed: int) -> None:
    """A tile, a dot product, a pause and another tile: values of numpy, cycles from the stated latency."""
    gen = np.random.default_rng(seed)
    a, w = gen.integers(-128, 128, (2, 4, k)), gen.integers(-128, 128, (2, k, 3))
    v, u = gen.integers(-128, 128, 4 * words), gen.integers(-128, 128, (4 * words, 3))
    results = run(P, [*tile(a[0], w[0]), *dot(v, u, 4), None, *tile(a[1], w[1])])
    want = np.concatenate([a[0] @ w[0], (v @ u)[None], a[1] @ w[1]])
    assert (np.array([r.values for r in results]) == want).all()
    ends = [k - 1, k + words - 1, 2 * k + words]
    assert [r.cycle for r in results] == [
        *(ends[0] + latency(P, systolic=True, row=i) for i in range(4)), ends[1] + latency(P, systolic=False),
        *(ends[2] + latency(P, systolic=True, row=i) for i in range(4))]


def test_vector_result_is_as_late_as_the_last_row() -> None:
    """So a dot product right behind a tile never meets the tile's results in the collector."""
    assert latency(P, systolic=False) == latency(P, systolic=True, row=P.rows - 1)
    assert latency(P, systolic=True, row=2) == latency(P, systolic=True) + 2


@given(st.integers(-(1 << 60), 1 << 60), st.integers(2, 64))
def test_wrap_is_two_s_complement(value: int, bits: int) -> None:
    wrapped = int(wrap(np.array(value), bits))
    assert -(1 << (bits - 1)) <= wrapped < 1 << (bits - 1)
    assert (wrapped - value) % (1 << bits) == 0


ONE = np.ones(4, int), np.ones(3, int)
SYSTOLIC, VECTOR = Step(True, True, True, *ONE), Step(False, True, True, ONE[0], np.ones((4, 3), int))


@pytest.mark.parametrize(("params", "steps", "text"), [
    ({"modes": "vector"}, [SYSTOLIC], "step 0 is systolic, a mode that this array does not have"),
    ({"modes": "systolic"}, [VECTOR], "step 0 is vector-lane, a mode that this array does not have"),
    ({}, [VECTOR, SYSTOLIC], "step 1 is systolic and follows a vector-lane step without an idle cycle"),
    ({}, [SYSTOLIC], "the tile that ends in step 0 has 1 steps, fewer than the 4 rows"),
    ({}, [*tile(np.ones((4, 4), int), np.ones((4, 3), int))[:2], None],
     "cycle 2 interrupts a tile after 2 steps, which would wash its sums"),
    ({}, [*tile(np.ones((4, 4), int), np.ones((4, 3), int))[:3], VECTOR],
     "cycle 3 interrupts a tile after 3 steps, which would wash its sums"),
])
def test_broken_rules_are_refused(params: dict[str, str], steps: list[Step | None], text: str) -> None:
    with pytest.raises(ValueError, match=f"^{text}$"):
        run(P.replace(**params), steps)


def test_systolic_only_tile_may_pause() -> None:
    """Nothing washes the sums where there is no vector-lane mode."""
    p = P.replace(modes="systolic")
    a, w = np.arange(20).reshape(4, 5), np.arange(15).reshape(5, 3)
    steps = tile(a, w)
    results = run(p, [*steps[:2], None, None, *steps[2:]])
    assert (np.array([r.values for r in results]) == a @ w).all()
    assert results[0].cycle == 6 + latency(p, systolic=True)


@pytest.mark.parametrize(("params", "inputs", "weight", "total"), [
    ({}, {"above_weight": 5, "bank_weight": 7, "above_sum": 100}, 5, 2 * -3),
    ({}, {"above_weight": 5, "bank_weight": 7, "above_sum": 100, "load_bank": 1}, 7, 2 * -3),
    ({}, {"above_weight": 5, "bank_weight": 7, "above_sum": 100, "add_above": 1}, 5, 100 - 3),
    ({"modes": "systolic"}, {"above_weight": 5}, 5, 2 * -3),
    ({"modes": "vector"}, {"bank_weight": 7, "above_sum": 100}, 7, 100 - 3),
])
def test_pe_by_hand(params: dict[str, Any], inputs: dict[str, int], weight: int, total: int) -> None:
    """Product -3 on its way, sum -3: one edge in each mode."""
    pe = PE(PEParams(**params))
    pe.weight, pe.factor, pe.product, pe.sum = 4, 4, -3, -3
    pe.step(activation=-6, **inputs)
    assert (pe.weight, pe.product, pe.sum) == (weight, -24, total)
    pe.reset()
    assert (pe.weight, pe.product, pe.sum) == (0, 0, 0)


def test_pe_wraps() -> None:
    pe = PE(PEParams(operand_width=8, acc_width=16))
    pe.product, pe.sum = 16384, 32767 - 16383
    pe.step(activation=0)
    assert pe.sum == -32768


def test_ram_by_hand() -> None:
    """Old word on a collision, held without enable, undefined before it was written."""
    ram = Ram(RamParams(width=8, depth=4))
    edge: Callable[..., None] = ram.step
    edge(write_en=True, write_addr=1, write_data=11, read_en=True, read_addr=1)
    assert ram.read_data is None
    edge(write_en=True, write_addr=1, write_data=22, read_en=True, read_addr=1)
    assert ram.read_data == 11
    edge(write_en=False, write_addr=1, write_data=33, read_en=False, read_addr=0)
    assert ram.read_data == 11
    edge(write_en=False, write_addr=1, write_data=33, read_en=True, read_addr=1)
    assert ram.read_data == 22


def test_ram_that_is_undefined_on_a_collision() -> None:
    """Only the word that is read while it is written is undefined."""
    ram = Ram(RamParams(width=8, depth=4, read_old=False))
    ram.step(write_en=True, write_addr=1, write_data=11, read_en=False, read_addr=1)
    ram.step(write_en=True, write_addr=2, write_data=22, read_en=True, read_addr=1)
    assert ram.read_data == 11
    ram.step(write_en=True, write_addr=1, write_data=33, read_en=True, read_addr=1)
    assert ram.read_data is None
    ram.step(write_en=False, write_addr=1, write_data=44, read_en=True, read_addr=1)
    assert ram.read_data == 33


def test_fifo_by_hand() -> None:
    """Full at its depth, also while a word is taken; empty after a reset."""
    fifo = Fifo(FifoParams(width=8, depth=2))
    assert (fifo.ready, fifo.head) == (True, None)
    fifo.step(offered=1, taken=True)
    fifo.step(offered=2, taken=False)
    assert (fifo.ready, fifo.head) == (False, 1)
    fifo.step(offered=3, taken=True)
    assert (fifo.ready, fifo.head) == (True, 2)
    fifo.step(offered=3, taken=True)
    assert fifo.head == 3
    fifo.reset()
    assert (fifo.ready, fifo.head) == (True, None)
