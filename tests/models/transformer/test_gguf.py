"""GGUF: files of the ``gguf`` package are read, blocks dequantise as there, wrong fields are refused."""

import struct
from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
import pytest
from gguf.quants import dequantize, quantize

from sim_models.transformer.checkpoint import Checkpoint, CheckpointError, ModelShape, random_checkpoint
from sim_models.transformer.formats.gguf import GGUF, load_gguf, read_gguf
from sim_models.transformer.tokenizer import byte_pieces

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


def nothing(writer: gguf.GGUFWriter) -> None:
    """Add nothing to a file."""


def write(path: Path, checkpoint: Checkpoint, kind: KINDS = KINDS.F32, *, edit: Edit = nothing,
          arch: str = "llama", leave_out: str = "", context: int | None = None) -> Path:
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
            writer.add_tensor(name, values)
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
    writer.add_tokenizer_model("llama")
    writer.add_token_list(PIECES)
    writer.add_token_scores([float(-i) for i in range(len(PIECES))])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)


@pytest.fixture(scope="module")
def checkpoint() -> Checkpoint:
    return random_checkpoint(SHAPE, 1)


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(CheckpointError) as caught:
        call()
    assert "\n" not in str(caught.value)
    return str(caught.value)


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


def test_vocabulary(tmp_path: Path, checkpoint: Checkpoint) -> None:
    tokenizer = read_gguf(write(tmp_path / "a.gguf", checkpoint, edit=add_vocabulary)).tokenizer()
    assert tokenizer.encode("ab!") == [1, 259 + 27, 259 + 1, 3 + ord("!")]
    assert tokenizer.decode(tokenizer.encode("ab!")) == b"ab!"


def test_own_alignment(tmp_path: Path, checkpoint: Checkpoint) -> None:
    path = write(tmp_path / "a.gguf", checkpoint, edit=lambda w: w.add_custom_alignment(256))
    np.testing.assert_array_equal(load_gguf(path)["w3"], checkpoint["w3"])


def test_every_metadata_type_is_read(tmp_path: Path, checkpoint: Checkpoint) -> None:
    values = {"add_uint8": 200, "add_int8": -5, "add_uint16": 60000, "add_int16": -300, "add_uint32": 1 << 31,
              "add_int32": -7, "add_float32": 0.5, "add_bool": True, "add_string": "é", "add_uint64": 1 << 63,
              "add_int64": -1, "add_float64": 0.1, "add_array": ["a", "b"]}

    def edit(writer: gguf.GGUFWriter) -> None:
        for name, value in values.items():
            getattr(writer, name)("x." + name, value)
        writer.add_array("x.floats", [1.5, 2.5])
    metadata = read_gguf(write(tmp_path / "a.gguf", checkpoint, edit=edit)).metadata
    assert {k[2:]: v for k, v in metadata.items() if k.startswith("x.add")} == values
    assert metadata["x.floats"] == [1.5, 2.5]


CONTENTS: dict[str, tuple[dict, str]] = {
    "architecture": ({"arch": "gpt2"}, "general.architecture must be llama, not gpt2"),
    "missing matrix": ({"leave_out": "blk.1.ffn_up.weight"}, "tensor blk.1.ffn_up.weight is missing"),
    "missing embedding": ({"leave_out": "token_embd.weight"}, "tensor token_embd.weight is missing"),
    "unknown tensor": ({"edit": lambda w: w.add_tensor("rope_freqs.weight", np.ones(4, np.float32))},
                       "tensor rope_freqs.weight is not one of a plain llama's"),
    "bias": ({"edit": lambda w: w.add_tensor("blk.0.attn_q.bias", np.ones(32, np.float32))},
             "tensor blk.0.attn_q.bias is not one of a plain llama's"),
    "rotary scaling": ({"edit": lambda w: w.add_string("llama.rope.scaling.type", "yarn")},
                       "llama.rope.scaling.type must be none, not yarn"),
    "partial rotary": ({"edit": lambda w: w.add_rope_dimension_count(4)},
                       "llama.rope.dimension_count must be 8, the size of a head, not 4"),
    "other key length": ({"edit": lambda w: w.add_key_length(16)},
                         "llama.attention.key_length must be 8, the size of a head, not 16"),
    "huge context": ({"context": 1 << 30}, "max_seq_len must be from 1 to 1048576, not 1073741824"),
    "base that is text": ({"edit": lambda w: w.add_string("llama.rope.freq_base", "1")},
                          "llama.rope.freq_base must be a float, not '1'"),
}


@pytest.mark.parametrize("case", CONTENTS)
def test_wrong_contents(tmp_path: Path, case: str) -> None:
    settings, message = CONTENTS[case]
    shape = SHAPE if case != "base that is text" else SHARED
    path = write(tmp_path / "a.gguf", random_checkpoint(shape, 1), **settings)
    assert refusal(lambda: load_gguf(path)) == f"{path}: {message}"


def test_wrong_weights(tmp_path: Path, checkpoint: Checkpoint) -> None:
    arrays = dict(checkpoint.arrays)
    arrays["wv"] = arrays["wv"].copy()
    arrays["wv"][1, 2, 3] = np.nan
    broken = object.__new__(Checkpoint)
    broken.shape, broken.arrays = SHAPE, arrays
    path = write(tmp_path / "a.gguf", broken)
    assert refusal(lambda: load_gguf(path)) == f"{path}: weights wv must be finite, not nan at [1, 2, 3]"


def test_shapes_that_contradict_the_metadata(tmp_path: Path, checkpoint: Checkpoint) -> None:
    broken = object.__new__(Checkpoint)
    broken.shape, broken.arrays = SHAPE, dict(checkpoint.arrays)
    broken.arrays["wk"] = checkpoint["wq"]
    path = write(tmp_path / "a.gguf", broken)
    assert refusal(lambda: load_gguf(path)) == (f"{path}: weights wk must have shape 2 x 16 x 32, "
                                                f"not 2 x 32 x 32")


@pytest.mark.parametrize(("edit", "message"), [
    (nothing, "tokenizer.ggml.model must be llama, not None"),
    (lambda w: w.add_tokenizer_model("gpt2"), "tokenizer.ggml.model must be llama, not gpt2"),
    (lambda w: w.add_tokenizer_model("llama"), "tokenizer.ggml.tokens must be an array of strings"),
    (lambda w: (w.add_tokenizer_model("llama"), w.add_bos_token_id(5)),
     "tokenizer.ggml.bos_token_id must be 1, not 5"),
])
def test_wrong_vocabulary(tmp_path: Path, checkpoint: Checkpoint, edit: Edit, message: str) -> None:
    file = read_gguf(write(tmp_path / "a.gguf", checkpoint, edit=edit))
    assert refusal(file.tokenizer) == message


def header(*, magic: bytes = b"GGUF", version: int = 3, tensors: int = 0, keys: int = 0,
           body: bytes = b"") -> bytes:
    return magic + struct.pack("<IQQ", version, tensors, keys) + body


def text(value: bytes) -> bytes:
    return struct.pack("<Q", len(value)) + value


def tensor(name: bytes = b"t", dims: tuple[int, ...] = (32,), kind: int = 0, offset: int = 0) -> bytes:
    return text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, offset)


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
    "array of arrays": (header(keys=1, body=text(b"k") + struct.pack("<IIQ", 9, 9, 1)),
                        "k must be an array of scalars or strings, not of value type 9"),
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
                       "Q8_0 (8), not 14"),
    "rows that are no blocks": (header(tensors=1, body=tensor(dims=(48,), kind=8)),
                                "tensor t must have rows of a multiple of 32 elements for Q8_0, not 48"),
    "tensor twice": (header(tensors=2, body=2 * tensor()), "tensor t is there twice"),
    "offset": (header(tensors=1, body=tensor(offset=8)), "tensor t must have an offset of a multiple of 32, "
                                                         "not 8"),
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
    at = len(raw) - len(file._data) + file._tensors["token_embd.weight"].offset
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
