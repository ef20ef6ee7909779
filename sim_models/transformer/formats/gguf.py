"""Llama models in GGUF files, versions 2 and 3: F32, F16, Q8_0, Q4_0 and Q4_1 tensors, dequantised.

Source: the GGUF specification and block formats of ggml. llama.cpp's converter permutes the rows of q and k
so that rotary positions turn neighbouring elements; llama2.c's order is the same, so the tensors are taken
as they are. What would change the arithmetic and is not done here (biases, experts, rotary scaling) is
refused, never ignored.
"""

import dataclasses
import os
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim_models.transformer.checkpoint import Checkpoint, CheckpointError, ModelShape, read_file
from sim_models.transformer.tokenizer import BOS, EOS, Tokenizer

__all__ = ["GGUF", "load_gguf", "read_gguf"]

Float = NDArray[np.float32]
Raw = NDArray[np.uint8]

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "B", 10: "Q", 11: "q", 12: "d"}
_BOOL, _STRING, _ARRAY = 7, 8, 9
_MAX_DIMS, _MAX_ELEMENTS = 4, 1 << 36


def _half(raw: Raw) -> Float:
    return np.ascontiguousarray(raw).view("<f2").astype(np.float32)


def _nibbles(raw: Raw) -> Float:
    """Sixteen bytes hold elements 0..15 in their low halves and 16..31 in their high halves."""
    return np.concatenate((raw & 15, raw >> 4), axis=1).astype(np.float32)


def _q8_0(block: Raw) -> Float:
    return _half(block[:, :2]) * np.ascontiguousarray(block[:, 2:]).view(np.int8).astype(np.float32)


def _q4_0(block: Raw) -> Float:
    return _half(block[:, :2]) * (_nibbles(block[:, 2:]) - 8)


def _q4_1(block: Raw) -> Float:
    return _half(block[:, :2]) * _nibbles(block[:, 4:]) + _half(block[:, 2:4])


@dataclasses.dataclass(frozen=True)
class _Format:
    name: str
    elements: int                           # per block
    size: int                               # bytes per block
    decode: Callable[[Raw], Float]          # uint8 [blocks, size] -> float32 [blocks, elements]


_FORMATS = {
    0: _Format("F32", 1, 4, lambda b: np.ascontiguousarray(b).view("<f4").astype(np.float32)),
    1: _Format("F16", 1, 2, _half),
    2: _Format("Q4_0", 32, 18, _q4_0),
    3: _Format("Q4_1", 32, 20, _q4_1),
    8: _Format("Q8_0", 32, 34, _q8_0),
}


@dataclasses.dataclass(frozen=True)
class _Tensor:
    shape: tuple[int, ...]                  # slowest dimension first
    format: _Format
    offset: int

    @property
    def size(self) -> int:
        return int(np.prod(self.shape)) // self.format.elements * self.format.size


def _shown(value: object) -> str:
    """Something from a file as a message can show it: one line, and not a long one."""
    text = value if isinstance(value, str) and value.isprintable() else repr(value)
    return text if len(text) <= 80 else f"{text[:80]}..."


class _Reader:
    """Little-endian fields, one after the other."""

    def __init__(self, raw: bytes) -> None:
        self.raw, self.at = raw, 0

    def take(self, size: int, what: str) -> bytes:
        if size > len(self.raw) - self.at:
            raise CheckpointError(f"{what} needs {size} bytes at {self.at}, the file has {len(self.raw)}")
        self.at += size
        return self.raw[self.at - size:self.at]

    def scalar(self, code: str, what: str) -> Any:
        return struct.unpack("<" + code, self.take(struct.calcsize("<" + code), what))[0]

    def string(self, what: str) -> str:
        raw = self.take(self.scalar("Q", what), what)
        try:
            return raw.decode()
        except UnicodeDecodeError:
            raise CheckpointError(f"{what} must be UTF-8 text, not {raw[:32]!r}") from None

    def value(self, kind: int, what: str) -> Any:
        if kind in _SCALARS:
            value = self.scalar(_SCALARS[kind], what)
            return bool(value) if kind == _BOOL else value
        if kind == _STRING:
            return self.string(what)
        if kind != _ARRAY:
            raise CheckpointError(f"{what} must have a value type from 0 to 12, not {kind}")
        inner, count = self.scalar("I", what), self.scalar("Q", what)
        if inner in _SCALARS:
            size = struct.calcsize("<" + _SCALARS[inner])
            return list(np.frombuffer(self.take(count * size, what), "<" + _SCALARS[inner]).tolist())
        if inner != _STRING:
            raise CheckpointError(f"{what} must be an array of scalars or strings, not of value type {inner}")
        return [self.string(what) for _ in range(count)]


class GGUF:
    """A parsed file.

    Members
    -------
    metadata: dict
        Keys and values as the file has them.
    tensors: list of str
        Names.
    """

    def __init__(self, raw: bytes) -> None:
        reader = _Reader(raw)
        magic = reader.take(4, "the magic number")
        if magic != b"GGUF":
            raise CheckpointError(f"a GGUF file starts with b'GGUF', this file with {magic!r}")
        version = reader.scalar("I", "the version")
        if version not in (2, 3):
            order = ", its byte order is big-endian" if version in (2 << 24, 3 << 24) else ""
            raise CheckpointError(f"the GGUF version must be 2 or 3, not {version}{order}")
        tensors, keys = reader.scalar("Q", "the number of tensors"), reader.scalar("Q", "the number of keys")
        self.metadata: dict[str, Any] = {}
        for _ in range(keys):
            key = reader.string("a key")
            if key in self.metadata:
                raise CheckpointError(f"the key {_shown(key)} is there twice")
            self.metadata[key] = reader.value(reader.scalar("I", _shown(key)), _shown(key))
        self._tensors: dict[str, _Tensor] = {}
        for _ in range(tensors):
            self._describe(reader)
        self._place(reader)

    def _describe(self, reader: _Reader) -> None:
        name = reader.string("a tensor's name")
        what = f"tensor {_shown(name)}"
        if name in self._tensors:
            raise CheckpointError(f"{what} is there twice")
        dims = reader.scalar("I", what)
        if not 1 <= dims <= _MAX_DIMS:
            raise CheckpointError(f"{what} must have from 1 to {_MAX_DIMS} dimensions, not {dims}")
        sizes = tuple(reader.scalar("Q", what) for _ in range(dims))
        elements = 1
        for size in sizes:
            elements *= size
        if not 1 <= elements <= _MAX_ELEMENTS:
            raise CheckpointError(f"{what} must have from 1 to 2**36 elements, "
                                  f"not {' x '.join(map(str, sizes))}")
        kind, offset = reader.scalar("I", what), reader.scalar("Q", what)
        if kind not in _FORMATS:
            known = ", ".join(f"{f.name} ({k})" for k, f in _FORMATS.items())
            raise CheckpointError(f"{what} must have one of the types {known}, not {kind}")
        if sizes[0] % _FORMATS[kind].elements:
            raise CheckpointError(f"{what} must have rows of a multiple of {_FORMATS[kind].elements} "
                                  f"elements for {_FORMATS[kind].name}, not {sizes[0]}")
        self._tensors[name] = _Tensor(sizes[::-1], _FORMATS[kind], offset)

    def _place(self, reader: _Reader) -> None:
        align = self.metadata.get("general.alignment", 32)
        if not isinstance(align, int) or align < 1 or align % 8:
            raise CheckpointError(f"general.alignment must be a multiple of 8, not {_shown(align)}")
        start = -(-reader.at // align) * align
        self._data = reader.raw[start:]
        for name, tensor in self._tensors.items():
            if tensor.offset % align:
                raise CheckpointError(f"tensor {_shown(name)} must have an offset of a multiple of {align}, "
                                      f"not {tensor.offset}")
            if tensor.offset + tensor.size > len(self._data):
                raise CheckpointError(f"tensor {_shown(name)} ends at byte {start + tensor.offset + tensor.size}, "
                                      f"the file has {len(reader.raw)}")

    @property
    def tensors(self) -> list[str]:
        """Names of the tensors."""
        return list(self._tensors)

    def tensor(self, name: str) -> Float:
        """A tensor, dequantised: float32, slowest dimension first."""
        if name not in self._tensors:
            raise CheckpointError(f"tensor {name} is missing")
        t = self._tensors[name]
        raw = np.frombuffer(self._data, np.uint8, t.size, t.offset).reshape(-1, t.format.size)
        with np.errstate(invalid="ignore"):         # a scale may be infinite: what comes of it is refused later
            return t.format.decode(raw).reshape(t.shape)

    def checkpoint(self, *, layers: int | None = None, tokens: int | None = None) -> Checkpoint:
        """The model, or the part of it that has its first ``layers`` and knows its first ``tokens``.

        Raises
        ------
        CheckpointError
            Not a plain llama: another architecture, missing or unknown tensors, a rotary variant. Or the model has
            fewer layers or tokens than are wanted.
        """
        shape = self._shape()
        names = _tensor_names(shape)
        known = {n for group in names.values() for n in ([group] if isinstance(group, str) else group)}
        for name in self._tensors:
            if name not in known:
                raise CheckpointError(f"tensor {_shown(name)} is not one of a plain llama's")
        part = dataclasses.replace(shape, n_layers=_part(layers, shape.n_layers, "layers"),
                                   vocab_size=_part(tokens, shape.vocab_size, "tokens"))
        names = _tensor_names(part)
        arrays = {n: self.tensor(g) if isinstance(g, str) else self._stack(g) for n, g in names.items()}
        for name in {"tok_emb", "wcls"} & set(arrays):
            arrays[name] = arrays[name][:part.vocab_size]
        return Checkpoint(part, arrays)

    def _stack(self, names: list[str]) -> Float:
        layers = [self.tensor(n) for n in names]
        for name, layer in zip(names, layers, strict=True):
            if layer.shape != layers[0].shape:
                raise CheckpointError(f"tensor {name} must have shape {list(layers[0].shape)} as {names[0]}, "
                                      f"not {list(layer.shape)}")
        return np.stack(layers)

    def _shape(self) -> ModelShape:
        architecture = self.metadata.get("general.architecture")
        if architecture != "llama":
            raise CheckpointError(f"general.architecture must be llama, not {_shown(architecture)}")
        heads = self._number("llama.attention.head_count", int)
        shape = ModelShape(
            dim=self._number("llama.embedding_length", int),
            hidden_dim=self._number("llama.feed_forward_length", int),
            n_layers=self._number("llama.block_count", int), n_heads=heads,
            n_kv_heads=self._number("llama.attention.head_count_kv", int, heads),
            vocab_size=self.tensor("token_embd.weight").shape[0],
            max_seq_len=self._number("llama.context_length", int),
            shared_classifier="output.weight" not in self._tensors,
            norm_eps=self._number("llama.attention.layer_norm_rms_epsilon", float),
            rope_theta=self._number("llama.rope.freq_base", float, 10000.0))
        for key in ("rope.dimension_count", "attention.key_length", "attention.value_length"):
            got = self._number(f"llama.{key}", int, shape.head_dim)
            if got != shape.head_dim:
                raise CheckpointError(f"llama.{key} must be {shape.head_dim}, the size of a head, not {got}")
        scaling = self.metadata.get("llama.rope.scaling.type", "none")
        if scaling != "none":
            raise CheckpointError(f"llama.rope.scaling.type must be none, not {_shown(scaling)}")
        return shape

    def _number(self, key: str, kind: type, default: Any = None) -> Any:
        value = self.metadata.get(key, default)
        if value is None:
            raise CheckpointError(f"the key {key} is missing")
        if type(value) is not kind:
            what = "an integer" if kind is int else "a float"
            raise CheckpointError(f"{key} must be {what}, not {_shown(repr(value))}")
        return value

    def tokenizer(self) -> Tokenizer:
        """The vocabulary.

        Raises
        ------
        CheckpointError
            The file has none, or one of another kind than llama's (pieces with scores, BOS 1 and EOS 2).
        """
        kind = self.metadata.get("tokenizer.ggml.model")
        if kind != "llama":
            raise CheckpointError(f"tokenizer.ggml.model must be llama, not {_shown(kind)}")
        for name, token in (("bos", BOS), ("eos", EOS)):
            got = self.metadata.get(f"tokenizer.ggml.{name}_token_id", token)
            if got != token:
                raise CheckpointError(f"tokenizer.ggml.{name}_token_id must be {token}, not {_shown(got)}")
        pieces = [t.replace("▁", " ").encode() for t in self._list("tokenizer.ggml.tokens", str)]
        return Tokenizer(pieces, np.array(self._list("tokenizer.ggml.scores", float), np.float32))

    def _list(self, key: str, kind: type) -> list[Any]:
        value = self.metadata.get(key)
        if not isinstance(value, list) or not all(isinstance(v, kind) for v in value):
            raise CheckpointError(f"{key} must be an array of {'strings' if kind is str else 'floats'}")
        return value


def _part(wanted: int | None, there: int, what: str) -> int:
    if wanted is not None and not 1 <= wanted <= there:
        raise CheckpointError(f"from 1 to {there} {what} of the model were wanted, not {wanted}")
    return there if wanted is None else wanted


def _tensor_names(shape: ModelShape) -> dict[str, str | list[str]]:
    """Where each array of a :class:`Checkpoint` stands in the file."""
    layered = {"rms_att": "attn_norm", "wq": "attn_q", "wk": "attn_k", "wv": "attn_v", "wo": "attn_output",
               "rms_ffn": "ffn_norm", "w1": "ffn_gate", "w2": "ffn_down", "w3": "ffn_up"}
    names: dict[str, str | list[str]] = {"tok_emb": "token_embd.weight", "rms_final": "output_norm.weight"}
    for ours, theirs in layered.items():
        names[ours] = [f"blk.{layer}.{theirs}.weight" for layer in range(shape.n_layers)]
    if not shape.shared_classifier:
        names["wcls"] = "output.weight"
    return names


def read_gguf(path: str | os.PathLike[str]) -> GGUF:
    """Parse a GGUF file.

    Raises
    ------
    CheckpointError
        The file cannot be read, ends early, or a field is not what it may be.
    """
    raw = read_file(path)
    try:
        return GGUF(raw)
    except CheckpointError as error:
        raise CheckpointError(f"{os.fspath(path)}: {error}") from None


def load_gguf(path: str | os.PathLike[str]) -> Checkpoint:
    """Read the model of a GGUF file; raises as :func:`read_gguf` and :meth:`GGUF.checkpoint`."""
    file = read_gguf(path)
    try:
        return file.checkpoint()
    except CheckpointError as error:
        raise CheckpointError(f"{os.fspath(path)}: {error}") from None
