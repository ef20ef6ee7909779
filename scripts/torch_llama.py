"""A Llama-style model in PyTorch, to train the shipped pair; arithmetic as in ``sim_models.transformer``."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from sim_models.transformer.checkpoint import WEIGHTS, Checkpoint, ModelShape, rotary_tables

__all__ = ["TorchLlama"]

Cache = list[tuple[Tensor, Tensor]]


class TorchLlama(nn.Module):
    """RMSNorm, rotary positions, grouped-query attention, SwiGLU; the classifier shares the embedding.

    Parameters
    ----------
    shape: ModelShape
        Sizes; ``shared_classifier`` must be true.
    """

    def __init__(self, shape: ModelShape) -> None:
        super().__init__()
        self.shape = shape
        self.weights = nn.ParameterDict()
        for name, size in shape.arrays().items():
            if name.startswith("rms"):
                self.weights[name] = nn.Parameter(torch.ones(size))
                continue
            scale = 1 / math.sqrt(size[-1])
            if name in ("wo", "w2"):
                scale /= math.sqrt(2 * shape.n_layers)      # keeps the residual stream's variance near 1
            self.weights[name] = nn.Parameter(torch.randn(size) * scale)
        cos, sin = rotary_tables(shape)
        self.cos, self.sin = torch.tensor(cos), torch.tensor(sin)

    def forward(self, tokens: Tensor, cache: Cache | None = None) -> Tensor:
        """Logits of ``tokens`` [batch, M]: float32 [batch, M, vocabulary].

        ``cache`` holds keys and values of earlier positions, one pair a layer, and is extended in place; an
        empty list begins one, afterwards M must be 1.
        """
        w, shape = self.weights, self.shape
        start = cache[0][0].shape[2] if cache else 0
        span = slice(start, start + tokens.shape[1])
        x = functional.embedding(tokens, w["tok_emb"])
        for layer in range(shape.n_layers):
            m = {n: w[n][layer] for n in WEIGHTS}
            x = x + self._attention(self._norm(x, w["rms_att"][layer]), m, layer, span, cache)
            h = self._norm(x, w["rms_ffn"][layer])
            x = x + (functional.silu(h @ m["w1"].T) * (h @ m["w3"].T)) @ m["w2"].T
        return self._norm(x, w["rms_final"]) @ w["tok_emb"].T

    def _norm(self, x: Tensor, weight: Tensor) -> Tensor:
        return functional.rms_norm(x, weight.shape, weight, self.shape.norm_eps)

    def _attention(self, x: Tensor, m: dict[str, Tensor], layer: int, span: slice,
                   cache: Cache | None) -> Tensor:
        q, k, v = (self._heads(x @ m[n].T) for n in ("wq", "wk", "wv"))
        q, k = self._rotate(q, span), self._rotate(k, span)
        if cache is not None:
            if layer < len(cache):
                k, v = torch.cat((cache[layer][0], k), 2), torch.cat((cache[layer][1], v), 2)
                cache[layer] = k, v
            else:
                cache.append((k, v))
        # a causal mask begins at position 0; a single token after others may see everything
        out = functional.scaled_dot_product_attention(q, k, v, is_causal=span.start == 0, enable_gqa=True)
        return out.transpose(1, 2).flatten(2) @ m["wo"].T

    def _heads(self, x: Tensor) -> Tensor:
        return x.unflatten(2, (-1, self.shape.head_dim)).transpose(1, 2)

    def _rotate(self, x: Tensor, span: slice) -> Tensor:
        cos, sin = self.cos[span], self.sin[span]
        even, odd = x[..., 0::2], x[..., 1::2]
        return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)

    @classmethod
    def load(cls, checkpoint: Checkpoint) -> "TorchLlama":
        """A model with the weights of ``checkpoint``."""
        model = cls(checkpoint.shape)
        with torch.no_grad():
            for name, parameter in model.weights.items():
                parameter.copy_(torch.tensor(checkpoint[name]))
        return model

    def checkpoint(self) -> Checkpoint:
        """The weights as numpy arrays."""
        return Checkpoint(self.shape, {n: p.detach().numpy().copy() for n, p in self.weights.items()})
