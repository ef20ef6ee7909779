"""The float forward pass equals Hugging Face's Llama with the same random weights."""

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from sim_models.transformer.checkpoint import Checkpoint, ModelShape
from sim_models.transformer.decoding import generate
from sim_models.transformer.float_model import FloatModel

NAMES = {"rms_att": "input_layernorm", "wq": "self_attn.q_proj", "wk": "self_attn.k_proj",
         "wv": "self_attn.v_proj", "wo": "self_attn.o_proj", "rms_ffn": "post_attention_layernorm",
         "w1": "mlp.gate_proj", "w2": "mlp.down_proj", "w3": "mlp.up_proj"}


def reference(shape: ModelShape, seed: int) -> LlamaForCausalLM:
    """A Llama with random weights, large enough that every part matters, and norms that are not one."""
    torch.manual_seed(seed)
    config = LlamaConfig(
        hidden_size=shape.dim, intermediate_size=shape.hidden_dim, num_hidden_layers=shape.n_layers,
        num_attention_heads=shape.n_heads, num_key_value_heads=shape.n_kv_heads, vocab_size=shape.vocab_size,
        max_position_embeddings=shape.max_seq_len, rms_norm_eps=shape.norm_eps, rope_theta=shape.rope_theta,
        tie_word_embeddings=shape.shared_classifier, attn_implementation="eager")
    model = LlamaForCausalLM(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(1 + 0.2 * torch.randn_like(parameter) if "norm" in name
                            else torch.randn_like(parameter) * 1.5 / parameter.shape[-1] ** 0.5)
    return model


def interleave(rows: np.ndarray, head_dim: int) -> np.ndarray:
    """Hugging Face turns elements i and i + d/2 of a head; put them side by side.

    This is the permutation that llama.cpp's converter applies, so GGUF files hold the result.
    """
    return rows.reshape(-1, 2, head_dim // 2, rows.shape[1]).swapaxes(1, 2).reshape(rows.shape)


def converted(model: LlamaForCausalLM, shape: ModelShape) -> Checkpoint:
    state = {name: value.numpy() for name, value in model.state_dict().items()}
    arrays = {"tok_emb": state["model.embed_tokens.weight"], "rms_final": state["model.norm.weight"]}
    for ours, theirs in NAMES.items():
        layers = [state[f"model.layers.{i}.{theirs}.weight"] for i in range(shape.n_layers)]
        if ours in ("wq", "wk"):
            layers = [interleave(rows, shape.head_dim) for rows in layers]
        arrays[ours] = np.stack(layers)
    if not shape.shared_classifier:
        arrays["wcls"] = state["lm_head.weight"]
    return Checkpoint(shape, arrays)


SHAPES = {
    "gqa-shared": ModelShape(dim=48, hidden_dim=80, n_layers=2, n_heads=6, n_kv_heads=2, vocab_size=64,
                             max_seq_len=40),
    "gqa-unshared": ModelShape(dim=64, hidden_dim=172, n_layers=3, n_heads=8, n_kv_heads=4, vocab_size=96,
                               max_seq_len=40, shared_classifier=False, rope_theta=100000.0, norm_eps=1e-6),
    "mha-shared": ModelShape(dim=32, hidden_dim=40, n_layers=2, n_heads=4, n_kv_heads=4, vocab_size=64,
                             max_seq_len=40),
    "mha-unshared": ModelShape(dim=32, hidden_dim=72, n_layers=1, n_heads=2, n_kv_heads=2, vocab_size=64,
                               max_seq_len=40, shared_classifier=False),
    "one-kv-head": ModelShape(dim=32, hidden_dim=72, n_layers=2, n_heads=4, n_kv_heads=1, vocab_size=64,
                              max_seq_len=40),
}


@pytest.mark.parametrize("name", SHAPES)
def test_logits_equal_hugging_face(name: str) -> None:
    shape = SHAPES[name]
    theirs = reference(shape, 11)
    ours = FloatModel(converted(theirs, shape))
    tokens = np.random.default_rng(12).integers(0, shape.vocab_size, shape.max_seq_len)
    with torch.no_grad():
        wanted = theirs(torch.from_numpy(tokens)[None]).logits[0].numpy()
    assert np.abs(wanted).max() > 1
    cache = ours.new_cache()
    got = [ours.forward(tokens[:17], cache), ours.forward(tokens[17:26], cache)]
    got += [ours.forward(tokens[i:i + 1], cache) for i in range(26, len(tokens))]
    np.testing.assert_allclose(np.concatenate(got), wanted, rtol=0, atol=2e-5 * np.abs(wanted).max())


def test_greedy_text_equals_hugging_face() -> None:
    shape = SHAPES["gqa-shared"]
    theirs = reference(shape, 21)
    prompt = [1, 5, 9, 30]
    with torch.no_grad():
        wanted = theirs.generate(torch.tensor([prompt]), max_new_tokens=30, do_sample=False,
                                 eos_token_id=None)
    assert generate(FloatModel(converted(theirs, shape)), prompt, 30) == wanted[0, len(prompt):].tolist()
