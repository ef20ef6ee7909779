"""Golden model of the compute engine: results, statuses and cycles of commands on blocks of operands.

Each mode is computed in its own order (outer products over K; dot products of ``rows`` operands), wrapped to
``acc_width`` bits after every step, so that a schedule which could overflow would show.
"""

import collections
import dataclasses

import numpy as np

from sim_models.golden.tile.engine import pe_array
from sim_models.golden.tile.engine.pe_array import wrap
from sim_models.mapping.gemm import KEPT, MODES, NONE, SOURCES, STREAMED, Command, Program, psum_block
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
    """The engine as its host sees it: blocks and commands in order, results in order.

    Every stream is a queue of its own, so nothing here depends on time: a block waits for its command, and a command
    whose block was not sent can never be answered.

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
        self._queues: dict[str, collections.deque[tuple[int, np.ndarray]]] = {
            memory: collections.deque() for memory in ("activation", "weight")}
        self._halves: dict[str, dict[int, np.ndarray]] = {"activation": {}, "weight": {}}
        self._psums: collections.deque[np.ndarray] = collections.deque()
        self._kept: dict[int, np.ndarray] = {}
        self.outputs: list[np.ndarray] = []

    def fill(self, memory: str, half: int, words: np.ndarray) -> None:
        """Send a block to the activation or weight memory: int (words, operands); no words for a malformed one."""
        self._queues[memory].append((half, words))

    def fill_psum(self, words: np.ndarray) -> None:
        """Send a block of partial sums: int (words, cols); no words for a malformed one."""
        self._psums.append(words)

    def command(self, c: Command) -> Response:
        """Carry out one command.

        Raises
        ------
        ValueError
            A block that it waits for was not sent; the hardware would wait for ever.
        """
        status = self._early_status(c)
        streamed = self._take_psum(c)
        # A block of no words does not exist, so nothing is released.
        released = {"activation": c.release_activation and c.m > 0 and c.k > 0,
                    "weight": c.release_weight and c.k > 0 and c.n > 0}
        halves = {"activation": c.activation_half, "weight": c.weight_half}
        for memory, half in halves.items():
            if not status or released[memory]:
                self._need(memory, half)
        partial = self._kept.get(c.psum_half) if c.accumulate == KEPT else streamed
        status = status or self._block_status(c, partial)
        if status == "ok":
            self._compute(c, partial)
            response = Response(status, cycles(self.p, c.m, c.k, c.n, _mode(c)))
        else:
            if c.accumulate != NONE or c.keep:
                self._kept.pop(c.psum_half, None)
            response = Response(status, 0)
        for memory, half in halves.items():
            if released[memory]:
                del self._halves[memory][half]
        return response

    def run(self, program: Program) -> tuple[np.ndarray, list[Response]]:
        """Carry out a program on an empty engine: results int64 (M, N), and the responses."""
        for memory, queue in (("activation", program.activations), ("weight", program.weights)):
            for half, words in queue:
                self.fill(memory, half, words)
        for words in program.psums:
            self.fill_psum(words)
        responses = [self.command(c) for c in program.commands]
        words = [psum_block(self.p, out) for out in self.outputs]
        self.outputs = []
        return program.assemble(np.concatenate(words)), responses

    def _early_status(self, c: Command) -> str:
        """What is wrong with a command whatever its blocks are; nothing if they are to be looked at."""
        p = self.p
        k_words, n_tiles = -(-c.k // p.rows), -(-c.n // p.cols)
        known = self._has_mode(c) and c.accumulate < len(SOURCES)
        if (min(c.m, c.k, c.n) < 1 or c.k > p.k_max or c.m * k_words > p.activation_depth
                or k_words * n_tiles > p.weight_depth or c.m * n_tiles > p.psum_depth):
            # A mode that is not built is seen before the products of the sizes are.
            single = (min(c.m, c.k, c.n) >= 1 and c.k <= p.k_max and c.m <= min(p.activation_depth, p.psum_depth)
                      and n_tiles <= min(p.weight_depth, p.psum_depth))
            return "mode" if single and not known else "shape"
        return "" if known else "mode"

    def _block_status(self, c: Command, partial: np.ndarray | None) -> str:
        """Which of the blocks has another size than the command demands, the first of them."""
        p = self.p
        k_words, n_tiles = -(-c.k // p.rows), -(-c.n // p.cols)
        if len(self._need("activation", c.activation_half)) != c.m * k_words:
            return "activation"
        if len(self._need("weight", c.weight_half)) != k_words * n_tiles:
            return "weight"
        if c.accumulate != NONE and (partial is None or len(partial) != c.m * n_tiles):
            return "psum"
        return "ok"

    def _take_psum(self, c: Command) -> np.ndarray | None:
        """The block of the stream that belongs to the command; it replaces what was kept in the half."""
        if c.accumulate != STREAMED or c.m == 0 or c.n == 0:
            return None
        if not self._psums:
            raise ValueError("the command needs a block of partial sums, and none was sent")
        self._kept.pop(c.psum_half, None)
        return self._psums.popleft()

    def _need(self, memory: str, half: int) -> np.ndarray:
        """The block in a half; blocks go there in the order in which they were sent, each when its half is empty."""
        queue, halves = self._queues[memory], self._halves[memory]
        while half not in halves:
            if not queue:
                raise ValueError(f"the command needs half {half} of the {memory} memory, which is empty")
            if queue[0][0] in halves:
                raise ValueError(f"the command needs half {half} of the {memory} memory, but the next block waits "
                                 f"for half {queue[0][0]}, which is full")
            at, words = queue.popleft()
            halves[at] = words
        return halves[half]

    def _has_mode(self, c: Command) -> bool:
        return {0: True, 1: self.p.systolic, 2: self.p.vector}.get(c.mode, False)

    def _compute(self, c: Command, partial: np.ndarray | None) -> None:
        p = self.p
        k_words, n_tiles = -(-c.k // p.rows), -(-c.n // p.cols)
        a, w = self._need("activation", c.activation_half), self._need("weight", c.weight_half)
        x = a.reshape(c.m, k_words * p.rows)[:, :c.k]
        weights = w.reshape(n_tiles, k_words, p.rows, p.cols).transpose(1, 2, 0, 3)
        weights = weights.reshape(k_words * p.rows, n_tiles * p.cols)[:c.k, :c.n]
        out = multiply(p, x, weights, _mode(c))
        if partial is not None:
            out = wrap(out + partial.reshape(c.m, -1)[:, :c.n], p.psum_width)
        if c.accumulate == KEPT:
            del self._kept[c.psum_half]
        if c.keep:
            self._kept[c.psum_half] = psum_block(p, out)
        else:
            self.outputs.append(out)


def _mode(c: Command) -> str:
    return MODES[c.mode]
