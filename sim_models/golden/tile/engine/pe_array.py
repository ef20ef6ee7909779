"""Golden model of the array: what its steps compute, and in which cycle each result shows.

It works on steps, not on registers: a systolic tile is a sum of outer products, a vector-lane result a sum of
dot products, each wrapped to ``acc_width`` bits after every addition. The wavefront appears only in the cycle
stamps.
"""

import dataclasses
from collections.abc import Iterable

import numpy as np

from sim_models.params.tile.engine.pe_array import PEArrayParams

__all__ = ["Result", "Step", "latency", "run", "wrap"]


@dataclasses.dataclass(frozen=True)
class Step:
    """One step: mode, flags, operands.

    ``activation`` is int (rows,): systolic, the operand of each row; vector-lane, one operand per lane.
    ``weight`` is int (cols,) if systolic, (rows, cols) if vector-lane. None stands for a cycle without a step.
    """

    systolic: bool
    first: bool
    last: bool
    activation: np.ndarray
    weight: np.ndarray


@dataclasses.dataclass(frozen=True)
class Result:
    """A row of results: int64 (cols,), and the cycle in which column group 0 shows it."""

    cycle: int
    values: np.ndarray


def wrap(values: np.ndarray, bits: int) -> np.ndarray:
    """Signed integers modulo 2^bits, which is what int64 does by itself for 64 bits."""
    if bits == 64:
        return values
    half = 1 << (bits - 1)
    return ((values + half) & ((1 << bits) - 1)) - half


def latency(p: PEArrayParams, *, systolic: bool, row: int = 0) -> int:
    """Cycles from a step marked last to its result in column group 0.

    Five registers lie on the way (operand, product, sum, seen, result); a systolic result of
    row i is i cycles behind that of row 0, a vector-lane sum has come down all rows.
    """
    return 5 + (row if systolic else p.rows - 1)


def run(p: PEArrayParams, steps: Iterable[Step | None]) -> list[Result]:
    """Results of ``steps``, one a cycle from cycle 0, in the order in which they show.

    Raises
    ------
    ValueError
        The array is not built for the mode of a step, or the steps break its rules.
    """
    results: list[Result] = []
    tile = np.zeros((p.rows, p.cols), np.int64)
    lane = np.zeros(p.cols, np.int64)
    length = 0
    before: Step | None = None
    for cycle, step in enumerate(steps):
        if length and (not step.systolic if step is not None else p.vector):
            raise ValueError(f"cycle {cycle} interrupts a tile after {length} steps, which would wash its sums")
        if step is not None:
            if not (p.systolic if step.systolic else p.vector):
                raise ValueError(f"step {cycle} is {'systolic' if step.systolic else 'vector-lane'}, a mode that "
                                 "this array does not have")
            if step.systolic and before is not None and not before.systolic:
                raise ValueError(f"step {cycle} is systolic and follows a vector-lane step without an idle cycle")
            a, w = step.activation.astype(np.int64), step.weight.astype(np.int64)
            if step.systolic:
                length += 1
                tile = wrap(tile + np.outer(a, w), p.acc_width)
                if step.last:
                    if length < p.rows:
                        raise ValueError(f"the tile that ends in step {cycle} has {length} steps, fewer than the "
                                         f"{p.rows} rows")
                    results += [Result(cycle + latency(p, systolic=True, row=i), tile[i]) for i in range(p.rows)]
                    tile, length = np.zeros_like(tile), 0
            else:
                lane = wrap((0 if step.first else lane) + a @ w, p.acc_width)
                if step.last:
                    results.append(Result(cycle + latency(p, systolic=False), lane))
        before = step
    return sorted(results, key=lambda r: r.cycle)
