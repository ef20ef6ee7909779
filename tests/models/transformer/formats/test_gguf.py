"""GGUF: files of the ``gguf`` package are read, blocks dequantise as there, wrong fields are refused."""

import os
import struct
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from gguf.quants import dequantize, quantize

from sim_models.transformer.checkpoint import Checkpoint, CheckpointError, ModelShape, random_checkpoint
from sim_models.transformer.formats.gguf import GGUF, read_gguf
from sim_models.transformer.formats.gguf_llama import load_gguf
from tests.models.transformer.formats.gguf_files import (
    KINDS,
    SHAPE,
    SHARED,
    header,
    refusal,
    tensor,
    text,
    value,
    write,
)


@pytest.fixture(scope="module")
def checkpoint() -> Checkpoint:
    return random_checkpoint(SHAPE, 1)


@pytest.mark.parametrize("shape", [SHAPE, SHARED], ids=["gqa-unshared", "mha-shared"])
def test_float32_files_are_read_as_they_are(tmp_path: Path, shape: ModelShape) -> None:
    """llama.cpp's order of q and k is llama2.c's: nothing is permuted (see test_transformer_hf)."""
    saved = random_checkpoint(shape, 2)
    loaded = load_gguf(write(tmp_path / "a.gguf", saved))
    assert loaded.shape == shape
    for name in shape.arrays():
        np.testing.assert_array_equal(loaded[name], saved[name], strict=True, err_msg=name)


@pytest.mark.parametrize("kind", [KINDS.F16, KINDS.Q8_0, KINDS.Q4_0, KINDS.Q4_1], ids=lambda k: k.name)
def test_blocks_dequantise_as_the_reference(tmp_path: Path, checkpoint: Checkpoint, kind: KINDS) -> None:
    loaded = load_gguf(write(tmp_path / "a.gguf", checkpoint, kind))
    for name in ("tok_emb", "wq", "w2", "wcls"):
        real = checkpoint[name].reshape(-1, checkpoint[name].shape[-1])
        wanted = dequantize(quantize(real, kind), kind).reshape(checkpoint[name].shape)
        np.testing.assert_array_equal(loaded[name], wanted, err_msg=name)
    np.testing.assert_array_equal(loaded["rms_att"], checkpoint["rms_att"])


def test_blocks_by_hand() -> None:
    """One row of 32 elements per format, from the written definition of the blocks."""
    half = struct.pack("<e", 0.5)
    nibbles = bytes(i | (15 - i) << 4 for i in range(16))
    low, high = np.arange(16, dtype=np.float32), np.arange(15, -1, -1, dtype=np.float32)
    cases = {8: (half + bytes(range(0, 256, 8)), np.arange(0, 256, 8).astype(np.uint8).astype(np.int8) * 0.5),
             2: (half + nibbles, (np.concatenate((low, high)) - 8) * 0.5),
             3: (half + struct.pack("<e", -3.0) + nibbles, np.concatenate((low, high)) * 0.5 - 3)}
    for kind, (block, wanted) in cases.items():
        head = b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + struct.pack("<Q", 1) + b"t"
        head += struct.pack("<IQIQ", 1, 32, kind, 0)
        raw = head + b"\xee" * (-len(head) % 32) + block
        np.testing.assert_array_equal(GGUF(raw).tensor("t"), wanted.astype(np.float32))


def test_version_2_is_read(tmp_path: Path, checkpoint: Checkpoint) -> None:
    raw = bytearray(write(tmp_path / "a.gguf", checkpoint).read_bytes())
    struct.pack_into("<I", raw, 4, 2)
    (tmp_path / "b.gguf").write_bytes(raw)
    np.testing.assert_array_equal(load_gguf(tmp_path / "b.gguf")["wq"], checkpoint["wq"])


def test_own_alignment(tmp_path: Path, checkpoint: Checkpoint) -> None:
    path = write(tmp_path / "a.gguf", checkpoint, edit=lambda w: w.add_custom_alignment(256))
    np.testing.assert_array_equal(load_gguf(path)["w3"], checkpoint["w3"])


def test_every_metadata_type_is_read(tmp_path: Path, checkpoint: Checkpoint) -> None:
    values = {"add_uint8": 200, "add_int8": -5, "add_uint16": 60000, "add_int16": -300, "add_uint32": 1 << 31,
              "add_int32": -7, "add_float32": 0.5, "add_bool": True, "add_string": "é", "add_uint64": 1 << 63,
              "add_int64": -1, "add_float64": 0.1, "add_array": ["a", "b"]}

    def edit(writer: gguf.GGUFWriter) -> None:
        for name, content in values.items():
            getattr(writer, name)("x." + name, content)
        writer.add_array("x.floats", [1.5, 2.5])
    metadata = read_gguf(write(tmp_path / "a.gguf", checkpoint, edit=edit)).metadata
    assert {k[2:]: v for k, v in metadata.items() if k.startswith("x.add")} == values
    assert metadata["x.floats"].tolist() == [1.5, 2.5]


def test_what_nobody_asks_for_refuses_nothing(tmp_path: Path, checkpoint: Checkpoint) -> None:
    """Arrays of arrays, truths, and strings that are no UTF-8, in keys that no model has."""
    def edit(writer: gguf.GGUFWriter) -> None:
        writer.add_array("x.nested", [[1, 2], [3]])
        writer.add_array("x.deep", [[["a"]], [["b", "c"]]])
        writer.add_array("x.truths", [True, False])
        writer.add_string("x.text", "abc")
    path = write(tmp_path / "a.gguf", checkpoint, edit=edit)
    path.write_bytes(path.read_bytes().replace(b"abc", b"a\xffc"))
    metadata = read_gguf(path).metadata
    assert [a.tolist() for a in metadata["x.nested"]] == [[1, 2], [3]]
    assert metadata["x.deep"] == [[["a"]], [["b", "c"]]]
    assert metadata["x.truths"].tolist() == [True, False]
    assert metadata["x.text"] == "a\udcffc"
    np.testing.assert_array_equal(load_gguf(path)["wq"], checkpoint["wq"])


@pytest.mark.parametrize(("change", "said"), [
    (lambda norm: norm.reshape(-1, 1), "32 x 1"), (lambda norm: norm.reshape(1, -1), "1 x 32"),
    (lambda norm: norm.reshape(1, -1, 1), "1 x 32 x 1")])
def test_dimensions_of_one_do_not_count(tmp_path: Path, checkpoint: Checkpoint, change: Any, said: str) -> None:
    path = write(tmp_path / "a.gguf", checkpoint, reshape=lambda name, a: change(a) if "norm" in name else a)
    loaded = load_gguf(path)
    for name in ("rms_att", "rms_ffn", "rms_final"):
        np.testing.assert_array_equal(loaded[name], checkpoint[name], strict=True)
    with pytest.raises(CheckpointError) as caught:
        read_gguf(path).tensor("output_norm.weight", (16, 2))
    assert str(caught.value) == f"tensor output_norm.weight must have shape 16 x 2, not {said}"


def test_a_tensor_that_is_not_there(tmp_path: Path, checkpoint: Checkpoint) -> None:
    file = read_gguf(write(tmp_path / "a.gguf", checkpoint))
    assert refusal(lambda: file.tensor("blk.9.attn_q.weight")) == "tensor blk.9.attn_q.weight is missing"


def test_a_file_of_a_hundred_gigabytes_is_not_read(tmp_path: Path, checkpoint: Checkpoint) -> None:
    path = write(tmp_path / "a.gguf", checkpoint)
    os.truncate(path, 100 << 30)
    np.testing.assert_array_equal(load_gguf(path)["wq"], checkpoint["wq"])


FIELDS: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "the magic number needs 4 bytes at 0, the file has 0"),
    "magic": (header(magic=b"GGML"), "a GGUF file starts with b'GGUF', this file with b'GGML'"),
    "version": (header(version=1), "the GGUF version must be 2 or 3, not 1"),
    "big-endian": (header(version=3 << 24),
                   "the GGUF version must be 2 or 3, not 50331648, its byte order is big-endian"),
    "truncated header": (header()[:20], "the number of keys needs 8 bytes at 16, the file has 20"),
    "endless keys": (header(keys=1 << 60), "a key needs 8 bytes at 24, the file has 24"),
    "endless string": (header(keys=1, body=struct.pack("<Q", 1 << 63)),
                       "a key needs 9223372036854775808 bytes at 32, the file has 32"),
    "key that is no text": (header(keys=1, body=text(b"\xff")), r"a key must be UTF-8 text, not b'\xff'"),
    "value type": (header(keys=1, body=text(b"k") + struct.pack("<I", 13)),
                   "k must have a value type from 0 to 12, not 13"),
    "array of arrays that is not there": (header(keys=1, body=value(b"k", 9, struct.pack("<IQ", 9, 1))),
                                          "k needs 4 bytes at 49, the file has 49"),
    "array of what there is not": (header(keys=1, body=value(b"k", 9, struct.pack("<IQ", 13, 1))),
                                   "k must have a value type from 0 to 12, not 13"),
    "arrays without end": (header(keys=1, body=value(b"k", 9, struct.pack("<IQ", 9, 1) * 100_000)),
                           "k must nest at most 8 arrays"),
    "more arrays than bytes": (header(keys=1, body=value(b"k", 9, struct.pack("<IQ", 9, 1 << 60))),
                               "k needs 4 bytes at 49, the file has 49"),
    "more strings than bytes": (header(keys=1, body=value(b"k", 9, struct.pack("<IQ", 8, 1 << 63))),
                                "k needs 8 bytes at 49, the file has 49"),
    "tensors without end": (header(tensors=1 << 63), "a tensor's name needs 8 bytes at 24, the file has 24"),
    "endless array": (header(keys=1, body=text(b"k") + struct.pack("<IIQ", 9, 6, 1 << 62)),
                      "k needs 18446744073709551616 bytes at 49, the file has 49"),
    "key that writes to the terminal": (header(keys=1, body=text(b"\x1b[2J\n") + struct.pack("<I", 13)),
                                        r"'\x1b[2J\n' must have a value type from 0 to 12, not 13"),
    "key of a thousand letters": (header(keys=1, body=text(b"k" * 1000) + struct.pack("<I", 13)),
                                  f"{'k' * 80}... must have a value type from 0 to 12, not 13"),
    "name that writes to the terminal": (header(tensors=1, body=tensor(b"\x1b[2J\n", dims=())),
                                         r"tensor '\x1b[2J\n' must have from 1 to 4 dimensions, not 0"),
    "key twice": (header(keys=2, body=2 * (text(b"k") + struct.pack("<IB", 0, 1))),
                  "the key k is there twice"),
    "alignment": (header(keys=1, body=text(b"general.alignment") + struct.pack("<II", 4, 12)),
                  "general.alignment must be a multiple of 8, not 12"),
    "alignment of zero": (header(keys=1, body=text(b"general.alignment") + struct.pack("<II", 4, 0)),
                          "general.alignment must be a multiple of 8, not 0"),
    "no dimensions": (header(tensors=1, body=tensor(dims=())),
                      "tensor t must have from 1 to 4 dimensions, not 0"),
    "five dimensions": (header(tensors=1, body=tensor(dims=(1,) * 5)),
                        "tensor t must have from 1 to 4 dimensions, not 5"),
    "no elements": (header(tensors=1, body=tensor(dims=(32, 0))),
                    "tensor t must have from 1 to 2**36 elements, not 32 x 0"),
    "too many elements": (header(tensors=1, body=tensor(dims=(1 << 40, 1 << 40))),
                          "tensor t must have from 1 to 2**36 elements, "
                          "not 1099511627776 x 1099511627776"),
    "unknown format": (header(tensors=1, body=tensor(kind=14)),
                       "tensor t must have one of the types F32 (0), F16 (1), Q4_0 (2), Q4_1 (3), "
                       "Q8_0 (8), not Q6_K (14), which is not read yet"),
    "format of brains": (header(tensors=1, body=tensor(kind=30)),
                         "tensor t must have one of the types F32 (0), F16 (1), Q4_0 (2), Q4_1 (3), "
                         "Q8_0 (8), not BF16 (30), which is not read yet"),
    "format that there is not": (header(tensors=1, body=tensor(kind=4)),
                                 "tensor t must have one of the types F32 (0), F16 (1), Q4_0 (2), Q4_1 (3), "
                                 "Q8_0 (8), not 4"),
    "rows that are no blocks": (header(tensors=1, body=tensor(dims=(48,), kind=8)),
                                "tensor t must have rows of a multiple of 32 elements for Q8_0, not 48"),
    "tensor twice": (header(tensors=2, body=2 * tensor()), "tensor t is there twice"),
    "offset": (header(tensors=1, body=tensor(offset=8)), "tensor t must have an offset of a multiple of 32, "
                                                         "not 8"),
    "tensors of the same bytes": (header(tensors=2, body=tensor() + tensor(b"u")) + bytes(1000),
                                  "tensor u begins at 0, inside of tensor t, which has 128 bytes from 0 on"),
    "tensors that overlap": (header(tensors=2, body=tensor(b"u", offset=96) + tensor()) + bytes(1000),
                             "tensor u begins at 96, inside of tensor t, which has 128 bytes from 0 on"),
    "data missing": (header(tensors=1, body=tensor()), "tensor t ends at byte 192, the file has 57"),
}


@pytest.mark.parametrize("case", FIELDS)
def test_wrong_field(tmp_path: Path, case: str) -> None:
    raw, message = FIELDS[case]
    path = tmp_path / "a.gguf"
    path.write_bytes(raw)
    assert refusal(lambda: read_gguf(path)) == f"{path}: {message}"


@pytest.mark.filterwarnings("error")
def test_infinite_scale_is_refused_without_a_warning(tmp_path: Path) -> None:
    """Infinity times a quant of 0 is NaN, which numpy would talk about on the terminal."""
    path = write(tmp_path / "a.gguf", random_checkpoint(SHARED, 2), KINDS.Q8_0)
    file = read_gguf(path)
    raw = path.read_bytes()
    at = file._start + file._tensors["token_embd.weight"].offset
    path.write_bytes(raw[:at] + struct.pack("<e34b", np.inf, *[0] * 34)[:34] + raw[at + 34:])
    assert refusal(lambda: load_gguf(path)) == f"{path}: weights tok_emb must be finite, not nan at [0, 0]"


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    tiny = ModelShape(dim=8, hidden_dim=8, n_layers=1, n_heads=1, n_kv_heads=1, vocab_size=4, max_seq_len=4)
    raw = write(tmp_path / "a.gguf", random_checkpoint(tiny, 1)).read_bytes()
    data = 4 * 8 * 8                                    # the file is padded behind the last tensor
    for size in [*range(0, len(raw) - data, 7), len(raw) - data]:
        with pytest.raises(CheckpointError):
            GGUF(raw[:size])


def test_no_file(tmp_path: Path) -> None:
    path = tmp_path / "none.gguf"
    assert refusal(lambda: load_gguf(path)) == f"{path}: cannot be read: No such file or directory"
