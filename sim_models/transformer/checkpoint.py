"""Checkpoints of Llama-style models: their shape and named float32 arrays.

Rotary positions turn neighbouring elements (2i, 2i+1), as llama2.c does; weights of other conventions are permuted
when they are read. The files that hold checkpoints are read by :mod:`sim_models.transformer.formats`.
"""

import copy
import dataclasses
import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

__all__ = ["STORIES260K", "WEIGHTS", "Checkpoint", "CheckpointError", "ModelShape", "check_finite",
           "random_checkpoint", "rotary_tables", "times"]

Float = NDArray[np.float32]

WEIGHTS = ("wq", "wk", "wv", "wo", "w1", "w2", "w3")
"""The matrices of a layer. w1 is the gate of SwiGLU, w3 the other factor, w2 the way back to ``dim``."""

_LIMITS = {"dim": 1 << 16, "hidden_dim": 1 << 18, "n_layers": 1024, "n_heads": 1024, "n_kv_heads": 1024,
           "vocab_size": 1 << 20, "max_seq_len": 1 << 20}


class CheckpointError(ValueError):
    """A model file or a set of weights is wrong; the message says what was wanted and what came."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelShape:
    """Sizes of a Llama-style model.

    Parameters
    ----------
    dim, hidden_dim:
        Width of the residual stream and of the feed-forward layer, elements.
    n_layers, n_heads, n_kv_heads:
        Layers, query heads, and key/value heads (each serves ``n_heads / n_kv_heads`` query heads).
    vocab_size, max_seq_len:
        Tokens known, positions known.
    shared_classifier:
        The classifier is the transposed embedding.
    norm_eps, rope_theta:
        RMSNorm's epsilon and the base of rotary frequencies.

    Raises
    ------
    CheckpointError
        A size is not positive, or heads do not divide what they must divide.
    """

    dim: int
    hidden_dim: int
    n_layers: int
    n_heads: int
    n_kv_heads: int
    vocab_size: int
    max_seq_len: int
    shared_classifier: bool = True
    norm_eps: float = 1e-5
    rope_theta: float = 10000.0

    def __post_init__(self) -> None:
        for name, limit in _LIMITS.items():
            value = getattr(self, name)
            if not 1 <= value <= limit:
                raise CheckpointError(f"{name} must be from 1 to {limit}, not {value}")
        for name, by in (("dim", "n_heads"), ("n_heads", "n_kv_heads")):
            whole, part = getattr(self, name), getattr(self, by)
            if whole % part:
                raise CheckpointError(f"{name} must be a multiple of {by} = {part}, not {whole}")
        if self.head_dim % 2:
            raise CheckpointError(f"dim / n_heads must be even for rotary positions, not {self.head_dim}")
        with np.errstate(over="ignore", under="ignore"):
            if not 0 < np.float32(self.norm_eps) < np.inf:
                raise CheckpointError(f"norm_eps must be positive and finite as float32, not {self.norm_eps}")
        if not 1 <= self.rope_theta < np.inf:
            raise CheckpointError(f"rope_theta must be at least 1 and finite, not {self.rope_theta}")

    @property
    def head_dim(self) -> int:
        """Elements of one head."""
        return self.dim // self.n_heads

    @property
    def kv_dim(self) -> int:
        """Elements of all key (or value) heads of one position."""
        return self.n_kv_heads * self.head_dim

    def gemm(self, name: str) -> tuple[int, int]:
        """(K, N) of a weight matrix: ``name`` is one of :data:`WEIGHTS` or ``"wcls"``."""
        d, h = self.dim, self.hidden_dim
        return {"wq": (d, d), "wk": (d, self.kv_dim), "wv": (d, self.kv_dim), "wo": (d, d), "w1": (d, h),
                "w2": (h, d), "w3": (d, h), "wcls": (d, self.vocab_size)}[name]

    def arrays(self) -> dict[str, tuple[int, ...]]:
        """Name and shape of every array, in the order of llama2.c's files; matrices are [layer, out, in]."""
        layers = {n: (self.n_layers, *self.gemm(n)[::-1]) for n in WEIGHTS}
        shapes: dict[str, tuple[int, ...]] = {"tok_emb": (self.vocab_size, self.dim)}
        shapes["rms_att"] = (self.n_layers, self.dim)
        shapes |= {n: layers[n] for n in ("wq", "wk", "wv", "wo")}
        shapes["rms_ffn"] = (self.n_layers, self.dim)
        shapes |= {n: layers[n] for n in ("w1", "w2", "w3")}
        shapes["rms_final"] = (self.dim,)
        if not self.shared_classifier:
            shapes["wcls"] = (self.vocab_size, self.dim)
        return shapes

    @property
    def parameters(self) -> int:
        """Number of weights, the classifier counted only where it is not shared."""
        return sum(map(math.prod, self.arrays().values()))


STORIES260K = ModelShape(dim=64, hidden_dim=172, n_layers=5, n_heads=8, n_kv_heads=4, vocab_size=512,
                         max_seq_len=512)
"""Shape of the public stories260K model, for benches with random weights."""


class Checkpoint:
    """A shape and its float32 arrays, checked.

    Members
    -------
    shape: ModelShape
    arrays: dict of str to float32 array
        Keys and shapes as :meth:`ModelShape.arrays` lists them.

    Raises
    ------
    CheckpointError
        An array is missing, unknown, of another shape, or holds NaN or infinity.
    """

    def __init__(self, shape: ModelShape, arrays: Mapping[str, Float]) -> None:
        wanted = shape.arrays()
        for name in arrays:
            if name not in wanted:
                raise CheckpointError(f"weights must be among {', '.join(wanted)}, not {name}")
        self.shape = shape
        self.arrays: dict[str, Float] = {}
        for name, size in wanted.items():
            if name not in arrays:
                raise CheckpointError(f"weights {name} of shape {times(size)} are missing")
            array = np.ascontiguousarray(arrays[name], dtype=np.float32)
            if array.shape != size:
                raise CheckpointError(f"weights {name} must have shape {times(size)}, "
                                      f"not {times(array.shape)}")
            check_finite(f"weights {name}", array)
            self.arrays[name] = array

    def __getitem__(self, name: str) -> Float:
        return self.arrays[name]

    def shortened(self, positions: int) -> "Checkpoint":
        """The same weights for at most so many positions; tables and caches take memory for each."""
        other = copy.copy(self)
        other.shape = dataclasses.replace(self.shape, max_seq_len=min(positions, self.shape.max_seq_len))
        return other

    @property
    def classifier(self) -> Float:
        """The classifier's weights, float32 [vocab_size, dim]."""
        return self.arrays.get("wcls", self.arrays["tok_emb"])


def check_finite(name: str, array: Float) -> None:
    """Refuse NaN and infinity.

    Raises
    ------
    CheckpointError
        There is one; the message says which and where.
    """
    bad = np.flatnonzero(~np.isfinite(array))
    if len(bad):
        where = tuple(int(i) for i in np.unravel_index(int(bad[0]), array.shape))
        raise CheckpointError(f"{name} must be finite, not {array[where]} at {list(where)}")


def rotary_tables(shape: ModelShape) -> tuple[Float, Float]:
    """Cosine and sine of every position and pair, float32 [max_seq_len, head_dim / 2].

    Computed in float64 and rounded once, so that they are the same on every machine.
    """
    frequency = shape.rope_theta ** (-np.arange(0, shape.head_dim, 2, dtype=np.float64) / shape.head_dim)
    angle = np.arange(shape.max_seq_len, dtype=np.float64)[:, None] * frequency
    return np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)


def random_checkpoint(shape: ModelShape, seed: int) -> Checkpoint:
    """Normal weights of variance 1 / K and norms near 1, to stand in for a trained model."""
    rng = np.random.default_rng(seed)
    arrays = {}
    for name, size in shape.arrays().items():
        draw = rng.standard_normal(size, dtype=np.float32)
        arrays[name] = 1 + draw / 8 if name.startswith("rms") else draw / np.float32(size[-1] ** 0.5)
    return Checkpoint(shape, arrays)


def times(size: tuple[int, ...]) -> str:
    """A shape as messages show it: ``16 x 32``."""
    return " x ".join(map(str, size)) if size else "()"
