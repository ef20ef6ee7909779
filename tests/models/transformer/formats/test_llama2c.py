"""llama2.c checkpoints: what is written is read back, and every wrong field has its own sentence."""

import dataclasses
import os
import struct
from pathlib import Path

import numpy as np
import pytest

from sim_models.transformer.checkpoint import CheckpointError, ModelShape, random_checkpoint
from sim_models.transformer.formats.llama2c import load_llama2c, save_llama2c
from sim_models.transformer.int8_model import Int8Model

SHAPE = ModelShape(dim=16, hidden_dim=24, n_layers=2, n_heads=4, n_kv_heads=2, vocab_size=32, max_seq_len=8)
UNSHARED = dataclasses.replace(SHAPE, shared_classifier=False)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.bin"
    save_llama2c(path, random_checkpoint(SHAPE, 1))
    return path


def refusal(path: Path) -> str:
    with pytest.raises(CheckpointError) as caught:
        load_llama2c(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message.removeprefix(f"{path}: ")


@pytest.mark.parametrize("shape", [SHAPE, UNSHARED], ids=["shared", "unshared"])
def test_what_is_saved_is_loaded(tmp_path: Path, shape: ModelShape) -> None:
    saved = random_checkpoint(shape, 7)
    save_llama2c(tmp_path / "a.bin", saved)
    loaded = load_llama2c(tmp_path / "a.bin")
    assert loaded.shape == shape
    assert list(loaded.arrays) == list(shape.arrays())
    for name in shape.arrays():
        np.testing.assert_array_equal(loaded[name], saved[name], strict=True, err_msg=name)
    assert [p.name for p in tmp_path.iterdir()] == ["a.bin"]


def test_layout_is_that_of_llama2c(tmp_path: Path) -> None:
    """Offsets counted by hand from llama2.c's memory_map_weights."""
    checkpoint = random_checkpoint(UNSHARED, 3)
    save_llama2c(tmp_path / "a.bin", checkpoint)
    raw = (tmp_path / "a.bin").read_bytes()
    assert struct.unpack_from("<7i", raw) == (16, 24, 2, 4, 2, -32, 8)
    floats = np.frombuffer(raw, "<f4", offset=28)
    assert floats[0] == checkpoint["tok_emb"][0, 0]
    assert floats[512] == checkpoint["rms_att"][0, 0]
    assert floats[512 + 32] == checkpoint["wq"][0, 0, 0]
    assert floats[512 + 32 + 512 + 128] == checkpoint["wk"][1, 0, 0]
    assert floats[-512] == checkpoint["wcls"][0, 0]
    assert floats[-512 - 16 - 14] == np.float32(np.cos(1.0))
    assert len(floats) == UNSHARED.parameters + 2 * 16


HEADERS = {
    "zero dim": (0, 0, "dim must be from 1 to 65536, not 0"),
    "negative hidden": (1, -24, "hidden_dim must be from 1 to 262144, not -24"),
    "huge layers": (2, 1 << 30, "n_layers must be from 1 to 1024, not 1073741824"),
    "heads that do not divide": (3, 3, "dim must be a multiple of n_heads = 3, not 16"),
    "kv heads that do not divide": (4, 3, "n_heads must be a multiple of n_kv_heads = 3, not 4"),
    "odd heads": (3, 16, "dim / n_heads must be even for rotary positions, not 1"),
    "no vocabulary": (5, 0, "vocab_size must be from 1 to 1048576, not 0"),
    "least vocabulary": (5, -(1 << 31), "vocab_size must be from 1 to 1048576, not 2147483648"),
    "no positions": (6, 0, "max_seq_len must be from 1 to 1048576, not 0"),
    "longer positions": (6, 9, "the header asks for 17900 bytes, this file has 17884"),
    "classifier that is not there": (5, -32, "the header asks for 19932 bytes, this file has 17884"),
}


@pytest.mark.parametrize(("field", "value", "message"), HEADERS.values(), ids=HEADERS)
def test_wrong_header(model: Path, field: int, value: int, message: str) -> None:
    raw = bytearray(model.read_bytes())
    struct.pack_into("<i", raw, 4 * field, value)
    model.write_bytes(raw)
    assert refusal(model) == message


@pytest.mark.parametrize(("size", "message"), [
    (0, "the header of a llama2.c file has 28 bytes, this file 0"),
    (27, "the header of a llama2.c file has 28 bytes, this file 27"),
    (28, "the header asks for 17884 bytes, this file has 28"),
    (17883, "the header asks for 17884 bytes, this file has 17883"),
])
def test_truncated(model: Path, size: int, message: str) -> None:
    model.write_bytes(model.read_bytes()[:size])
    assert refusal(model) == message


def test_bytes_behind_the_end(model: Path) -> None:
    model.write_bytes(model.read_bytes() + b"\0")
    assert refusal(model) == "the header asks for 17884 bytes, this file has 17885"


@pytest.mark.parametrize(("value", "said"), [(np.nan, "nan"), (np.inf, "inf"), (-np.inf, "-inf")])
def test_weight_that_is_not_finite(model: Path, value: float, said: str) -> None:
    raw = bytearray(model.read_bytes())
    struct.pack_into("<f", raw, 28 + 4 * (512 + 32 + 256 + 16 + 3), value)
    model.write_bytes(raw)
    assert refusal(model) == f"weights wq must be finite, not {said} at [1, 1, 3]"


def test_rotary_table_of_another_base(model: Path) -> None:
    raw = bytearray(model.read_bytes())
    struct.pack_into("<f", raw, len(raw) - 4 * 32 + 4 * 5, 0.5)
    model.write_bytes(raw)
    assert refusal(model) == "freq_cos must be the table of base 10000, 0.9998 at [2, 1], not 0.5"


def test_rotary_table_that_is_nan(model: Path) -> None:
    raw = bytearray(model.read_bytes())
    struct.pack_into("<f", raw, len(raw) - 4, np.nan)
    model.write_bytes(raw)
    assert refusal(model).startswith("freq_sin must be the table of base 10000, 0.0699428 at [7, 1], not nan")


@pytest.mark.parametrize(("magic", "name"), [
    (b"GGUF", "a GGUF file"), (b"24ka", "a llama2.c file of version 1 or 2"), (b"PK\x03\x04", "a PyTorch file"),
    (b"tjgg", "a GGML file")])
def test_other_formats_are_named(model: Path, magic: bytes, name: str) -> None:
    model.write_bytes(magic + model.read_bytes()[4:])
    assert refusal(model) == f"{name} starts with {magic!r}, a llama2.c file of version 0 does not"


def test_no_file(tmp_path: Path) -> None:
    assert refusal(tmp_path / "none.bin") == "cannot be read: No such file or directory"
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(CheckpointError) as caught:
            load_llama2c(path)
        assert str(caught.value) == f"{path} is not a regular file"


def test_a_file_of_a_hundred_gigabytes_is_not_read(model: Path) -> None:
    os.truncate(model, 100 << 30)
    assert refusal(model) == f"the header asks for 17884 bytes, this file has {100 << 30}"


@pytest.mark.parametrize(("change", "message"), [
    ({"norm_eps": 1e-6}, "a llama2.c file means norm_eps = 1e-05, not 1e-06"),
    ({"norm_eps": 1.0001e-5}, "a llama2.c file means norm_eps = 1e-05, not 1.0001e-05"),
    ({"rope_theta": 1e5}, "a llama2.c file means rope_theta = 10000, not 100000"),
])
def test_what_the_format_cannot_say_is_not_written(tmp_path: Path, change: dict[str, float],
                                                   message: str) -> None:
    shape = dataclasses.replace(SHAPE, **change)
    with pytest.raises(CheckpointError) as caught:
        save_llama2c(tmp_path / "a.bin", random_checkpoint(shape, 1))
    assert str(caught.value) == message
    assert list(tmp_path.iterdir()) == []


def test_an_epsilon_that_was_held_as_float32_is_written(tmp_path: Path) -> None:
    """GGUF files hold 1e-5 as 9.999999747378752e-06, and the models compute with that."""
    shape = dataclasses.replace(SHAPE, norm_eps=float(np.float32(1e-5)))
    saved = random_checkpoint(shape, 1)
    save_llama2c(tmp_path / "a.bin", saved)
    loaded = load_llama2c(tmp_path / "a.bin")
    assert loaded.shape == SHAPE
    models = [Int8Model(c) for c in (saved, loaded)]
    np.testing.assert_array_equal(*(m.forward([1, 2, 3], m.new_cache()) for m in models))


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "none" / "a.bin"
    with pytest.raises(CheckpointError) as caught:
        save_llama2c(path, random_checkpoint(SHAPE, 1))
    assert str(caught.value) == f"{path}: cannot be written: No such file or directory"
