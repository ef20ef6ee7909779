"""The arithmetic pipelines' Verilog against their golden models, on a large sample."""

import importlib
from typing import Any

import numpy as np
import pytest

from rtl.registry import BLOCKS
from tb.arith.numbers import FLOAT32_SPECIAL, HALF_SPECIAL, float32_codes, half_codes, integer_codes, near_codes
from tb.common.native import NativeSim
from tests.conftest import Extent
from tests.designs.arith import PIPELINES, AllArith
from tests.designs.run import BUILDS

#: operands of each pipeline, in the short form and in the long one
COUNTS = 100_000, 3_000_000


@pytest.fixture(scope="module")
def sim() -> NativeSim:
    return NativeSim(AllArith(), BUILDS)


def pairs(special: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    a, b = np.meshgrid(special, special)
    return a.ravel(), b.ravel()


def operands(block: str, values: dict[str, Any], extent: Extent) -> dict[str, np.ndarray]:
    """All special pairs or all 16-bit numbers first, then random ones."""
    gen, count = extent.generator(*block.encode()), extent.count(*COUNTS)
    p = BLOCKS[block].params(**values)
    if block == "exact_product":
        codes = {"a": half_codes(gen, count), "b": half_codes(gen, count)}
        first = dict(zip("ab", pairs(HALF_SPECIAL), strict=True))
    elif block == "float_maximum":
        lanes = [float32_codes(gen, count)]
        for _ in range(p.lanes - 1):
            lanes.append(near_codes(gen, lanes[-1]))
        codes = {"values": np.stack(lanes, axis=1), "present": gen.integers(0, 1 << p.lanes, count, np.uint8)}
        first = {}
    elif block == "int_to_float":
        codes, first = {"value": integer_codes(p.width)(gen, count)}, {}
    elif block == "half_to_float" or values == {"format": "fp16"}:
        codes = {"value" if block == "half_to_float" else "x": half_codes(gen, count)}
        first = dict.fromkeys(codes, np.arange(1 << 16).astype(np.uint16))
    elif block in ("float_to_int", "float_to_half", "exp2", "reciprocal", "reciprocal_sqrt"):
        codes = {"value" if "to" in block else "x": float32_codes(gen, count)}
        first = dict.fromkeys(codes, FLOAT32_SPECIAL)
    else:
        a = float32_codes(gen, count)
        codes, first = {"a": a, "b": near_codes(gen, a)}, dict(zip("ab", pairs(FLOAT32_SPECIAL), strict=True))
    return {name: np.concatenate([first[name], code]) if first else code for name, code in codes.items()}


def rows(codes: np.ndarray, width: int) -> np.ndarray:
    """Packed rows of one port."""
    if codes.ndim == 2:
        return np.ascontiguousarray(codes.astype("<u4")).view(np.uint8)
    return codes.astype("<u8").view(np.uint8).reshape(-1, 8)[:, :-(-width // 8)].copy()


def number(packed: np.ndarray) -> np.ndarray:
    """Values of one port of at most 64 bits."""
    wide = np.zeros((len(packed), 8), np.uint8)
    wide[:, :packed.shape[1]] = packed
    return wide.view("<u8")[:, 0]


@pytest.mark.parametrize("name", PIPELINES)
def test_results_are_the_golden_models(sim: NativeSim, name: str, extent: Extent) -> None:
    block, values = PIPELINES[name]
    entry = BLOCKS[block]
    params: Any = entry.params(**values)
    cls = "".join(w.capitalize() for w in block.split("_"))
    model = getattr(importlib.import_module(entry.golden), cls)(params)
    codes = operands(block, values, extent)
    count = len(next(iter(codes.values())))
    assert count >= extent.count(*COUNTS)

    width = {port.name: port.width for port in sim.library.ports}
    padded = {port: np.concatenate([code, code[:params.stages]]) for port, code in codes.items()}
    inputs = {f"{name}_{port}": rows(code, width[f"{name}_{port}"]) for port, code in padded.items()}
    inputs[f"{name}_i_valid"] = (np.arange(count + params.stages) % 7 != 3).astype(np.uint8)[:, None]
    want = model.results(**codes)
    outputs = [f"{name}_{port}" for port in want]
    sim.reset(2)
    came = sim.play(inputs, [*outputs, f"{name}_o_valid"])

    valid = came[f"{name}_o_valid"][:, 0]
    np.testing.assert_array_equal(valid[params.stages:], inputs[f"{name}_i_valid"][:count, 0])
    assert not valid[:params.stages].any()
    for port, wanted in want.items():
        got = number(came[f"{name}_{port}"][params.stages:])
        wrong = np.flatnonzero(got != np.asarray(wanted).astype(np.uint64))
        if wrong.size:
            at = wrong[0]
            shown = {p: [hex(int(c)) for c in np.atleast_1d(v[at])] for p, v in codes.items()}
            pytest.fail(f"{port}: {wrong.size} differ, first at {at}: got {got[at]:#x}, want {int(wanted[at]):#x}, "
                        f"operands {shown}")
