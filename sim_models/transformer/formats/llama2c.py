"""The files of llama2.c: checkpoints of version 0, and ``tokenizer.bin``.

A checkpoint is a header of seven little-endian int32 (dim, hidden_dim, n_layers, n_heads, n_kv_heads, vocab_size,
max_seq_len) and float32 arrays in the order of :meth:`ModelShape.arrays`, with two rotary tables before the
classifier. A negative vocab_size says that the classifier does not share the embedding's weights. It means an epsilon
of 1e-5 and a rotary base of 10000.

A ``tokenizer.bin`` holds the length of the longest piece (int32) and, per token, its score (float32), its length
(int32) and its bytes.
"""

import math
import os
import struct

import numpy as np
from numpy.typing import NDArray

from sim_models.transformer.checkpoint import Checkpoint, CheckpointError, ModelShape, rotary_tables
from sim_models.transformer.formats.files import Raw, map_file, named, write_file
from sim_models.transformer.tokenizer import Tokenizer

__all__ = ["HeaderError", "load_llama2c", "load_tokenizer", "parse_llama2c", "parse_tokenizer", "save_llama2c",
           "save_tokenizer"]

Float = NDArray[np.float32]

_HEADER = struct.Struct("<7i")
_OTHERS = {b"GGUF": "a GGUF file", b"24ka": "a llama2.c file of version 1 or 2", b"PK\x03\x04": "a PyTorch file",
           b"lmgg": "a GGML file", b"fmgg": "a GGML file", b"tjgg": "a GGML file"}
"""First bytes of files that are taken for llama2.c's."""


class HeaderError(CheckpointError):
    """The first bytes cannot be those of a file of this format."""


def load_llama2c(path: str | os.PathLike[str]) -> Checkpoint:
    """Read a checkpoint.

    Raises
    ------
    CheckpointError
        The file cannot be read, its header is not sensible, its length is not exactly what the header says,
        a weight is not finite, or its rotary tables are not those of base 10000.
    """
    raw = map_file(path)
    with named(path):
        return parse_llama2c(raw)


def parse_llama2c(raw: Raw, copy: bool = True) -> Checkpoint:
    """Read a checkpoint from bytes; raises as :func:`load_llama2c`, and :class:`HeaderError` for another format.

    Parameters
    ----------
    copy:
        Otherwise the weights stay in ``raw``, and are what becomes of it.
    """
    shape = _header(raw)
    table = (shape.max_seq_len, shape.head_dim // 2)
    sizes = list(shape.arrays().items())
    at = len(sizes) if shape.shared_classifier else len(sizes) - 1
    sizes[at:at] = [("freq_cos", table), ("freq_sin", table)]
    wanted = _HEADER.size + 4 * sum(math.prod(size) for _, size in sizes)
    if len(raw) != wanted:
        raise CheckpointError(f"the header asks for {wanted} bytes, this file has {len(raw)}")
    arrays, offset = {}, _HEADER.size
    for name, size in sizes:
        arrays[name] = np.frombuffer(raw, "<f4", math.prod(size), offset).reshape(size).astype(np.float32, copy=copy)
        offset += 4 * math.prod(size)
    for name, wanted_table in zip(("freq_cos", "freq_sin"), rotary_tables(shape), strict=True):
        _check_rotary(name, arrays.pop(name), wanted_table)
    return Checkpoint(shape, arrays)


def _header(raw: Raw) -> ModelShape:
    if len(raw) < _HEADER.size:
        raise HeaderError(f"the header of a llama2.c file has {_HEADER.size} bytes, this file {len(raw)}")
    if raw[:4] in _OTHERS:
        raise HeaderError(f"{_OTHERS[raw[:4]]} starts with {raw[:4]!r}, a llama2.c file of version 0 does not")
    dim, hidden, layers, heads, kv_heads, vocab, seq = _HEADER.unpack(raw[:_HEADER.size])
    try:
        return ModelShape(dim=dim, hidden_dim=hidden, n_layers=layers, n_heads=heads, n_kv_heads=kv_heads,
                          vocab_size=abs(vocab), max_seq_len=seq, shared_classifier=vocab > 0)
    except CheckpointError as error:
        raise HeaderError(str(error)) from None


def _check_rotary(name: str, got: Float, want: Float) -> None:
    # float32 angles (as PyTorch makes them) are wrong by up to half an ulp of the angle: seq * 2**-24
    allowed = 1e-6 + len(want) * 2.0 ** -23
    bad = np.argwhere(~(np.abs(got - want) <= allowed))
    if len(bad):
        where = tuple(int(i) for i in bad[0])
        raise CheckpointError(f"{name} must be the table of base 10000, {want[where]:.6g} at {list(where)}, "
                              f"not {got[where]:.6g}")


def save_llama2c(path: str | os.PathLike[str], checkpoint: Checkpoint) -> None:
    """Write a checkpoint; whole or not at all.

    Raises
    ------
    CheckpointError
        The shape has an epsilon or rotary base that the format cannot say, or the file cannot be written.
    """
    shape = checkpoint.shape
    # models compute with the epsilon in float32, and GGUF files hold it so
    for name, value, fixed in (("norm_eps", np.float32(shape.norm_eps), np.float32(1e-5)),
                               ("rope_theta", shape.rope_theta, 10000.0)):
        if value != fixed:
            raise CheckpointError(f"a llama2.c file means {name} = {fixed:g}, not {value:g}")
    vocab = shape.vocab_size if shape.shared_classifier else -shape.vocab_size
    parts = [_HEADER.pack(shape.dim, shape.hidden_dim, shape.n_layers, shape.n_heads, shape.n_kv_heads, vocab,
                          shape.max_seq_len)]
    parts += [checkpoint[n].astype("<f4").tobytes() for n in shape.arrays() if n != "wcls"]
    parts += [t.astype("<f4").tobytes() for t in rotary_tables(shape)]
    if not shape.shared_classifier:
        parts.append(checkpoint["wcls"].astype("<f4").tobytes())
    write_file(path, b"".join(parts))


def load_tokenizer(path: str | os.PathLike[str], vocab_size: int) -> Tokenizer:
    """Read ``tokenizer.bin`` for a model with ``vocab_size`` tokens.

    Raises
    ------
    CheckpointError
        The file cannot be read, ends early, goes on, or has a piece longer than it says.
    """
    raw = map_file(path)
    with named(path):
        return parse_tokenizer(raw, vocab_size)


def parse_tokenizer(raw: Raw, vocab_size: int) -> Tokenizer:
    """Read a tokenizer from bytes; raises as :func:`load_tokenizer`, and :class:`HeaderError` for another format."""
    if len(raw) < 4:
        raise HeaderError(f"a tokenizer.bin has at least 4 bytes, this file has {len(raw)}")
    longest = struct.unpack("<i", raw[:4])[0]
    if not 1 <= longest <= len(raw):
        raise HeaderError(f"the longest piece of a tokenizer.bin must have from 1 byte to as many as the file, "
                          f"{len(raw)}, not {longest}")
    at, pieces, scores = 4, [], []
    for token in range(vocab_size):
        if at + 8 > len(raw):
            raise CheckpointError(f"{vocab_size} tokens are wanted, the file ends in token {token}")
        score, length = struct.unpack("<fi", raw[at:at + 8])
        at += 8
        if not 1 <= length <= longest:
            raise CheckpointError(f"a piece must have from 1 to {longest} bytes, token {token} says {length}")
        if at + length > len(raw):
            raise CheckpointError(f"{vocab_size} tokens are wanted, the file ends in token {token}")
        pieces.append(raw[at:at + length])
        scores.append(score)
        at += length
    if at != len(raw):
        raise CheckpointError(f"{vocab_size} tokens end at byte {at}, this file has {len(raw)}")
    return Tokenizer(pieces, np.array(scores, np.float32))


def save_tokenizer(path: str | os.PathLike[str], tokenizer: Tokenizer) -> None:
    """Write ``tokenizer.bin``; whole or not at all.

    Raises
    ------
    CheckpointError
        The vocabulary has rules that the format cannot say, or the file cannot be written.
    """
    if not tokenizer.is_plain:
        raise CheckpointError("a tokenizer.bin means a begin token and a space before each text, and no tokens of "
                              "other kinds")
    parts = [struct.pack("<i", max(map(len, tokenizer.pieces)))]
    for piece, score in zip(tokenizer.pieces, tokenizer.scores, strict=True):
        parts.append(struct.pack("<fi", score, len(piece)) + piece)
    write_file(path, b"".join(parts))
