"""GGUF files for tests, written by the ``gguf`` package or field by field."""

import struct
from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
import pytest
from gguf.quants import quantize

from sim_models.transformer.checkpoint import Checkpoint, CheckpointError, ModelShape
from sim_models.transformer.tokenizer import byte_pieces

__all__ = ["EPS", "KINDS", "PIECES", "SHAPE", "SHARED", "Edit", "add_vocabulary", "header", "nothing", "refusal",
           "tensor", "text", "value", "write"]

EPS = float(np.float32(1e-6))           # the file holds a float32
SHAPE = ModelShape(dim=32, hidden_dim=64, n_layers=2, n_heads=4, n_kv_heads=2, vocab_size=288,
                   max_seq_len=16, shared_classifier=False, norm_eps=EPS, rope_theta=50000.0)
SHARED = ModelShape(dim=32, hidden_dim=64, n_layers=2, n_heads=4, n_kv_heads=4, vocab_size=288,
                    max_seq_len=16, norm_eps=EPS)
LAYER = {"rms_att": "attn_norm", "wq": "attn_q", "wk": "attn_k", "wv": "attn_v", "wo": "attn_output",
         "rms_ffn": "ffn_norm", "w1": "ffn_gate", "w2": "ffn_down", "w3": "ffn_up"}
KINDS = gguf.GGMLQuantizationType
PIECES = [p.decode() for p in byte_pieces()] + [chr(ord("a") + i) for i in range(26)] + ["▁", "▁a", "ab"]

Edit = Callable[[gguf.GGUFWriter], None]


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(CheckpointError) as caught:
        call()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def nothing(writer: gguf.GGUFWriter) -> None:
    """Add nothing to a file."""


def write(path: Path, checkpoint: Checkpoint, kind: KINDS = KINDS.F32, *, edit: Edit = nothing,
          arch: str = "llama", leave_out: str = "", context: int | None = None,
          reshape: Callable[[str, np.ndarray], np.ndarray] = lambda _, values: values) -> Path:
    """A file of a model; ``edit`` adds keys or tensors, ``reshape`` sees every array before it is stored."""
    shape = checkpoint.shape
    writer = gguf.GGUFWriter(path, arch)
    writer.add_context_length(context or shape.max_seq_len)
    writer.add_embedding_length(shape.dim)
    writer.add_block_count(shape.n_layers)
    writer.add_feed_forward_length(shape.hidden_dim)
    writer.add_head_count(shape.n_heads)
    if shape.n_kv_heads != shape.n_heads:
        writer.add_head_count_kv(shape.n_kv_heads)
    writer.add_layer_norm_rms_eps(shape.norm_eps)
    if shape.rope_theta != 10000:
        writer.add_rope_freq_base(shape.rope_theta)
    edit(writer)
    tensors = {"token_embd.weight": checkpoint["tok_emb"], "output_norm.weight": checkpoint["rms_final"]}
    for ours, theirs in LAYER.items():
        tensors |= {f"blk.{i}.{theirs}.weight": layer for i, layer in enumerate(checkpoint[ours])}
    if not shape.shared_classifier:
        tensors["output.weight"] = checkpoint["wcls"]
    for name, values in tensors.items():
        if name == leave_out:
            continue
        if values.ndim == 1 or kind == KINDS.F32:
            writer.add_tensor(name, reshape(name, values))
        elif kind == KINDS.F16:
            writer.add_tensor(name, values.astype(np.float16))
        else:
            writer.add_tensor(name, quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def add_vocabulary(writer: gguf.GGUFWriter) -> None:
    """The tokenizer of :data:`PIECES`, as llama's files have it."""
    writer.add_tokenizer_model("llama")
    writer.add_token_list(PIECES)
    writer.add_token_scores([float(-i) for i in range(len(PIECES))])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)


def header(*, magic: bytes = b"GGUF", version: int = 3, tensors: int = 0, keys: int = 0,
           body: bytes = b"") -> bytes:
    """The first fields of a file, and what follows."""
    return magic + struct.pack("<IQQ", version, tensors, keys) + body


def text(content: bytes) -> bytes:
    """A string."""
    return struct.pack("<Q", len(content)) + content


def value(key: bytes, kind: int, content: bytes) -> bytes:
    """A key with its value."""
    return text(key) + struct.pack("<I", kind) + content


def tensor(name: bytes = b"t", dims: tuple[int, ...] = (32,), kind: int = 0, offset: int = 0) -> bytes:
    """The description of a tensor."""
    return text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, offset)
