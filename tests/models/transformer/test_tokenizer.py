"""tokenizer.bin: encoding as llama2.c does it, byte fallback, and every wrong field's sentence."""

import itertools
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim_models.transformer.checkpoint import CheckpointError
from sim_models.transformer.formats.llama2c import load_tokenizer, save_tokenizer
from sim_models.transformer.tokenizer import BOS, EOS, Tokenizer, byte_pieces

WORDS = [b" ", b"a", b"b", b"c", b"ab", b"bc", b"abc", b" a", "é".encode()]
SCORES = {b"ab": -2, b"bc": -1, b"abc": -3, b" a": -4}
ID = {piece: 259 + i for i, piece in enumerate(WORDS)}


def tokenizer(pieces: list[bytes]) -> Tokenizer:
    return Tokenizer(pieces, np.array([SCORES.get(p, 0) for p in pieces], np.float32))


FULL = tokenizer(byte_pieces() + WORDS)
LONGEST = "the longest piece of a tokenizer.bin must have from 1 byte to as many as the file, 3715"
NO_BYTES = tokenizer(byte_pieces()[:3] + WORDS)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    save_tokenizer(tmp_path / "t.bin", FULL)
    return tmp_path / "t.bin"


def refusal(path: Path, vocab: int = 268) -> str:
    with pytest.raises(CheckpointError) as caught:
        load_tokenizer(path, vocab)
    return str(caught.value).removeprefix(f"{path}: ")


def test_the_best_pair_is_merged_first() -> None:
    # "bc" has a higher score than "ab", and "ab" than " a"
    assert FULL.merge(b"abc") == [ID[b"abc"]]
    assert FULL.encode("abc") == [BOS, ID[b" "], ID[b"abc"]]
    assert FULL.encode("ab") == [BOS, ID[b" "], ID[b"ab"]]
    assert FULL.encode("ac") == [BOS, ID[b" a"], ID[b"c"]]


def test_of_equal_scores_the_leftmost_pair_is_merged_first() -> None:
    pieces = [*byte_pieces()[:3], b"a", b"aa"]
    assert tokenizer(pieces).merge(b"aaa") == [4, 3]


def test_empty_text_is_bos_alone() -> None:
    assert FULL.encode("") == [BOS]
    assert FULL.encode("")[1:] == []
    assert FULL.decode([BOS]) == b""


def test_unknown_bytes_fall_back() -> None:
    assert FULL.encode("d")[1:] == [ID[b" "], 3 + ord("d")]
    assert FULL.encode("éè")[1:] == [ID[b" "], ID["é".encode()], 3 + 0xC3, 3 + 0xA8]
    assert FULL.encode(b"\xff\x00")[1:] == [ID[b" "], 3 + 0xFF, 3]
    assert FULL.encode("\udcff")[1:] == [ID[b" "], 3 + 0xFF]


def test_a_text_cannot_spell_control_or_byte_tokens() -> None:
    tokens = FULL.encode("\n<s>\n<0x41>")[1:]
    assert BOS not in tokens
    assert 3 + 0x41 not in tokens
    assert FULL.decode(tokens) == b" \n<s>\n<0x41>"


def test_without_byte_tokens_unknown_bytes_are_refused() -> None:
    assert NO_BYTES.decode(NO_BYTES.encode("abé")) == "abé".encode()
    with pytest.raises(CheckpointError) as caught:
        NO_BYTES.encode("ab è")
    assert str(caught.value) == r"the vocabulary has no piece for b'\xc3\xa8' and none for its byte 0xc3"


def test_lone_surrogate_is_refused() -> None:
    with pytest.raises(CheckpointError) as caught:
        FULL.encode("ab\ud800")
    assert str(caught.value) == r"a text must be characters or bytes, not the lone surrogate '\ud800' at 2"


@given(st.binary(max_size=60))
def test_any_bytes_round_trip(raw: bytes) -> None:
    assert FULL.decode(FULL.encode(raw)) == raw


@given(st.text(alphabet="abc é\udc80", max_size=60))
def test_merging_equals_the_quadratic_definition(text: str) -> None:
    raw = text.encode("utf-8", "surrogateescape")
    tokens = [t for c in text for t in FULL.merge(c.encode("utf-8", "surrogateescape"))]
    while True:
        unions = [(FULL.pieces[a] + FULL.pieces[b], i) for i, (a, b) in enumerate(itertools.pairwise(tokens))]
        best = min(((-SCORES[u], i, ID[u]) for u, i in unions if u in SCORES), default=None)
        if best is None:
            break
        tokens[best[1]:best[1] + 2] = [best[2]]
    assert FULL.merge(raw) == tokens


def test_decode() -> None:
    assert FULL.decode([BOS, ID[b" a"], ID[b" a"], EOS]) == b"a a"
    assert FULL.decode([ID[b" a"]]) == b" a"
    for token in (-1, 268):
        with pytest.raises(CheckpointError, match=f"^a token must be from 0 to 267, not {token}$"):
            FULL.decode([token])


def test_what_is_saved_is_loaded(file: Path) -> None:
    loaded = load_tokenizer(file, 268)
    assert loaded.pieces == FULL.pieces
    np.testing.assert_array_equal(loaded.scores, FULL.scores)
    assert struct.unpack_from("<i", file.read_bytes())[0] == 6


def test_wrong_vocabulary_size(file: Path) -> None:
    size = file.stat().st_size
    assert refusal(file, 269) == "269 tokens are wanted, the file ends in token 268"
    assert refusal(file, 267) == f"267 tokens end at byte {size - 10}, this file has {size}"


@pytest.mark.parametrize(("size", "message"), [
    (0, "a tokenizer.bin has at least 4 bytes, this file has 0"),
    (11, "268 tokens are wanted, the file ends in token 0"),
    (14, "268 tokens are wanted, the file ends in token 0"),
])
def test_truncated(file: Path, size: int, message: str) -> None:
    file.write_bytes(file.read_bytes()[:size])
    assert refusal(file) == message


def test_trailing_bytes(file: Path) -> None:
    size = file.stat().st_size
    file.write_bytes(file.read_bytes() + b"x")
    assert refusal(file) == f"268 tokens end at byte {size}, this file has {size + 1}"


@pytest.mark.parametrize(("offset", "code", "value", "message"), [
    (0, "<i", 0, f"{LONGEST}, not 0"),
    (0, "<i", 3716, f"{LONGEST}, not 3716"),
    (0, "<i", 4, "a piece must have from 1 to 4 bytes, token 0 says 5"),
    (8, "<i", 0, "a piece must have from 1 to 6 bytes, token 0 says 0"),
    (8, "<i", -1, "a piece must have from 1 to 6 bytes, token 0 says -1"),
    (4, "<f", float("nan"), "a score must be a number, token 0 has nan"),
])
def test_wrong_field(file: Path, offset: int, code: str, value: float, message: str) -> None:
    raw = bytearray(file.read_bytes())
    struct.pack_into(code, raw, offset, value)
    file.write_bytes(raw)
    assert refusal(file) == message


def test_no_file(tmp_path: Path) -> None:
    assert refusal(tmp_path / "none.bin") == "cannot be read: No such file or directory"


def test_vocabularies_that_are_none() -> None:
    with pytest.raises(CheckpointError) as caught:
        Tokenizer([b"a", b"b"], np.zeros(2, np.float32))
    assert str(caught.value) == ("a vocabulary must have at least 3 pieces and a score for each, "
                                 "not 2 pieces and 2 scores")
    with pytest.raises(CheckpointError, match=r"^a piece must have at least 1 byte, token 1 has none$"):
        Tokenizer([b"a", b"", b"b"], np.zeros(3, np.float32))


# Rules that files of other formats may ask for


def test_without_a_begin_token_or_a_space_in_front() -> None:
    bare = Tokenizer(FULL.pieces, FULL.scores, begin=False, space=False)
    assert bare.encode("abc") == [ID[b"abc"]]
    assert bare.encode(" abc") == [ID[b" "], ID[b"abc"]]
    assert bare.encode("") == []
    assert bare.decode(bare.encode(" a b")) == b" a b"
    no_space = Tokenizer(FULL.pieces, FULL.scores, space=False)
    assert no_space.encode("abc") == [BOS, ID[b"abc"]]
    assert no_space.decode(no_space.encode(" a")) == b" a"
    no_begin = Tokenizer(FULL.pieces, FULL.scores, begin=False)
    assert no_begin.encode("abc") == [ID[b" "], ID[b"abc"]]


@given(st.binary(max_size=60), st.booleans())
def test_any_bytes_round_trip_without_a_space(raw: bytes, begin: bool) -> None:
    bare = Tokenizer(FULL.pieces, FULL.scores, begin=begin, space=False)
    assert bare.decode(bare.encode(raw)) == raw


def test_control_tokens_are_neither_spelt_nor_shown() -> None:
    quiet = Tokenizer(FULL.pieces, FULL.scores, control=[ID[b"abc"], ID[b"c"]])
    assert quiet.encode("abc") == [BOS, ID[b" "], ID[b"ab"], 3 + ord("c")]
    assert quiet.decode([BOS, ID[b"abc"], ID[b"a"]]) == b"a"


def test_a_text_with_a_user_defined_token_is_refused() -> None:
    cut = Tokenizer([*FULL.pieces, b"<|user|>"], np.append(FULL.scores, np.float32(0)), whole=[268])
    assert cut.encode("abc") == FULL.encode("abc")
    assert cut.decode([268]) == b"<|user|>"
    with pytest.raises(CheckpointError) as caught:
        cut.encode("a<|user|>b")
    assert str(caught.value) == "a text cannot hold b'<|user|>', a user-defined token, at which texts are not cut yet"


@pytest.mark.parametrize("rule", [{"begin": False}, {"space": False}, {"control": [260]}, {"whole": [260]}])
def test_a_tokenizer_bin_cannot_say_such_rules(tmp_path: Path, rule: dict[str, Any]) -> None:
    with pytest.raises(CheckpointError, match=r"^a tokenizer.bin means a begin token and a space before each text, "):
        save_tokenizer(tmp_path / "t.bin", Tokenizer(FULL.pieces, FULL.scores, **rule))
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_a_hundred_gigabytes_is_not_read(file: Path) -> None:
    size = file.stat().st_size
    os.truncate(file, 100 << 30)
    assert refusal(file) == f"268 tokens end at byte {size}, this file has {100 << 30}"
