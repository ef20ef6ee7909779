"""Steps of the array on its ports, cycle by cycle, and its results back; for benches and native runs."""

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np
from amaranth.hdl import signed
from amaranth.lib import data

from sim_models.golden.tile.engine.pe_array import Result, Step
from sim_models.params.tile.engine.pe_array import PEArrayParams
from tb.common.packing import Codec
from tb.common.scoreboard import compare

__all__ = ["OUTPUTS", "ArrayPorts", "Operands", "check", "extreme", "idle", "random_operands", "random_steps", "tile",
           "vector"]

#: outputs that :func:`check` wants, one row a cycle
OUTPUTS = ("next_result", "result_valid", "result")

#: makes operands of a shape
Operands = Callable[[tuple[int, ...]], np.ndarray]


class ArrayPorts:
    """Packs steps for the ports of an array and unpacks its outputs.

    Parameters
    ----------
    p:
        The array.
    """

    def __init__(self, p: PEArrayParams) -> None:
        self.p = p
        operand = signed(p.operand_width)
        self.weight_rows = p.rows if p.vector else 1
        self.codecs = {"valid": Codec(1), "last": Codec(1), "activation": Codec(data.ArrayLayout(operand, p.rows)),
                       "weight": Codec(data.ArrayLayout(operand, self.weight_rows * p.cols))}
        if p.vector:
            self.codecs["first"] = Codec(1)
        if p.systolic and p.vector:
            self.codecs["systolic"] = Codec(1)
        self._result = Codec(data.ArrayLayout(signed(p.acc_width), p.cols))

    def rows(self, steps: Sequence[Step | None], gen: np.random.Generator) -> dict[str, np.ndarray]:
        """Inputs, uint8 (cycles, bytes) per port, long enough for the last result.

        Whatever the array should not look at is random: flags of idle cycles, weights that belong to no step,
        and those of rows 1 and up in systolic mode. Activations without a step are zero, as the array wants it.
        """
        p, at = self.p, len(steps)
        count = at + 2 * p.rows + p.groups + 12
        low = -(1 << (p.operand_width - 1))
        flags = {name: gen.integers(0, 2, count) for name in ("last", "first", "systolic")}
        flags["valid"] = np.zeros(count, np.int64)
        activation = np.zeros((count, p.rows), np.int64)
        weight = gen.integers(low, -low, (count, self.weight_rows, p.cols))
        lanes, columns = np.arange(p.rows), np.arange(p.cols)
        hops = columns // p.columns_per_hop
        for t, step in enumerate(steps):
            if step is None:
                continue
            for name in ("last", "systolic"):
                flags[name][t] = getattr(step, name)
            # `first` says nothing in systolic mode
            flags["first"][t] = step.first if not step.systolic else flags["first"][t]
            flags["valid"][t] = 1
            activation[t + lanes, lanes] = step.activation
            if step.systolic:
                weight[t + hops, 0, columns] = step.weight
            else:
                weight[t + lanes[:, None] + hops, lanes[:, None], columns] = step.weight
        values = {**flags, "activation": activation, "weight": weight.reshape(count, -1)}
        return {name: codec.pack(values[name]) for name, codec in self.codecs.items()}

    def results(self, outputs: dict[str, np.ndarray]) -> list[Result]:
        """Results from outputs, uint8 (cycles, bytes) per port, with the column groups side by side again.

        Raises
        ------
        AssertionError
            ``next_result`` does not tell the cycle before what ``result_valid`` tells.
        """
        p = self.p
        valid = outputs["result_valid"][:, 0]
        compare(outputs["next_result"][:-1, 0], valid[1:], "next_result in the cycle before result_valid")
        values = self._result.unpack(outputs["result"])
        columns = np.arange(p.cols)
        return [Result(int(t), values[t + columns // p.columns_per_hop, columns]) for t in np.flatnonzero(valid)]


def check(ports: ArrayPorts, want: Sequence[Result], outputs: dict[str, np.ndarray]) -> None:
    """Compare outputs with results of the golden model, values and cycles.

    Raises
    ------
    Mismatch
        A result differs, is missing, too much, or in another cycle.
    """
    got = ports.results(outputs)
    compare([r.cycle for r in got], [r.cycle for r in want], "cycles of results")
    compare(np.array([r.values for r in got]), np.array([r.values for r in want]), "results [row, column]")


def random_operands(p: PEArrayParams, gen: np.random.Generator) -> Operands:
    """Uniform operands."""
    low = -(1 << (p.operand_width - 1))
    return lambda shape: gen.integers(low, -low, shape)


def extreme(p: PEArrayParams) -> Operands:
    """The most negative operand alone: the largest product there is."""
    return lambda shape: np.full(shape, -(1 << (p.operand_width - 1)), np.int64)


def tile(p: PEArrayParams, length: int, operands: Operands) -> list[Step]:
    """A systolic tile of so many steps."""
    a, w = operands((length, p.rows)), operands((length, p.cols))
    return [Step(True, k == 0, k == length - 1, a[k], w[k]) for k in range(length)]


def vector(p: PEArrayParams, length: int, operands: Operands) -> list[Step]:
    """A vector-lane dot product of so many steps."""
    a, w = operands((length, p.rows)), operands((length, p.rows, p.cols))
    return [Step(False, k == 0, k == length - 1, a[k], w[k]) for k in range(length)]


def idle(count: int) -> list[Step | None]:
    """Cycles without a step."""
    return [None] * count


@dataclasses.dataclass
class _Writer:
    p: PEArrayParams
    gen: np.random.Generator
    steps: list[Step | None]

    def systolic(self, operands: Operands) -> None:
        p, gen = self.p, self.gen
        if self.steps and (before := self.steps[-1]) is not None and not before.systolic:
            self.steps += idle(1)
        length = p.rows if gen.random() < 0.4 else int(gen.integers(p.rows, 4 * p.rows + 1))
        for step in tile(p, length, operands):
            self.steps.append(step)
            if not p.vector and gen.random() < 0.1:
                self.steps += idle(int(gen.integers(1, 4)))      # only where sums are not washed

    def vector(self, operands: Operands) -> None:
        gen = self.gen
        for step in vector(self.p, int(gen.choice([1, 1, 2, 3, int(gen.integers(1, 12))])), operands):
            if gen.random() < 0.1:
                self.steps += idle(int(gen.integers(1, 4)))
            self.steps.append(step)


def random_steps(p: PEArrayParams, gen: np.random.Generator, length: int) -> list[Step | None]:
    """At least ``length`` random legal steps: tiles and dot products back to back or with pauses, extremes too."""
    writer = _Writer(p, gen, [])
    while len(writer.steps) < length:
        if gen.random() < 0.3:
            writer.steps += idle(int(gen.integers(1, 2 * p.rows + 4)))
        operands = extreme(p) if gen.random() < 0.15 else random_operands(p, gen)
        if p.systolic and (not p.vector or gen.random() < 0.5):
            writer.systolic(operands)
        else:
            writer.vector(operands)
    return writer.steps
