"""Long random traffic for the Shared Pool: every output of every cycle against the model, far faster than a bench."""

import re
from typing import Any

import numpy as np
import pytest

from gen.emit.emit import emit
from rtl.manager.pools.shared_pool import SharedPool
from sim_models.golden.manager.pools.shared_pool import Inputs
from sim_models.golden.manager.pools.shared_pool import SharedPool as Model
from sim_models.params.manager.pools.shared_pool import SharedPoolParams
from tb.common.native import NativeSim
from tb.manager.pools.pool_traffic import (
    CHECKED,
    Mix,
    Traffic,
    expected,
    packed_eligible,
    packed_selected,
    packed_token,
    packed_verdict,
)
from tests.designs.run import BUILDS

MIXES = {
    "flood": Mix(insert=1, flush=0, verdict=0.2, start=1, ready=1, levels=20),
    "drafts": Mix(insert=0.3, flush=0.01, verdict=0.5, start=0.05, ready=0.7, capacity=64, levels=200),
    "flushes": Mix(insert=0.9, flush=0.2, verdict=1, start=1, levels=2),
    "suffixes": Mix(insert=0.6, flush=0, verdict=1, start=1, accepted=1, bonus=0.9, capacity=5, requests=3),
    "aging": Mix(insert=0.7, flush=0, verdict=1, start=1, aging=2, capacity=2, ineligible=0.2),
}


def _rows(numbers: list[int], width: int) -> np.ndarray:
    size = -(-width // 8)
    return np.frombuffer(b"".join(n.to_bytes(size, "little") for n in numbers), np.uint8).reshape(-1, size)


def _driven(p: SharedPoolParams, i: Inputs) -> dict[str, int]:
    """Values of the input ports."""
    return {
        "insert__valid": i.insert is not None, "insert__payload": packed_token(p, i.insert) if i.insert else 0,
        "flush__valid": i.flush is not None, "flush__payload": i.flush or 0,
        "verdict__valid": i.verdict is not None,
        "verdict__payload": packed_verdict(p, i.verdict) if i.verdict else 0,
        "start__valid": i.start is not None, "start__payload": i.start or 0,
        "selected__ready": i.selected_ready, "eligible": packed_eligible(p, i), "look": i.look,
        **({"aging": i.aging} if p.aging_width else {})}


@pytest.mark.parametrize("mix", MIXES.values(), ids=MIXES)
@pytest.mark.parametrize(("entries", "request_width", "aging_width"), [
    (1, 1, 7), (2, 1, 7), (7, 2, 7), (64, 6, 0), (512, 7, 7)])
def test_shared_pool_equals_its_model(entries: int, request_width: int, aging_width: int, mix: Mix) -> None:
    p = SharedPoolParams(entries=entries, request_width=request_width, aging_width=aging_width)
    sim = NativeSim(SharedPool(p), BUILDS, seed=entries)
    widths = {port.name: port.width for port in sim.library.ports}
    gen = np.random.default_rng([entries, request_width])
    model = Model(p)
    for run in range(2):
        sim.reset()
        model.reset()
        traffic = Traffic(model, gen)
        driven: dict[str, list[int]] = {}
        outputs = []
        for cycle in range(2 * p.requests + 3000):
            inputs = traffic.draw(mix) if cycle else Inputs()
            for name, value in _driven(p, inputs).items():
                driven.setdefault(name, []).append(int(value))
            outputs.append(traffic.step(inputs))
        seen = sim.play({name: _rows(values, widths[name]) for name, values in driven.items()}, CHECKED)
        got = np.array([[int.from_bytes(row.tobytes(), "little") for row in seen[name]] for name in CHECKED],
                       object).T.tolist()
        awake = 2 * p.requests + 1
        for cycle, (g, o) in enumerate(zip(got, outputs, strict=True)):
            _hide(p, g, cycle < awake)
            w = expected(o, g, p)
            if cycle < awake:
                w[6:11] = g[6:11]
            assert dict(zip(CHECKED, g, strict=True)) == dict(zip(CHECKED, w, strict=True)), (
                f"run {run}, cycle {cycle}")
        assert sum(o.selected not in (None, "end") for o in outputs) > 5


def _hide(p: SharedPoolParams, got: list[Any], waking: bool) -> None:
    """The entry that comes with the end of a round means nothing."""
    at = CHECKED.index("selected__payload")
    if got[at] >> p.entry_bits and not waking:
        got[at] = packed_selected(p, "end")


@pytest.mark.parametrize(("entries", "request_width", "aging_width"), [(512, 7, 7), (7, 3, 7), (100, 5, 0)])
def test_size_is_that_of_the_memories(entries: int, request_width: int, aging_width: int) -> None:
    p = SharedPoolParams(entries=entries, request_width=request_width, aging_width=aging_width)
    memories = re.findall(r"reg \[(\d+):0\] \w+ \[(\d+):0\];", emit(SharedPool(p)).verilog)
    bits = sum((int(width) + 1) * (int(depth) + 1) for width, depth in memories)
    # the two nodes under the root are registers
    root = 2 * (p.tournament.key_width + request_width - 1)
    assert p.storage_bits == bits + root
