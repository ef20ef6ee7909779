"""The float32 forward pass: what the integer model and the hardware are compared with in quality.

Its matrix products go through BLAS, so a logit's last bits may depend on the number of rows; only
:mod:`sim_models.transformer.int8_model` is exact.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim_models.transformer.cache import KVCache
from sim_models.transformer.checkpoint import Checkpoint, ModelShape, rotary_tables

__all__ = ["FloatModel"]

Float = NDArray[Any]            # float32; numpy's stubs take a quotient of two float32 arrays for float64


class FloatModel:
    """A Llama-style model: RMSNorm, rotary positions, grouped-query attention, SwiGLU.

    Parameters
    ----------
    checkpoint: Checkpoint
    """

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.shape: ModelShape = checkpoint.shape
        self._w = checkpoint
        self._cos, self._sin = (t[:, None, :] for t in rotary_tables(checkpoint.shape))

    def new_cache(self) -> KVCache:
        """An empty cache."""
        return KVCache(self.shape, np.float32)

    def forward(self, tokens: NDArray[np.integer] | list[int], cache: KVCache) -> Float:
        """Logits of M tokens that follow what ``cache`` holds: float32 [M, vocab_size].

        Prefill (M = prompt), verification (M = drafts + 1) and decoding (M = 1) are the same call; the
        cache grows by M.

        Raises
        ------
        SequenceError
            As :meth:`KVCache.claim`; the cache is as before.
        """
        ids, span = cache.claim(tokens)
        w = self._w
        x = w["tok_emb"][ids]
        for layer in range(self.shape.n_layers):
            h = self._norm(x, w["rms_att"][layer])
            x = x + self._attention(h, layer, span, cache) @ w["wo"][layer].T
            h = self._norm(x, w["rms_ffn"][layer])
            gate = h @ w["w1"][layer].T
            with np.errstate(over="ignore"):                # exp(-gate) = inf gives the right limit, 0
                gate = gate / (1 + np.exp(-gate))
            x = x + (gate * (h @ w["w3"][layer].T)) @ w["w2"][layer].T
        cache.commit(span)
        return self._norm(x, w["rms_final"]) @ w.classifier.T

    def _norm(self, x: Float, weight: Float) -> Float:
        mean = np.mean(x * x, axis=1, keepdims=True)
        return x / np.sqrt(mean + np.float32(self.shape.norm_eps)) * weight

    def _attention(self, h: Float, layer: int, span: slice, cache: KVCache) -> Float:
        s, w = self.shape, self._w
        rows = span.stop - span.start
        q, k, v = ((h @ w[n][layer].T).reshape(rows, -1, s.head_dim) for n in ("wq", "wk", "wv"))
        q, cache.k[layer, span], cache.v[layer, span] = self._rotate(q, span), self._rotate(k, span), v
        k, v = cache.k[layer, :span.stop], cache.v[layer, :span.stop]           # [T, kv heads, head_dim]
        q = q.reshape(rows, s.n_kv_heads, -1, s.head_dim)
        scores = np.einsum("mgid,tgd->mgit", q, k) / np.float32(np.sqrt(s.head_dim))
        seen = np.arange(span.stop) <= np.arange(span.start, span.stop)[:, None]
        scores = np.where(seen[:, None, None, :], scores, np.float32(-np.inf))
        p = np.exp(scores - scores.max(axis=-1, keepdims=True))
        p /= p.sum(axis=-1, keepdims=True)
        return np.einsum("mgit,tgd->mgid", p, v).reshape(rows, s.dim)

    def _rotate(self, x: Float, span: slice) -> Float:
        cos, sin = self._cos[span], self._sin[span]
        even, odd = x[..., 0::2], x[..., 1::2]
        return np.stack((even * cos - odd * sin, even * sin + odd * cos), -1).reshape(x.shape)
