"""Blocks of the compute engine's local memories, and how a GEMM of any size is split over commands."""

import dataclasses
import itertools
from collections.abc import Iterator

import numpy as np

from sim_models.params.tile.engine.compute_engine import DIM_WIDTH, ComputeEngineParams

__all__ = ["KEPT", "MODES", "NONE", "SOURCES", "STREAMED", "Command", "GemmError", "Program", "activation_block",
           "psum_block", "result_matrix", "weight_block"]

#: modes by the number that stands in a command
MODES = ("auto", "systolic", "vector")
#: partial sums that a command adds, by the number that stands in it
SOURCES = ("none", "streamed", "kept")
NONE, STREAMED, KEPT = range(3)


class GemmError(ValueError):
    """Operands or sizes that the engine cannot take."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Command:
    """A GEMM command, field by field as in ``rtl.tile.engine.layouts.gemm_command``."""

    m: int
    k: int
    n: int
    mode: int = 0
    accumulate: int = NONE
    keep: bool = False
    activation_half: int = 0
    weight_half: int = 0
    psum_half: int = 0
    release_activation: bool = True
    release_weight: bool = True


def activation_block(p: ComputeEngineParams, x: np.ndarray, fill: int = 0) -> np.ndarray:
    """Words of a block: int (M, K) -> int (M * ceil(K / rows), rows); ``fill`` stands beyond K."""
    m, k = x.shape
    padded = np.full((m, -(-k // p.rows) * p.rows), fill, np.int64)
    padded[:, :k] = x
    return padded.reshape(-1, p.rows)


def weight_block(p: ComputeEngineParams, w: np.ndarray, fill: int = 0) -> np.ndarray:
    """Words of a block: int (K, N) -> int (n_tiles * k_words, rows * cols); ``fill`` stands beyond K and N."""
    k, n = w.shape
    kb, nt = -(-k // p.rows), -(-n // p.cols)
    padded = np.full((kb * p.rows, nt * p.cols), fill, np.int64)
    padded[:k, :n] = w
    return padded.reshape(kb, p.rows, nt, p.cols).transpose(2, 0, 1, 3).reshape(nt * kb, p.rows * p.cols)


def psum_block(p: ComputeEngineParams, c: np.ndarray, fill: int = 0) -> np.ndarray:
    """Words of a block: int (M, N) -> int (M * ceil(N / cols), cols); ``fill`` stands beyond N."""
    m, n = c.shape
    padded = np.full((m, -(-n // p.cols) * p.cols), fill, np.int64)
    padded[:, :n] = c
    return padded.reshape(-1, p.cols)


def result_matrix(p: ComputeEngineParams, words: np.ndarray, m: int, n: int) -> np.ndarray:
    """Inverse of :func:`psum_block`: int (m * n_tiles, cols) -> int (m, n)."""
    return words.reshape(m, -1)[:, :n]


@dataclasses.dataclass(frozen=True)
class _Part:
    rows: slice
    inner: slice
    cols: slice


class Program:
    """The blocks and commands that compute activations x weights + psum, of any size.

    Parameters
    ----------
    p:
        The engine.
    x, w:
        int (M, K) and (K, N) within ``operand_width`` bits.
    psum:
        int (M, N) within ``psum_width`` bits, or None.
    mode:
        One of :data:`MODES`.
    fill:
        Operand that pads blocks beyond K and N; it must not matter.

    Attributes
    ----------
    activations, weights: list of (half, words)
        Blocks for each fill stream, in order.
    psums: list of words
        Blocks for the stream of partial sums, in order.
    commands: list of Command

    Raises
    ------
    GemmError
        A size is 0, the sizes do not match, an operand is out of range, or K is so large that a partial sum
        could overflow.
    """

    def __init__(self, p: ComputeEngineParams, x: np.ndarray, w: np.ndarray, psum: np.ndarray | None = None, *,
                 mode: str = "auto", fill: int = 0) -> None:
        self.p = p
        self.shape = m, k, n = _check(p, x, w, psum, mode)
        self.activations: list[tuple[int, np.ndarray]] = []
        self.weights: list[tuple[int, np.ndarray]] = []
        self.psums: list[np.ndarray] = []
        self.commands: list[Command] = []
        self._parts = list(_parts(p, m, k, n))
        chains = 0
        for index, part in enumerate(self._parts):
            here, after = part, self._parts[index + 1] if index + 1 < len(self._parts) else None
            before = self._parts[index - 1] if index else None
            if before is None or (here.rows, here.inner) != (before.rows, before.inner):
                half = len(self.activations) % 2
                self.activations.append((half, activation_block(p, x[here.rows, here.inner], fill)))
            if before is None or (here.inner, here.cols) != (before.inner, before.cols):
                half = len(self.weights) % 2
                self.weights.append((half, weight_block(p, w[here.inner, here.cols], fill)))
            start, end = here.inner.start == 0, here.inner.stop == k
            # The parts of one K share a half; the next K takes the other one, which is free already.
            chains += start
            source = KEPT
            if start:
                source = NONE if psum is None else STREAMED
            if source == STREAMED:
                assert psum is not None
                self.psums.append(psum_block(p, psum[here.rows, here.cols], fill))
            self.commands.append(Command(
                m=here.rows.stop - here.rows.start, k=here.inner.stop - here.inner.start,
                n=here.cols.stop - here.cols.start, mode=MODES.index(mode),
                accumulate=source, keep=not end,
                activation_half=self.activations[-1][0], weight_half=self.weights[-1][0], psum_half=chains % 2,
                release_activation=after is None or (here.rows, here.inner) != (after.rows, after.inner),
                release_weight=after is None or (here.inner, here.cols) != (after.inner, after.cols)))

    @property
    def outputs(self) -> list[_Part]:
        """The parts of the result whose blocks come out of the engine, in order."""
        return [part for part, c in zip(self._parts, self.commands, strict=True) if not c.keep]

    @property
    def beats(self) -> int:
        """Beats of the result stream."""
        return sum((o.rows.stop - o.rows.start) * -(-(o.cols.stop - o.cols.start) // self.p.cols)
                   for o in self.outputs)

    def assemble(self, words: np.ndarray) -> np.ndarray:
        """The result: int (beats, cols) of the result stream -> int (M, N).

        Raises
        ------
        GemmError
            There are more or fewer beats than the program produces.
        """
        if len(words) != self.beats:
            raise GemmError(f"{self.beats} beats of results were wanted, {len(words)} came")
        m, _, n = self.shape
        c = np.empty((m, n), np.int64)
        at = 0
        for part in self.outputs:
            rows, cols = part.rows.stop - part.rows.start, part.cols.stop - part.cols.start
            count = rows * -(-cols // self.p.cols)
            c[part.rows, part.cols] = result_matrix(self.p, words[at:at + count], rows, cols)
            at += count
        return c


def _check(p: ComputeEngineParams, x: np.ndarray, w: np.ndarray, psum: np.ndarray | None,
           mode: str) -> tuple[int, int, int]:
    if mode not in MODES:
        raise GemmError(f"mode must be one of {', '.join(MODES)}, not {mode}")
    if x.ndim != 2 or w.ndim != 2 or x.shape[1] != w.shape[0]:
        raise GemmError(f"activations (M, K) and weights (K, N) were wanted, {x.shape} and {w.shape} came")
    (m, k), n = x.shape, w.shape[1]
    if min(m, k, n) < 1:
        raise GemmError(f"M, K and N must be at least 1, not {m}, {k}, {n}")
    if k > p.k_total_max:
        raise GemmError(f"K must be at most {p.k_total_max}, so that {p.psum_width} bits cannot overflow, not {k}")
    if psum is not None and psum.shape != (m, n):
        raise GemmError(f"partial sums of shape {(m, n)} were wanted, {psum.shape} came")
    for name, values, bits in (("activations", x, p.operand_width), ("weights", w, p.operand_width),
                               ("partial sums", psum, p.psum_width)):
        if values is not None and (values.min() < -(1 << (bits - 1)) or values.max() >= 1 << (bits - 1)):
            raise GemmError(f"{name} must fit {bits} signed bits, not {values.min()} to {values.max()}")
    return m, k, n


def _parts(p: ComputeEngineParams, m: int, k: int, n: int) -> Iterator[_Part]:
    """Cut so that each part's blocks fit half the memories, its sizes a command; K innermost: partial sums stay put.

    Parts of K, and of N, are even, so that the loading of one is hidden by the work on another.
    """
    words = _even(-(-k // p.rows), max(p.k_max // p.rows, 1))
    k_step = min(k, words * p.rows, p.k_max)
    m_step = min(m, p.activation_depth // words, p.psum_depth)
    if m_step < m and m_step >= p.rows:
        m_step -= m_step % p.rows                       # whole systolic passes
    tiles = min(p.weight_depth // words, p.psum_depth // m_step, ((1 << DIM_WIDTH) - 1) // p.cols)
    n_step = min(n, _even(-(-n // p.cols), tiles) * p.cols)
    for n0, m0, k0 in itertools.product(range(0, n, n_step), range(0, m, m_step), range(0, k, k_step)):
        yield _Part(slice(m0, min(m0 + m_step, m)), slice(k0, min(k0 + k_step, k)), slice(n0, min(n0 + n_step, n)))


def _even(count: int, limit: int) -> int:
    """Size of the largest part when ``count`` is cut into the fewest even parts of at most ``limit``."""
    parts = -(-count // limit)
    return -(-count // parts)
