"""Checkpoints of Llama-style models: shape, named float32 arrays, and llama2.c's version-0 file format.

The file is a header of seven little-endian int32 (dim, hidden_dim, n_layers, n_heads, n_kv_heads, vocab_size,
max_seq_len) and float32 arrays in the order of :meth:`ModelShape.arrays`, with two rotary tables before the
classifier. A negative vocab_size says that the classifier does not share the embedding's weights. Rotary
positions turn neighbouring elements (2i, 2i+1), as llama2.c does; weights of other conventions are permuted
when they are read.
"""

import dataclasses
import os
import struct
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

__all__ = ["STORIES260K", "WEIGHTS", "Checkpoint", "CheckpointError", "ModelShape", "load_llama2c",
           "random_checkpoint", "read_file", "rotary_tables", "save_llama2c", "write_file"]

Float = NDArray[np.float32]

WEIGHTS = ("wq", "wk", "wv", "wo", "w1", "w2", "w3")
"""The matrices of a layer. w1 is the gate of SwiGLU, w3 the other factor, w2 the way back to ``dim``."""

_HEADER = struct.Struct("<7i")
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
        for name in ("norm_eps", "rope_theta"):
            value = getattr(self, name)
            if not 0 < value < float("inf"):
                raise CheckpointError(f"{name} must be positive and finite, not {value}")

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
        """Name and shape of every array, in the order of the file; matrices are [layer, out, in]."""
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
        return sum(_count(s) for s in self.arrays().values())


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
                raise CheckpointError(f"weights {name} of shape {_times(size)} are missing")
            array = np.ascontiguousarray(arrays[name], dtype=np.float32)
            if array.shape != size:
                raise CheckpointError(f"weights {name} must have shape {_times(size)}, "
                                      f"not {_times(array.shape)}")
            bad = np.flatnonzero(~np.isfinite(array))
            if len(bad):
                where = tuple(int(i) for i in np.unravel_index(int(bad[0]), size))
                raise CheckpointError(f"weights {name} must be finite, not {array[where]} at {list(where)}")
            self.arrays[name] = array

    def __getitem__(self, name: str) -> Float:
        return self.arrays[name]

    @property
    def classifier(self) -> Float:
        """The classifier's weights, float32 [vocab_size, dim]."""
        return self.arrays.get("wcls", self.arrays["tok_emb"])


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


def load_llama2c(path: str | os.PathLike[str]) -> Checkpoint:
    """Read a llama2.c version-0 file.

    Raises
    ------
    CheckpointError
        The file cannot be read, its header is not sensible, its length is not exactly what the header says,
        a weight is not finite, or its rotary tables are not those of base 10000.
    """
    raw = read_file(path)
    try:
        return _parse(raw)
    except CheckpointError as error:
        raise CheckpointError(f"{os.fspath(path)}: {error}") from None


def read_file(path: str | os.PathLike[str]) -> bytes:
    """The file's bytes; :class:`CheckpointError` when it cannot be read."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise CheckpointError(f"{os.fspath(path)}: cannot be read: {error.strerror}") from None


def _parse(raw: bytes) -> Checkpoint:
    if len(raw) < _HEADER.size:
        raise CheckpointError(f"the header of a llama2.c file has {_HEADER.size} bytes, this file {len(raw)}")
    if raw[:4] in (b"GGUF", b"24ka"):
        raise CheckpointError(f"this is not a llama2.c version-0 file: it starts with {raw[:4]!r}")
    dim, hidden, layers, heads, kv_heads, vocab, seq = _HEADER.unpack_from(raw)
    shape = ModelShape(dim=dim, hidden_dim=hidden, n_layers=layers, n_heads=heads, n_kv_heads=kv_heads,
                       vocab_size=abs(vocab), max_seq_len=seq, shared_classifier=vocab > 0)
    table = (seq, shape.head_dim // 2)
    sizes = list(shape.arrays().items())
    at = len(sizes) if shape.shared_classifier else len(sizes) - 1
    sizes[at:at] = [("freq_cos", table), ("freq_sin", table)]
    wanted = _HEADER.size + 4 * sum(_count(s) for _, s in sizes)
    if len(raw) != wanted:
        raise CheckpointError(f"the header asks for {wanted} bytes, this file has {len(raw)}")
    arrays, offset = {}, _HEADER.size
    for name, size in sizes:
        arrays[name] = np.frombuffer(raw, "<f4", _count(size), offset).reshape(size)
        offset += 4 * _count(size)
    for name, table in zip(("freq_cos", "freq_sin"), rotary_tables(shape), strict=True):
        _check_rotary(name, arrays.pop(name), table)
    return Checkpoint(shape, arrays)


def _check_rotary(name: str, got: Float, want: Float) -> None:
    # float32 angles (as PyTorch makes them) are wrong by up to half an ulp of the angle: seq * 2**-24
    allowed = 1e-6 + len(want) * 2.0 ** -23
    bad = np.argwhere(~(np.abs(got - want) <= allowed))
    if len(bad):
        where = tuple(int(i) for i in bad[0])
        raise CheckpointError(f"{name} must be the table of base 10000, {want[where]:.6g} at {list(where)}, "
                              f"not {got[where]:.6g}")


def save_llama2c(path: str | os.PathLike[str], checkpoint: Checkpoint) -> None:
    """Write a llama2.c version-0 file; whole or not at all.

    Raises
    ------
    CheckpointError
        The shape has an epsilon or rotary base that the format cannot say.
    """
    shape = checkpoint.shape
    for name, fixed in (("norm_eps", 1e-5), ("rope_theta", 10000.0)):
        if getattr(shape, name) != fixed:
            raise CheckpointError(f"a llama2.c file means {name} = {fixed:g}, not {getattr(shape, name):g}")
    vocab = shape.vocab_size if shape.shared_classifier else -shape.vocab_size
    parts = [_HEADER.pack(shape.dim, shape.hidden_dim, shape.n_layers, shape.n_heads, shape.n_kv_heads, vocab,
                          shape.max_seq_len)]
    parts += [checkpoint[n].astype("<f4").tobytes() for n in shape.arrays() if n != "wcls"]
    parts += [t.astype("<f4").tobytes() for t in rotary_tables(shape)]
    if not shape.shared_classifier:
        parts.append(checkpoint["wcls"].astype("<f4").tobytes())
    write_file(path, b"".join(parts))


def write_file(path: str | os.PathLike[str], data: bytes) -> None:
    """Write ``data`` beside ``path`` and put it in place in one step."""
    path = Path(path)
    part = path.with_name(path.name + ".part")
    try:
        part.write_bytes(data)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _count(size: tuple[int, ...]) -> int:
    n = 1
    for s in size:
        n *= s
    return n


def _times(size: tuple[int, ...]) -> str:
    return " x ".join(map(str, size)) if size else "()"
