"""Bench of the memory: random traffic on both ports against the golden model, collisions, holding, resets."""

from typing import Any

import numpy as np

from sim_models.golden.memory.ram import Ram
from tb.common import params
from tb.common.bench import bench_test
from tb.common.clock import cycles, reset, rng, start
from tb.common.scoreboard import compare

VARIANTS: dict[str, dict[str, object]] = {
    "default": {},
    "smallest": {"width": 1, "depth": 2},
    "odd": {"width": 33, "depth": 5},
    "wide": {"width": 200, "depth": 16},
    "any_on_collision": {"width": 12, "depth": 6, "read_old": False},
}


def _word(gen: np.random.Generator, width: int) -> int:
    """A random word; all ones and zeros come often."""
    kind = gen.integers(8)
    random = int.from_bytes(gen.bytes(-(-width // 8)), "little") & ((1 << width) - 1)
    return 0 if kind == 0 else (1 << width) - 1 if kind == 1 else random


async def _cycle(dut: Any, model: Ram, inputs: dict[str, int], seen: list[tuple[int, int]]) -> None:
    """One cycle: drive, let the edge come, note what was read and what should have been."""
    for name, value in inputs.items():
        getattr(dut, name).value = value
    await cycles(1)
    if model.read_data is not None:
        seen.append((int(dut.read_data.value), model.read_data))
    model.step(**inputs)  # type: ignore[arg-type]


def _check(seen: list[tuple[int, int]], name: str) -> None:
    compare(np.array([g for g, _ in seen], object), np.array([w for _, w in seen], object), name)


@bench_test(timeout_us=200)
async def random_traffic(dut: Any) -> None:
    """Both ports at random, often at one address; a reset in the middle touches no word."""
    await start(dut)
    gen, p = rng(), params()
    model, seen = Ram(p), []
    for _ in range(2):
        window = int(gen.integers(1, min(p.depth, 64) + 1))
        low = int(gen.integers(0, p.depth - window + 1))
        for _ in range(1500):
            at, other = (int(a) + low for a in gen.integers(0, window, 2))
            await _cycle(dut, model, {
                "write_en": int(gen.random() < 0.6), "write_addr": at, "write_data": _word(gen, p.width),
                "read_en": int(gen.random() < 0.6), "read_addr": at if gen.random() < 0.4 else other}, seen)
        dut.write_en.value = dut.read_en.value = 0
        await reset(dut, int(gen.integers(1, 4)))
        model.read_data = None
    _check(seen, "read data")


@bench_test(timeout_us=200)
async def every_word(dut: Any) -> None:
    """Each address has a word of its own: write all (at most 2048), read all in another order."""
    await start(dut)
    gen, p = rng(), params()
    model, seen = Ram(p), []
    addresses = [int(a) for a in gen.permutation(p.depth)[:2048]]
    quiet = {"write_en": 0, "write_addr": 0, "write_data": 0, "read_en": 0, "read_addr": 0}
    for at in addresses:
        await _cycle(dut, model, {**quiet, "write_en": 1, "write_addr": at, "write_data": _word(gen, p.width)}, seen)
    for at in reversed(addresses):
        await _cycle(dut, model, {**quiet, "read_en": 1, "read_addr": at}, seen)
        # Without enable the port holds, whatever the address and whoever writes there.
        while gen.random() < 0.3:
            await _cycle(dut, model, {**quiet, "read_addr": int(gen.integers(p.depth))}, seen)
    await _cycle(dut, model, quiet, seen)
    _check(seen, "words")


@bench_test(timeout_us=100)
async def read_while_written(dut: Any) -> None:
    """A read of the word that is being written gives the old one, or nothing defined, then the new one."""
    await start(dut)
    gen, p = rng(), params()
    model, seen = Ram(p), []
    for _ in range(300):
        at = int(gen.integers(p.depth))
        for _ in range(3):
            await _cycle(dut, model, {"write_en": 1, "write_addr": at, "write_data": _word(gen, p.width),
                                      "read_en": 1, "read_addr": at}, seen)
        await _cycle(dut, model, {"write_en": 0, "write_addr": at, "write_data": 0, "read_en": 1, "read_addr": at},
                     seen)
    _check(seen, "read data")
