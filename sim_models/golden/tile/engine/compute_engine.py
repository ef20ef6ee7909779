"""Golden model of the compute engine: results, statuses and cycles of commands on blocks of operands.

Each mode is computed in its own order (outer products over K; dot products of ``rows`` operands), wrapped to
``acc_width`` bits after every step, so that a schedule which could overflow would show.
"""

import dataclasses

import numpy as np

from sim_models.golden.tile.engine import pe_array
from sim_models.golden.tile.engine.pe_array import wrap
from sim_models.mapping.gemm import MODES, Command, Program, psum_block
from sim_models.params.tile.engine.compute_engine import ComputeEngineParams

__all__ = ["STATUS", "ComputeEngine", "Response", "cycles", "gap", "multiply", "steps"]

#: outcomes by the number that stands in a response
STATUS = ("ok", "shape", "mode", "activation", "weight", "psum")


@dataclasses.dataclass(frozen=True)
class Response:
    """A response, field by field as in ``rtl.tile.engine.layouts.gemm_response``."""

    status: str
    cycles: int


def _split(p: ComputeEngineParams, m: int, mode: str) -> tuple[int, int]:
    """Rows that go through systolic passes, and rows that go through vector-lane mode one by one."""
    if not p.vector or (mode == "systolic" and p.systolic):
        return m, 0
    if not p.systolic or mode == "vector":
        return 0, m
    return m - m % p.rows, m % p.rows


def steps(p: ComputeEngineParams, m: int, k: int, n: int, mode: str = "auto") -> int:
    """Cycles for which a command occupies the array.

    A systolic pass takes ``rows`` steps per word of K and tile of N, however many rows it has; a vector-lane row
    takes one.
    """
    systolic, vector = _split(p, m, mode)
    passes = -(-systolic // p.rows)
    return (passes * p.rows + vector) * -(-k // p.rows) * -(-n // p.cols)


def cycles(p: ComputeEngineParams, m: int, k: int, n: int, mode: str = "auto") -> int:
    """Cycles from a command's first operand at the array to its last result, both included.

    The last step enters after ``steps - 1`` cycles; the array's registers, the skew of the column groups
    and that of the last row that counts follow.
    """
    systolic, vector = _split(p, m, mode)
    last_row = p.rows - 1 if vector else (systolic - 1) % p.rows
    return steps(p, m, k, n, mode) + pe_array.latency(p, systolic=True, row=last_row) + p.groups - 1


def gap(p: ComputeEngineParams, before: tuple[int, str], after: tuple[int, str]) -> int:
    """Idle cycles of the array between two commands that wait for nothing, given as (M, mode)."""
    return int(bool(_split(p, *before)[1]) and bool(_split(p, *after)[0]))


def multiply(p: ComputeEngineParams, x: np.ndarray, w: np.ndarray, mode: str = "auto") -> np.ndarray:
    """Activations x weights in the order of the hardware: int (M, K), (K, N) -> int64 (M, N)."""
    systolic, _ = _split(p, len(x), mode)
    x, w = x.astype(np.int64), w.astype(np.int64)
    k = w.shape[0]
    out = np.zeros((len(x), w.shape[1]), np.int64)
    for i in range(k):
        out[:systolic] = wrap(out[:systolic] + np.outer(x[:systolic, i], w[i]), p.acc_width)
    for i in range(0, k, p.rows):
        out[systolic:] = wrap(out[systolic:] + x[systolic:, i:i + p.rows] @ w[i:i + p.rows], p.acc_width)
    return out


class ComputeEngine:
    """The engine as its host sees it: blocks in, commands, blocks out.

    Parameters
    ----------
    p:
        The engine.

    Attributes
    ----------
    outputs: list of int64 (M, N)
        Results that are not kept, in order.
    """

    def __init__(self, p: ComputeEngineParams) -> None:
        self.p = p
        self._blocks: dict[str, dict[int, np.ndarray]] = {"activation": {}, "weight": {}, "psum": {}}
        self.outputs: list[np.ndarray] = []

    def fill(self, memory: str, half: int, words: np.ndarray) -> None:
        """Put a block into a half that is empty: int (words, operands); no words stand for a malformed one.

        Raises
        ------
        ValueError
            The half is full; the hardware would make the stream wait.
        """
        if half in self._blocks[memory]:
            raise ValueError(f"half {half} of the {memory} memory is full")
        self._blocks[memory][half] = words

    def command(self, c: Command) -> Response:
        """Carry out one command.

        Raises
        ------
        ValueError
            A block that it needs is not there; the hardware would wait.
        """
        status = self._status(c)
        if status == "ok":
            response = Response(status, cycles(self.p, c.m, c.k, c.n, _mode(c)))
            self._compute(c)
        else:
            response = Response(status, 0)
            if c.accumulate:
                self._blocks["psum"].pop(c.psum_half, None)
        if c.release_activation:
            self._blocks["activation"].pop(c.activation_half, None)
        if c.release_weight:
            self._blocks["weight"].pop(c.weight_half, None)
        return response

    def run(self, program: Program) -> tuple[np.ndarray, list[Response]]:
        """Carry out a program on an empty engine: results int64 (M, N), and the responses."""
        queues = {"activation": list(program.activations), "weight": list(program.weights),
                  "psum": list(program.psums)}
        responses = []
        for c in program.commands:
            for memory, queue in queues.items():
                while queue and queue[0][0] not in self._blocks[memory]:
                    self.fill(memory, *queue.pop(0))
            responses.append(self.command(c))
        words = [psum_block(self.p, out) for out in self.outputs]
        self.outputs = []
        return program.assemble(np.concatenate(words)), responses

    def _status(self, c: Command) -> str:
        p = self.p
        k_words, n_tiles = -(-c.k // p.rows), -(-c.n // p.cols)
        if (min(c.m, c.k, c.n) < 1 or c.k > p.k_max or c.m * k_words > p.activation_depth
                or k_words * n_tiles > p.weight_depth or c.m * n_tiles > p.psum_depth):
            # A mode that is not built is seen before the products of the sizes are.
            single = (min(c.m, c.k, c.n) >= 1 and c.k <= p.k_max and c.m <= min(p.activation_depth, p.psum_depth)
                      and n_tiles <= min(p.weight_depth, p.psum_depth))
            return "mode" if single and not self._has_mode(c) else "shape"
        if not self._has_mode(c):
            return "mode"
        needed = [("activation", c.activation_half, c.m * k_words), ("weight", c.weight_half, k_words * n_tiles),
                  ("psum", c.psum_half, c.m * n_tiles)][:3 if c.accumulate else 2]
        # All of them must be there before any is looked at.
        sizes = [len(self._need(memory, half)) for memory, half, _ in needed]
        wrong = [memory for (memory, _, words), size in zip(needed, sizes, strict=True) if size != words]
        return wrong[0] if wrong else "ok"

    def _need(self, memory: str, half: int) -> np.ndarray:
        if half not in self._blocks[memory]:
            raise ValueError(f"the command needs half {half} of the {memory} memory, which is empty")
        return self._blocks[memory][half]

    def _has_mode(self, c: Command) -> bool:
        return {0: True, 1: self.p.systolic, 2: self.p.vector}.get(c.mode, False)

    def _compute(self, c: Command) -> None:
        p = self.p
        k_words, n_tiles = -(-c.k // p.rows), -(-c.n // p.cols)
        a, w = self._need("activation", c.activation_half), self._need("weight", c.weight_half)
        x = a.reshape(c.m, k_words * p.rows)[:, :c.k]
        weights = w.reshape(n_tiles, k_words, p.rows, p.cols).transpose(1, 2, 0, 3)
        weights = weights.reshape(k_words * p.rows, n_tiles * p.cols)[:c.k, :c.n]
        out = multiply(p, x, weights, _mode(c))
        if c.accumulate:
            before = self._need("psum", c.psum_half)
            out = wrap(out + before.reshape(c.m, -1)[:, :c.n], p.psum_width)
            del self._blocks["psum"][c.psum_half]
        if c.keep:
            self._blocks["psum"][c.psum_half] = psum_block(p, out)
        else:
            self.outputs.append(out)


def _mode(c: Command) -> str:
    return MODES[c.mode]


