"""The Llama model and the vocabulary in a GGUF file.

llama.cpp's converter permutes the rows of q and k so that rotary positions turn neighbouring elements; llama2.c's
order is the same, so the tensors are taken as they are. A key that changes the arithmetic or the tokens is done, or
refused by name: what is not in the lists below is not known to be harmless. Source: the GGUF specification and
llama.cpp's reading of the keys.
"""

import dataclasses
import os
from typing import Any

import numpy as np

from sim_models.transformer.checkpoint import Checkpoint, CheckpointError, ModelShape, check_finite
from sim_models.transformer.formats.files import named
from sim_models.transformer.formats.gguf import GGUF, read_gguf, shown
from sim_models.transformer.tokenizer import BOS, EOS, UNKNOWN, Tokenizer, is_byte

__all__ = ["gguf_checkpoint", "gguf_shape", "gguf_tokenizer", "gguf_verified", "load_gguf"]

_MODEL, _VOCABULARY = "llama.", "tokenizer.ggml."
_DONE = {
    "vocab_size", "context_length", "embedding_length", "block_count", "feed_forward_length", "attention.head_count",
    "attention.head_count_kv", "attention.key_length", "attention.value_length", "attention.layer_norm_rms_epsilon",
    "rope.dimension_count", "rope.freq_base"}
"""Keys of the model that the shape is made of, or that must agree with it."""
_NEUTRAL: dict[str, Any] = {
    "attention.causal": True, "attention.clamp_kqv": 0.0, "attention.max_alibi_bias": 0.0,
    "attention.sliding_window": 0, "attn_logit_softcapping": 0.0, "embedding_scale": 1.0, "expert_count": 0,
    "expert_shared_count": 0, "expert_used_count": 0, "final_logit_softcapping": 0.0, "logit_scale": 1.0,
    "pooling_type": 0, "residual_scale": 1.0, "rope.scale_linear": 1.0, "rope.scaling.attn_factor": 1.0,
    "rope.scaling.factor": 1.0, "rope.scaling.type": "none", "tensor_data_layout": "Meta AI original pth",
    "use_parallel_residual": False}
"""Keys that change the arithmetic, with the one value that does not."""
_HARMLESS = {"rope.scaling.finetuned"}
"""Keys that say where a model comes from."""

_VOCABULARY_DONE = {"model", "tokens", "scores", "token_type", "bos_token_id", "eos_token_id", "unknown_token_id",
                    "add_bos_token", "add_space_prefix"}
_VOCABULARY_NEUTRAL: dict[str, Any] = {"add_eos_token": False, "add_sep_token": False,
                                       "remove_extra_whitespaces": False}
_VOCABULARY_HARMLESS = {
    "pre", "merges", "added_tokens", "token_type_count", *(f"{name}_token_id" for name in (
        "eot", "eom", "seperator", "separator", "padding", "cls", "mask", "prefix", "suffix", "middle", "fim_pre",
        "fim_suf", "fim_mid", "fim_pad", "fim_rep", "fim_sep"))}
"""Keys of other tokenizers, and names of tokens that nobody looks for."""
_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED, _UNUSED, _BYTE = range(1, 7)

_LAYER = {"rms_att": "attn_norm", "wq": "attn_q", "wk": "attn_k", "wv": "attn_v", "wo": "attn_output",
          "rms_ffn": "ffn_norm", "w1": "ffn_gate", "w2": "ffn_down", "w3": "ffn_up"}
_WHOLE = {"tok_emb": "token_embd", "rms_final": "output_norm", "wcls": "output"}


def load_gguf(path: str | os.PathLike[str]) -> Checkpoint:
    """Read the model of a GGUF file; raises as :func:`read_gguf` and :func:`gguf_checkpoint`."""
    file = read_gguf(path)
    with named(path):
        return gguf_checkpoint(file)


def gguf_checkpoint(file: GGUF, *, layers: int | None = None, tokens: int | None = None) -> Checkpoint:
    """The model, or the part of it that has its first ``layers`` and knows its first ``tokens``.

    Raises
    ------
    CheckpointError
        Not a plain llama: another architecture, a key that changes the arithmetic, missing or unknown tensors. Or the
        model has fewer layers or tokens than are wanted.
    """
    whole = gguf_shape(file)
    for name, wanted, there in (("layers", layers, whole.n_layers), ("tokens", tokens, whole.vocab_size)):
        if wanted is not None and not 1 <= wanted <= there:
            raise CheckpointError(f"from 1 to {there} {name} of the model were wanted, not {wanted}")
    part = dataclasses.replace(whole, n_layers=layers or whole.n_layers, vocab_size=tokens or whole.vocab_size)
    arrays = {}
    for name, size in whole.arrays().items():
        theirs = _tensors(name, part.n_layers)
        if name in _LAYER:
            arrays[name] = np.empty((part.n_layers, *size[1:]), np.float32)
            for array, tensor in zip(arrays[name], theirs, strict=True):
                array[...] = file.tensor(tensor, size[1:])
        else:
            arrays[name] = file.tensor(theirs[0], size, None if name == "rms_final" else tokens)
    return Checkpoint(part, arrays)


def gguf_verified(file: GGUF) -> ModelShape:
    """The model's shape, after a look at all weights, one tensor at a time.

    Raises
    ------
    CheckpointError
        As :func:`gguf_checkpoint`.
    """
    shape = gguf_shape(file)
    for name, size in shape.arrays().items():
        for tensor in _tensors(name, shape.n_layers):
            check_finite(f"tensor {tensor}", file.tensor(tensor, size[1:] if name in _LAYER else size))
    return shape


def _tensors(name: str, layers: int) -> list[str]:
    """Where an array of a :class:`Checkpoint` stands in the file."""
    if name in _LAYER:
        return [f"blk.{layer}.{_LAYER[name]}.weight" for layer in range(layers)]
    return [f"{_WHOLE[name]}.weight"]


def gguf_shape(file: GGUF) -> ModelShape:
    """The model's shape; no weight is looked at.

    Raises
    ------
    CheckpointError
        As :func:`gguf_checkpoint`.
    """
    metadata = file.metadata
    _check_whole(file)
    architecture = metadata.get("general.architecture")
    if architecture != "llama":
        raise CheckpointError(f"general.architecture must be llama, not {shown(architecture)}")
    heads = _number(file, "attention.head_count", int)
    shape = ModelShape(
        dim=_number(file, "embedding_length", int), hidden_dim=_number(file, "feed_forward_length", int),
        n_layers=_number(file, "block_count", int), n_heads=heads,
        n_kv_heads=_number(file, "attention.head_count_kv", int, heads), vocab_size=_rows(file),
        max_seq_len=_number(file, "context_length", int),
        shared_classifier="output.weight" not in file.tensors,
        norm_eps=_number(file, "attention.layer_norm_rms_epsilon", float),
        rope_theta=_number(file, "rope.freq_base", float, 10000.0))
    for key in ("rope.dimension_count", "attention.key_length", "attention.value_length"):
        got = _number(file, key, int, shape.head_dim)
        if got != shape.head_dim:
            raise CheckpointError(f"llama.{key} must be {shape.head_dim}, the size of a head, not {got}")
    tokens = metadata.get(f"{_VOCABULARY}tokens")
    for key, got in ((f"{_MODEL}vocab_size", _number(file, "vocab_size", int, shape.vocab_size)),
                     (f"{_VOCABULARY}tokens", len(tokens) if isinstance(tokens, list) else shape.vocab_size)):
        if got != shape.vocab_size:
            what = f"{got}" if key.startswith(_MODEL) else f"{got} tokens"
            raise CheckpointError(f"{key} must agree with the embedding of {shape.vocab_size} rows, not be {what}")
    scale = float(1 / np.sqrt(np.float32(shape.head_dim)))
    _check_keys(file, _MODEL, _DONE | _HARMLESS, _NEUTRAL | {
        "attention.scale": scale, "rope.scaling.original_context_length": shape.max_seq_len})
    known = {theirs for name in shape.arrays() for theirs in _tensors(name, shape.n_layers)}
    for name in file.tensors:
        if name not in known:
            raise CheckpointError(f"tensor {shown(name)} is not one of a plain llama's")
    return shape


def _check_whole(file: GGUF) -> None:
    """Refuse a part of a model, what is no model, and blocks of an older layout."""
    count, number = (file.metadata.get(f"split.{key}") for key in ("count", "no"))
    if type(count) is int and count > 1:
        part = f"part {number + 1}" if type(number) is int else "a part"
        raise CheckpointError(f"this is {part} of {count} of a split model: merge its parts into one file first")
    kind = file.metadata.get("general.type", "model")
    if kind != "model":
        raise CheckpointError(f"general.type must be model, not {shown(kind)}")
    version = file.metadata.get("general.quantization_version", 2)
    if file.quantised and version != 2:
        raise CheckpointError(f"general.quantization_version must be 2, not {shown(version)}")


def _rows(file: GGUF) -> int:
    """Rows of the embedding."""
    shape = file.shape("token_embd.weight")
    return shape[-2] if len(shape) > 1 else 1


def _number(file: GGUF, key: str, kind: type, default: Any = None) -> Any:
    value = file.metadata.get(_MODEL + key, default)
    if value is None:
        raise CheckpointError(f"the key {_MODEL}{key} is missing")
    if type(value) is not kind:
        what = "an integer" if kind is int else "a float"
        raise CheckpointError(f"{_MODEL}{key} must be {what}, not {shown(repr(value))}")
    return value


def _check_keys(file: GGUF, space: str, taken: set[str], neutral: dict[str, Any]) -> None:
    """Refuse every key of a name space that is not taken, unless it has a value that changes nothing."""
    for key, value in file.metadata.items():
        name = key.removeprefix(space)
        if name == key or name in taken:
            continue
        if name not in neutral:
            raise CheckpointError(f"the key {shown(key)} is not known, and may change what the model computes")
        if not _equal(value, neutral[name]):
            raise CheckpointError(f"{key} must be {_said(neutral[name])}, as nothing else is done here, "
                                  f"not {_said(value)}")


def _equal(value: Any, wanted: Any) -> bool:
    """Equal as float32, which files hold."""
    if isinstance(wanted, bool | str):
        return type(value) is type(wanted) and value == wanted
    with np.errstate(over="ignore"):
        return type(value) in (int, float) and np.float32(value) == np.float32(wanted)


def _said(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else shown(value)


def gguf_tokenizer(file: GGUF) -> Tokenizer:
    """The vocabulary.

    Raises
    ------
    CheckpointError
        The file has none, or one of another kind than llama's (pieces with scores, BOS 1 and EOS 2), or a key that
        changes the tokens of a text in a way that is not done here.
    """
    kind = file.metadata.get(f"{_VOCABULARY}model")
    if kind is None:
        raise CheckpointError("the file has no tokenizer")
    if kind == "gpt2":
        raise CheckpointError("the tokenizer is byte-level BPE (tokenizer.ggml.model is gpt2), which is not read "
                              "yet, only llama's pieces with scores are")
    if kind != "llama":
        raise CheckpointError(f"{_VOCABULARY}model must be llama, not {shown(kind)}")
    _check_keys(file, _VOCABULARY, _VOCABULARY_DONE | _VOCABULARY_HARMLESS, _VOCABULARY_NEUTRAL)
    for name, token in (("unknown", UNKNOWN), ("bos", BOS), ("eos", EOS)):
        got = file.metadata.get(f"{_VOCABULARY}{name}_token_id", token)
        if type(got) is not int or got != token:
            raise CheckpointError(f"{_VOCABULARY}{name}_token_id must be {token}, not {shown(got)}")
    texts = file.metadata.get(f"{_VOCABULARY}tokens")
    if not isinstance(texts, list) or not all(isinstance(t, str) for t in texts):
        raise CheckpointError(f"{_VOCABULARY}tokens must be an array of strings")
    pieces = [t.replace("▁", " ").encode("utf-8", "surrogateescape") for t in texts]
    scores = file.metadata.get(f"{_VOCABULARY}scores")
    if not isinstance(scores, np.ndarray) or scores.dtype.kind != "f":
        raise CheckpointError(f"{_VOCABULARY}scores must be an array of floats")
    kinds = _token_types(file, pieces)
    return Tokenizer(
        pieces, scores.astype(np.float32), begin=_flag(file, "add_bos_token"), space=_flag(file, "add_space_prefix"),
        control=[t for t, kind in enumerate(kinds) if kind in (_UNKNOWN, _CONTROL, _UNUSED)],
        whole=[t for t, kind in enumerate(kinds) if kind == _USER_DEFINED])


def _flag(file: GGUF, key: str) -> bool:
    value = file.metadata.get(_VOCABULARY + key, True)
    if not isinstance(value, bool):
        raise CheckpointError(f"{_VOCABULARY}{key} must be true or false, not {shown(value)}")
    return value


def _token_types(file: GGUF, pieces: list[bytes]) -> list[int]:
    """What each token is; without the key, none is special but 0 to 2 and those that spell a byte."""
    types = file.metadata.get(f"{_VOCABULARY}token_type")
    if types is None:
        return []
    if not isinstance(types, np.ndarray) or types.dtype.kind not in "iu" or len(types) != len(pieces):
        raise CheckpointError(f"{_VOCABULARY}token_type must be an array of integers, one for each of {len(pieces)} "
                              f"tokens")
    for token, (kind, piece) in enumerate(zip(types.tolist(), pieces, strict=True)):
        if not _NORMAL <= kind <= _BYTE:
            raise CheckpointError(f"{_VOCABULARY}token_type must be from 1 to 6, token {token} has {kind}")
        if (kind == _BYTE) != is_byte(piece):
            raise CheckpointError(f"{_VOCABULARY}token_type must be 6 where a piece spells a byte, and only there: "
                                  f"token {token}, {piece!r}, has {kind}")
    return types.tolist()
