"""Files of any format: told apart by what they hold, and any bytes at all are a model or a sentence, soon."""

import functools
import os
import struct
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sim_models.transformer.checkpoint import CheckpointError, ModelShape, random_checkpoint
from sim_models.transformer.formats.llama2c import save_llama2c, save_tokenizer
from sim_models.transformer.formats.model_file import open_model, open_tokenizer
from sim_models.transformer.tokenizer import Tokenizer
from tests.models.transformer.formats.gguf_files import KINDS, PIECES, add_vocabulary, refusal, write

SHAPE = ModelShape(dim=32, hidden_dim=32, n_layers=2, n_heads=2, n_kv_heads=1, vocab_size=288, max_seq_len=8)
TOKENIZER = Tokenizer([p.replace("▁", " ").encode() for p in PIECES], -np.arange(288, dtype=np.float32))
NEITHER = "this is neither a GGUF file, which starts with b'GGUF', nor a"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a model of each format, and a tokenizer."""
    save_llama2c(tmp_path / "m.bin", random_checkpoint(SHAPE, 1))
    save_tokenizer(tmp_path / "t.bin", TOKENIZER)
    write(tmp_path / "m.gguf", random_checkpoint(SHAPE, 1), edit=add_vocabulary)
    return tmp_path


def test_the_same_model_in_two_formats(folder: Path) -> None:
    one, two = (open_model(folder / name) for name in ("m.bin", "m.gguf"))
    for name in SHAPE.arrays():
        np.testing.assert_array_equal(one.checkpoint()[name], two.checkpoint()[name], strict=True)
    assert (one.has_tokenizer, two.has_tokenizer) == (False, True)
    assert refusal(one.tokenizer) == f"{folder / 'm.bin'}: a llama2.c checkpoint brings no tokenizer"


def test_the_same_tokenizer_in_two_formats(folder: Path) -> None:
    tokenizers = [open_model(folder / "m.gguf").tokenizer(), open_tokenizer(folder / "m.gguf", 288),
                  open_tokenizer(folder / "t.bin", 288)]
    assert [t.encode("ab ab") for t in tokenizers] == [TOKENIZER.encode("ab ab")] * 3


def test_a_tokenizer_of_another_number_of_tokens(folder: Path) -> None:
    path = folder / "m.gguf"
    assert refusal(lambda: open_tokenizer(path, 289)) == f"{path}: 289 tokens are wanted, this tokenizer has 288"


CONTENTS: dict[str, tuple[bytes, str]] = {
    "a design": (b'name = "my_engine"\nblock = "compute_engine"\n',
                 "llama2.c checkpoint: dim must be from 1 to 65536, not 1701667182"),
    "nothing": (b"", "llama2.c checkpoint: the header of a llama2.c file has 28 bytes, this file 0"),
    "zeros": (bytes(100), "llama2.c checkpoint: dim must be from 1 to 65536, not 0"),
    "PyTorch": (b"PK\x03\x04" + bytes(100), "llama2.c checkpoint: a PyTorch file starts with b'PK\\x03\\x04', a "
                                            "llama2.c file of version 0 does not"),
}


@pytest.mark.parametrize("case", CONTENTS)
def test_what_is_neither_is_called_that(tmp_path: Path, case: str) -> None:
    raw, message = CONTENTS[case]
    path = tmp_path / "file"
    path.write_bytes(raw)
    assert refusal(lambda: open_model(path).checkpoint()) == f"{path}: {NEITHER} {message}"


@pytest.mark.parametrize(("raw", "message"), [
    (b'name = "my_engine"\n', "tokenizer.bin: the longest piece of a tokenizer.bin must have from 1 byte to as many "
                              "as the file, 19, not 1701667182"),
    (b"abc", "tokenizer.bin: a tokenizer.bin has at least 4 bytes, this file has 3"),
])
def test_what_is_no_tokenizer_is_called_that(tmp_path: Path, raw: bytes, message: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(raw)
    assert refusal(lambda: open_tokenizer(path, 9)) == f"{path}: {NEITHER} {message}"


@pytest.mark.parametrize("read", [open_model, lambda path: open_tokenizer(path, 9)])
def test_files_that_cannot_be_read(tmp_path: Path, read: Callable[[Path], object]) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", Path("/dev/zero")):
        assert refusal(lambda path=path: read(path)) == f"{path} is not a regular file"
    path = tmp_path / "none"
    assert refusal(lambda: read(path)) == f"{path}: cannot be read: No such file or directory"


# Any bytes at all


def _read(path: Path) -> None:
    """What `check --model` does with a file, and `check --tokenizer`."""
    file = open_model(path)
    shape = file.verified()
    if file.has_tokenizer:
        file.tokenizer()
    assert file.checkpoint().shape == shape


def attempt(read: Callable[[Path], object], path: Path) -> bool:
    """Whether a file is read; if not, one sentence says why; in a second, and without memory beyond its size."""
    begin, said = time.process_time(), ""
    tracemalloc.start()
    try:
        read(path)
    except CheckpointError as error:
        said = str(error)
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < (16 << 20) + 40 * path.stat().st_size
    assert time.process_time() - begin < 1
    if said:
        assert said.startswith(f"{path}: ")
        assert "\n" not in said
        assert len(said) < 500 + len(str(path))
    return not said


@functools.cache
def small() -> dict[str, bytes]:
    """Valid files, small enough that a change of a byte hits something."""
    shape = ModelShape(dim=32, hidden_dim=32, n_layers=1, n_heads=2, n_kv_heads=1, vocab_size=3, max_seq_len=4)

    def vocabulary(writer: gguf.GGUFWriter) -> None:
        writer.add_tokenizer_model("llama")
        writer.add_token_list(["a", "b", "c"])
        writer.add_token_scores([0.5, 0.25, 0.125])
        writer.add_token_types([2, 3, 3])
        writer.add_array("x.nested", [[1, 2], [3]])
    model = random_checkpoint(shape, 1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        save_llama2c(folder / "m.bin", model)
        write(folder / "m.gguf", model, edit=vocabulary)
        write(folder / "q.gguf", model, KINDS.Q4_0, edit=vocabulary)
        save_tokenizer(folder / "t.bin", Tokenizer([b"a", b"b", b"c"], np.zeros(3, np.float32)))
        return {path.name: path.read_bytes() for path in folder.iterdir()}


EDITS = st.lists(st.tuples(st.floats(0, 1), st.one_of(
    st.binary(min_size=1, max_size=8),
    st.sampled_from([0, 1, 2, 3, 31, 1 << 16, 1 << 31, (1 << 32) - 1, 1 << 40, 1 << 62, (1 << 64) - 1]).map(
        lambda n: struct.pack("<Q", n)),
    st.sampled_from([0, 1, 7, 1 << 20, 1 << 31, (1 << 32) - 1]).map(lambda n: struct.pack("<I", n)),
    st.sampled_from([np.nan, np.inf, 1e38, 1e-45]).map(lambda x: struct.pack("<f", x)))), min_size=1, max_size=3)


@pytest.mark.filterwarnings("error")
@settings(max_examples=400, deadline=None, derandomize=True,
          suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from(["m.bin", "m.gguf", "q.gguf", "t.bin"]), edits=EDITS, cut=st.floats(0, 1) | st.just(1.0),
       more=st.binary(max_size=8), head=st.booleans())
def test_a_broken_file_is_a_sentence_soon(tmp_path: Path, name: str, edits: list[tuple[float, bytes]], cut: float,
                                          more: bytes, head: bool) -> None:
    """Fields overwritten, files cut off or continued; what is still a model is read."""
    raw = bytearray(small()[name])
    described = 900 if head and name.endswith("gguf") else 60 if head else len(raw)
    for place, what in edits:
        at = int(place * (min(described, len(raw)) - 1))
        raw[at:at + len(what)] = what
    path = tmp_path / name
    path.write_bytes(bytes(raw[:int(cut * len(raw))]) + more)
    attempt(_read if name != "t.bin" else lambda p: open_tokenizer(p, 3), path)


@pytest.mark.filterwarnings("error")
@settings(max_examples=200, deadline=None, derandomize=True,
          suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(raw=st.binary(max_size=200), magic=st.booleans())
def test_any_bytes_are_a_sentence_soon(tmp_path: Path, raw: bytes, magic: bool) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"GGUF" * magic + raw)
    assert not attempt(_read, path)
    attempt(lambda p: open_tokenizer(p, 3), path)


def test_the_unbroken_files_are_read(tmp_path: Path) -> None:
    for name, raw in small().items():
        path = tmp_path / name
        path.write_bytes(raw)
        assert attempt(_read if name != "t.bin" else lambda p: open_tokenizer(p, 3), path), name


@pytest.mark.filterwarnings("error")
def test_a_small_file_that_says_it_is_a_large_model(tmp_path: Path) -> None:
    """Every number of the description and of the header, as large as its field can be."""
    refused = 0
    for name, width in (("m.gguf", 4), ("m.gguf", 8), ("m.bin", 4)):
        raw = small()[name]
        path = tmp_path / name
        # names of odd lengths stand between the fields of a GGUF file
        for at in range(0, 1400, 5) if name == "m.gguf" else range(0, 28, 4):
            for value in (0, (1 << 8 * width) - 1, 1 << 20):
                path.write_bytes(raw[:at] + value.to_bytes(width, "little") + raw[at + width:])
                refused += not attempt(_read, path)
    assert refused > 800
