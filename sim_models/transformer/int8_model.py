"""The integer forward pass that the hardware is equal to, bit for bit.

Matrix products are int8 x int8 into int32, exact and hence free of any order::

    tokens -> embedding (int8 row x scale) -> x                                 float32
    each layer:  x -> RMSNorm -> quantise row -> GEMM wq, wk, wv                int8 -> int32 -> float32
                 q, k -> rotary -> quantise per head; v -> quantise per head    int8 KV cache
                 q . k (int32) x scales -> softmax -> x v scale -> quantise per head
                 probabilities . v (int32) x scale -> quantise row -> GEMM wo -> add to x
                 x -> RMSNorm -> quantise row -> GEMM w1, w3 -> SiLU(w1) x w3
                   -> quantise row -> GEMM w2 -> add to x
    x -> RMSNorm -> quantise row -> GEMM wcls -> logits

Everything between is float32, row by row, in the fixed order of :mod:`sim_models.numerics.rows`. A row's
logits depend on the tokens before it and on nothing else: not on how many rows a pass has, nor on what was
rolled back. That is the property that makes speculation lossless.
"""

import dataclasses
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sim_models.numerics import rows as exact
from sim_models.transformer.cache import KVCache
from sim_models.transformer.checkpoint import WEIGHTS, Checkpoint, CheckpointError, ModelShape, rotary_tables

__all__ = ["Int8Model", "MatMul", "QuantisedCheckpoint", "QuantisedMatrix", "quantise_checkpoint"]

Float = NDArray[np.float32]
Int8 = NDArray[np.int8]
Int32 = NDArray[np.int32]

MatMul = Callable[[Int8, Int8, str], Int32]
"""(x int8 [M, K], w int8 [K, N], name) -> x w, int32 [M, N]; names are ``layers.0.wq`` ... and ``wcls``."""


@dataclasses.dataclass(frozen=True)
class QuantisedMatrix:
    """A weight matrix as the engine takes it.

    Members
    -------
    weights: int8 [K, N]
    scale: float32 [N]
        One per output channel: the real weight is about ``weights * scale``.
    """

    weights: Int8
    scale: Float


@dataclasses.dataclass(frozen=True)
class QuantisedCheckpoint:
    """Int8 weights and float32 norms of a model.

    Members
    -------
    shape: ModelShape
    matrices: dict of str to QuantisedMatrix
        Keys ``layers.0.wq`` ... ``layers.{L-1}.w3`` and ``wcls``.
    tok_emb: QuantisedMatrix
        The embedding, [dim, vocab_size]; the same object as ``wcls`` when shared.
    norms: dict of str to float32 array
        ``rms_att`` and ``rms_ffn`` [n_layers, dim], ``rms_final`` [dim].
    """

    shape: ModelShape
    matrices: dict[str, QuantisedMatrix]
    tok_emb: QuantisedMatrix
    norms: dict[str, Float]


def quantise_checkpoint(checkpoint: Checkpoint) -> QuantisedCheckpoint:
    """Int8 weights per output channel: ``scale = max|w| / 127``, rounded to nearest even."""
    shape = checkpoint.shape
    matrices = {f"layers.{layer}.{name}": _quantise(checkpoint[name][layer])
                for layer in range(shape.n_layers) for name in WEIGHTS}
    matrices["wcls"] = _quantise(checkpoint.classifier)
    tok_emb = matrices["wcls"] if shape.shared_classifier else _quantise(checkpoint["tok_emb"])
    return QuantisedCheckpoint(shape, matrices, tok_emb,
                               {n: checkpoint[n] for n in ("rms_att", "rms_ffn", "rms_final")})


def _quantise(matrix: Float) -> QuantisedMatrix:
    q, scale = exact.quantise(matrix)
    return QuantisedMatrix(np.ascontiguousarray(q.T), scale)


def _numpy_matmul(x: Int8, w: Int8, name: str) -> Int32:
    return exact.int_matmul(x, w)


class Int8Model:
    """A Llama-style model in integers.

    Parameters
    ----------
    checkpoint: QuantisedCheckpoint or Checkpoint
        A float32 checkpoint is quantised first.
    matmul: MatMul
        Called for every weight matrix; the place for the RTL engine, or for a recorder of operands.
    """

    def __init__(self, checkpoint: QuantisedCheckpoint | Checkpoint, matmul: MatMul = _numpy_matmul) -> None:
        if isinstance(checkpoint, Checkpoint):
            checkpoint = quantise_checkpoint(checkpoint)
        self.checkpoint = checkpoint
        self.shape: ModelShape = checkpoint.shape
        self.matmul = matmul
        self._cos, self._sin = (t[:, None, :] for t in rotary_tables(checkpoint.shape))
        self._score_scale = np.float32(1) / np.sqrt(np.float32(checkpoint.shape.head_dim))

    def new_cache(self) -> KVCache:
        """An empty cache of int8 keys and values."""
        return KVCache(self.shape, np.int8)

    def forward(self, tokens: NDArray[np.integer] | list[int], cache: KVCache) -> Float:
        """Logits of M tokens that follow what ``cache`` holds: float32 [M, vocab_size]; the cache grows by M.

        Raises
        ------
        SequenceError
            As :meth:`KVCache.claim`; the cache is as before.
        CheckpointError
            The weights lead to numbers that float32 cannot hold; the cache is as before.
        ValueError
            ``matmul`` returned something else than int32 [M, N].
        """
        ids, span = cache.claim(tokens)
        try:
            with np.errstate(over="raise", invalid="raise", divide="raise"):
                logits = self._logits(ids, span, cache)
        except FloatingPointError:
            raise CheckpointError("the weights lead to numbers that float32 cannot hold") from None
        cache.commit(span)
        return logits

    def _logits(self, ids: NDArray[np.int64], span: slice, cache: KVCache) -> Float:
        norms, emb, eps = self.checkpoint.norms, self.checkpoint.tok_emb, self.shape.norm_eps
        x = emb.weights.T[ids].astype(np.float32) * emb.scale[ids][:, None]
        for layer in range(self.shape.n_layers):
            name = f"layers.{layer}."
            h = exact.quantise(exact.rms_norm(x, norms["rms_att"][layer], eps))
            q, k, v = (self._linear(h, name + n) for n in ("wq", "wk", "wv"))
            x = x + self._linear(exact.quantise(self._attention(q, k, v, layer, span, cache)), name + "wo")
            h = exact.quantise(exact.rms_norm(x, norms["rms_ffn"][layer], eps))
            gated = exact.silu(self._linear(h, name + "w1")) * self._linear(h, name + "w3")
            x = x + self._linear(exact.quantise(gated), name + "w2")
        return self._linear(exact.quantise(exact.rms_norm(x, norms["rms_final"], eps)), "wcls")

    def _linear(self, x: tuple[Int8, Float], name: str) -> Float:
        """Quantised rows through a weight matrix, back to float32."""
        rows, scale = x
        matrix = self.checkpoint.matrices[name]
        acc = self.matmul(rows, matrix.weights, name)
        wanted = (len(rows), len(matrix.scale))
        if acc.dtype != np.int32 or acc.shape != wanted:
            raise ValueError(f"matmul of {name} must return int32 {list(wanted)}, "
                             f"not {acc.dtype} {list(acc.shape)}")
        return exact.dequantise(acc, scale, matrix.scale)

    def _attention(self, q: Float, k: Float, v: Float, layer: int, span: slice, cache: KVCache) -> Float:
        """Grouped-query attention over the int8 cache, after writing the new positions: float32 [M, dim]."""
        s, rows = self.shape, span.stop - span.start
        heads, cos, sin = (rows, -1, s.head_dim), self._cos[span], self._sin[span]
        q, k = (exact.rotate(x.reshape(heads), cos, sin) for x in (q, k))
        q8, q_scale = exact.quantise(q)
        cache.k[layer, span], cache.k_scale[layer, span] = exact.quantise(k)
        cache.v[layer, span], cache.v_scale[layer, span] = exact.quantise(v.reshape(heads))
        # keys and values [kv heads, T, head_dim], their scales [kv heads, T]
        k8, v8 = (c[layer, :span.stop].transpose(1, 0, 2) for c in (cache.k, cache.v))
        k_scale, v_scale = (c[layer, :span.stop].T for c in (cache.k_scale, cache.v_scale))

        # query heads that share a kv head stand together: [kv heads, M x group, d]
        grouped = q8.reshape(rows, s.n_kv_heads, -1, s.head_dim).transpose(1, 0, 2, 3)
        scores = exact.int_matmul(grouped.reshape(s.n_kv_heads, -1, s.head_dim), k8.transpose(0, 2, 1))
        row_scale = (q_scale * self._score_scale).reshape(rows, s.n_kv_heads, -1).transpose(1, 0, 2)
        scaled = scores.astype(np.float32) * row_scale.reshape(s.n_kv_heads, -1, 1) * k_scale[:, None, :]

        position = np.repeat(np.arange(span.start, span.stop), s.n_heads // s.n_kv_heads)
        p = exact.softmax(scaled, np.broadcast_to(np.arange(span.stop) <= position[:, None], scaled.shape))
        p8, p_scale = exact.quantise(p * v_scale[:, None, :])
        mixed = exact.int_matmul(p8, v8).astype(np.float32) * p_scale[..., None]
        return mixed.reshape(s.n_kv_heads, rows, -1, s.head_dim).transpose(1, 0, 2, 3).reshape(rows, s.dim)
