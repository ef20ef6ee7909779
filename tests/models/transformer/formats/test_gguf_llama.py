"""The Llama model and the vocabulary in GGUF files: every key is done, harmless, or refused by name."""

import contextlib
import dataclasses
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from sim_models.transformer.checkpoint import Checkpoint, CheckpointError, random_checkpoint
from sim_models.transformer.formats.gguf import read_gguf
from sim_models.transformer.formats.gguf_llama import gguf_tokenizer, load_gguf
from sim_models.transformer.formats.llama2c import load_llama2c, save_llama2c
from tests.models.transformer.formats.gguf_files import (
    KINDS,
    PIECES,
    SHAPE,
    SHARED,
    Edit,
    add_vocabulary,
    nothing,
    refusal,
    write,
)


@pytest.fixture(scope="module")
def checkpoint() -> Checkpoint:
    return random_checkpoint(SHAPE, 1)


CONTENTS: dict[str, tuple[dict, str]] = {
    "architecture": ({"arch": "gpt2"}, "general.architecture must be llama, not gpt2"),
    "missing matrix": ({"leave_out": "blk.1.ffn_up.weight"}, "tensor blk.1.ffn_up.weight is missing"),
    "missing embedding": ({"leave_out": "token_embd.weight"}, "tensor token_embd.weight is missing"),
    "unknown tensor": ({"edit": lambda w: w.add_tensor("rope_freqs.weight", np.ones(4, np.float32))},
                       "tensor rope_freqs.weight is not one of a plain llama's"),
    "bias": ({"edit": lambda w: w.add_tensor("blk.0.attn_q.bias", np.ones(32, np.float32))},
             "tensor blk.0.attn_q.bias is not one of a plain llama's"),
    "rotary scaling": ({"edit": lambda w: w.add_string("llama.rope.scaling.type", "yarn")},
                       "llama.rope.scaling.type must be none, as nothing else is done here, not yarn"),
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
    assert refusal(lambda: load_gguf(path)) == (f"{path}: tensor blk.0.attn_k.weight must have shape 16 x 32, "
                                                f"not 32 x 32")


NEUTRAL: dict[str, tuple[Any, Any]] = {
    "attention.causal": (True, False), "use_parallel_residual": (False, True),
    "attention.clamp_kqv": (0.0, 8.0), "attention.max_alibi_bias": (0.0, 8.0), "attention.sliding_window": (0, 8),
    "attention.scale": (float(1 / np.sqrt(np.float32(8))), 1.0), "attn_logit_softcapping": (0.0, 50.0),
    "final_logit_softcapping": (0.0, 30.0), "embedding_scale": (1.0, 12.0), "residual_scale": (1.0, 0.25),
    "logit_scale": (1.0, 0.0625), "expert_count": (0, 8), "expert_used_count": (0, 2), "expert_shared_count": (0, 1),
    "pooling_type": (0, 1), "rope.scale_linear": (1.0, 4.0), "rope.scaling.factor": (1.0, 4.0),
    "rope.scaling.attn_factor": (1.0, 0.5), "rope.scaling.original_context_length": (16, 8),
    "rope.scaling.type": ("none", "linear"), "tensor_data_layout": ("Meta AI original pth", "reference"),
}


def put(writer: gguf.GGUFWriter, key: str, value: Any) -> None:
    """Add a key of a type that suits its value."""
    kinds = {bool: writer.add_bool, int: writer.add_uint32, float: writer.add_float32, str: writer.add_string,
             list: writer.add_array}
    kinds[type(value)](key, value)


@pytest.mark.parametrize("key", NEUTRAL)
def test_a_key_that_changes_nothing_is_read_and_one_that_does_is_refused(tmp_path: Path, checkpoint: Checkpoint,
                                                                         key: str) -> None:
    for n, value in enumerate(NEUTRAL[key]):
        path = write(tmp_path / f"{n}.gguf", checkpoint, edit=lambda w, v=value: put(w, f"llama.{key}", v))
        if n == 0:
            np.testing.assert_array_equal(load_gguf(path)["wq"], checkpoint["wq"])
        else:
            said = {False: "false", True: "true"}[value] if isinstance(value, bool) else str(value)
            message = refusal(lambda path=path: load_gguf(path))
            assert message.startswith(f"{path}: llama.{key} must be ")
            assert message.endswith(f", as nothing else is done here, not {said}")


@pytest.mark.parametrize("value", [[1.0], float("nan"), float("inf"), True, "1.0"])
def test_a_neutral_value_of_another_type_is_refused(tmp_path: Path, checkpoint: Checkpoint, value: Any) -> None:
    path = write(tmp_path / "a.gguf", checkpoint, edit=lambda w: put(w, "llama.logit_scale", value))
    assert refusal(lambda: load_gguf(path)).startswith(f"{path}: llama.logit_scale must be 1.0, as nothing ")


def _formatted(key: str) -> str:
    return key.format(arch="llama", id=0, name="x", dense="x")


def _keys_of_gguf() -> list[str]:
    """Every key of a model that the ``gguf`` package knows."""
    found = []
    for space in vars(gguf.Keys).values():
        if isinstance(space, type):
            found += [k for k in vars(space).values() if isinstance(k, str) and k.startswith("{arch}.")]
    return sorted({_formatted(k) for k in found})


def test_every_key_that_gguf_knows_is_decided_on(tmp_path: Path, checkpoint: Checkpoint) -> None:
    """With a value that no model has, each is refused by name, but for those that say nothing."""
    accepted, there = [], set(read_gguf(write(tmp_path / "a.gguf", checkpoint)).metadata)
    keys = [k for k in _keys_of_gguf() if k not in there]
    assert len(keys) > 80
    for n, key in enumerate(keys):
        path = write(tmp_path / f"{n}.gguf", checkpoint, edit=lambda w, k=key: put(w, k, 12345))
        with contextlib.suppress(CheckpointError):
            load_gguf(path)
            accepted.append(key)
            continue
        assert key in refusal(lambda path=path: load_gguf(path))
    assert accepted == ["llama.rope.scaling.finetuned"]


def test_a_key_that_nobody_knows_is_refused(tmp_path: Path, checkpoint: Checkpoint) -> None:
    path = write(tmp_path / "a.gguf", checkpoint, edit=lambda w: w.add_float32("llama.twist", 1.0))
    assert refusal(lambda: load_gguf(path)) == (f"{path}: the key llama.twist is not known, and may change "
                                                f"what the model computes")


def test_keys_of_other_name_spaces_are_nobodys(tmp_path: Path, checkpoint: Checkpoint) -> None:
    path = write(tmp_path / "a.gguf", checkpoint, edit=lambda w: (
        w.add_float32("granite.logit_scale", 4.0), w.add_string("general.name", "x"), w.add_file_type(0),
        w.add_quantization_version(1), w.add_string("quantize.imatrix.file", "x"), w.add_chat_template("{{ x }}")))
    np.testing.assert_array_equal(load_gguf(path)["wq"], checkpoint["wq"])


@pytest.mark.parametrize(("number", "said"), [(0, "part 1"), (2, "part 3"), (None, "a part")])
def test_a_part_of_a_split_model_is_called_that(tmp_path: Path, checkpoint: Checkpoint, number: int | None,
                                                said: str) -> None:
    def edit(writer: gguf.GGUFWriter) -> None:
        writer.add_uint16("split.count", 3)
        if number is not None:
            writer.add_uint16("split.no", number)
    path = write(tmp_path / "a.gguf", checkpoint, edit=edit, leave_out="token_embd.weight")
    assert refusal(lambda: load_gguf(path)) == (f"{path}: this is {said} of 3 of a split model: merge its parts "
                                                f"into one file first")


def test_a_model_in_one_part_is_whole(tmp_path: Path, checkpoint: Checkpoint) -> None:
    path = write(tmp_path / "a.gguf", checkpoint, edit=lambda w: (w.add_uint16("split.count", 1),
                                                                  w.add_uint16("split.no", 0)))
    np.testing.assert_array_equal(load_gguf(path)["wq"], checkpoint["wq"])


def test_blocks_of_an_older_layout_are_refused(tmp_path: Path, checkpoint: Checkpoint) -> None:
    path = write(tmp_path / "a.gguf", checkpoint, KINDS.Q8_0, edit=lambda w: w.add_quantization_version(1))
    assert refusal(lambda: load_gguf(path)) == f"{path}: general.quantization_version must be 2, not 1"


@pytest.mark.parametrize("count", [262, 287, 289])
def test_a_vocabulary_of_another_size_than_the_embedding(tmp_path: Path, checkpoint: Checkpoint, count: int) -> None:
    texts = [*PIECES, "more"][:count]
    path = write(tmp_path / "a.gguf", checkpoint, edit=lambda w: w.add_token_list(texts))
    assert refusal(lambda: load_gguf(path)) == (f"{path}: tokenizer.ggml.tokens must agree with the embedding of "
                                                f"288 rows, not be {count} tokens")
    path = write(tmp_path / "b.gguf", checkpoint, edit=lambda w: w.add_vocab_size(count))
    assert refusal(lambda: load_gguf(path)) == (f"{path}: llama.vocab_size must agree with the embedding of "
                                                f"288 rows, not be {count}")


def test_a_model_of_epsilon_1e_5_goes_from_gguf_to_llama2c(tmp_path: Path) -> None:
    shape = dataclasses.replace(SHARED, norm_eps=1e-5)
    loaded = load_gguf(write(tmp_path / "a.gguf", random_checkpoint(shape, 3)))
    assert loaded.shape.norm_eps == float(np.float32(1e-5)) != 1e-5
    save_llama2c(tmp_path / "a.bin", loaded)
    again = load_llama2c(tmp_path / "a.bin")
    assert again.shape == shape
    for name in shape.arrays():
        np.testing.assert_array_equal(again[name], loaded[name])


# The vocabulary


def test_vocabulary(tmp_path: Path, checkpoint: Checkpoint) -> None:
    tokenizer = gguf_tokenizer(read_gguf(write(tmp_path / "a.gguf", checkpoint, edit=add_vocabulary)))
    assert tokenizer.encode("ab!") == [1, 259 + 27, 259 + 1, 3 + ord("!")]
    assert tokenizer.decode(tokenizer.encode("ab!")) == b"ab!"


TYPES = [2, 3, 3] + [6] * 256 + [1] * 29


def edited(*edits: Edit) -> Edit:
    """A vocabulary with more keys."""
    return lambda w: [edit(w) for edit in (add_vocabulary, *edits)] and None


def test_a_vocabulary_with_all_keys_that_change_nothing(tmp_path: Path, checkpoint: Checkpoint) -> None:
    path = write(tmp_path / "a.gguf", checkpoint, edit=edited(
        lambda w: w.add_token_types(TYPES), lambda w: w.add_add_bos_token(True), lambda w: w.add_add_eos_token(False),
        lambda w: w.add_add_space_prefix(True), lambda w: w.add_tokenizer_pre("default"),
        lambda w: w.add_pad_token_id(2), lambda w: w.add_unk_token_id(0), lambda w: w.add_eot_token_id(2),
        lambda w: w.add_remove_extra_whitespaces(False), lambda w: w.add_token_merges(["a b"])))
    tokenizer = gguf_tokenizer(read_gguf(path))
    assert tokenizer.is_plain
    assert tokenizer.encode("ab!") == [1, 259 + 27, 259 + 1, 3 + ord("!")]


@pytest.mark.parametrize(("space", "begin", "tokens"), [
    (True, True, [1, 259 + 27, 259 + 1]), (False, True, [1, 259 + 28]), (True, False, [259 + 27, 259 + 1]),
    (False, False, [259 + 28])])
def test_what_stands_in_front_of_a_text(tmp_path: Path, checkpoint: Checkpoint, space: bool, begin: bool,
                                        tokens: list[int]) -> None:
    path = write(tmp_path / "a.gguf", checkpoint, edit=edited(
        lambda w: w.add_add_space_prefix(space), lambda w: w.add_add_bos_token(begin)))
    assert gguf_tokenizer(read_gguf(path)).encode("ab") == tokens


def test_types_of_tokens(tmp_path: Path, checkpoint: Checkpoint) -> None:
    """``ab`` is unused and ``z`` a control token: no text spells them; ``q`` is user-defined."""
    types = list(TYPES)
    types[259 + 28], types[259 + 25], types[259 + 16] = 5, 3, 4
    path = write(tmp_path / "a.gguf", checkpoint, edit=edited(lambda w: w.add_token_types(types)))
    tokenizer = gguf_tokenizer(read_gguf(path))
    assert tokenizer.encode("abz") == [1, 259 + 27, 259 + 1, 3 + ord("z")]
    assert tokenizer.decode([1, 259 + 25, 259 + 0]) == b"a"
    assert "user-defined token" in refusal(lambda: tokenizer.encode("aqa"))


def test_pieces_that_are_no_utf8(tmp_path: Path, checkpoint: Checkpoint) -> None:
    path = write(tmp_path / "a.gguf", checkpoint, edit=edited())
    raw = path.read_bytes()
    path.write_bytes(raw.replace(b"\x02\0\0\0\0\0\0\0ab", b"\x02\0\0\0\0\0\0\0a\xff"))
    tokenizer = gguf_tokenizer(read_gguf(path))
    assert tokenizer.pieces[-1] == b"a\xff"
    assert tokenizer.decode([259 + 28]) == b"a\xff"


SPACE = "tokenizer.ggml."
VOCABULARIES: dict[str, tuple[Edit, str]] = {
    "none": (nothing, "the file has no tokenizer"),
    "byte-level": (lambda w: w.add_tokenizer_model("gpt2"),
                   "the tokenizer is byte-level BPE (tokenizer.ggml.model is gpt2), which is not read yet, only "
                   "llama's pieces with scores are"),
    "other": (lambda w: w.add_tokenizer_model("bert"), f"{SPACE}model must be llama, not bert"),
    "without tokens": (lambda w: w.add_tokenizer_model("llama"), f"{SPACE}tokens must be an array of strings"),
    "without scores": (lambda w: (w.add_tokenizer_model("llama"), w.add_token_list(PIECES)),
                       f"{SPACE}scores must be an array of floats"),
    "scores of text": (lambda w: (w.add_tokenizer_model("llama"), w.add_token_list(PIECES),
                                  w.add_array(f"{SPACE}scores", ["a"])), f"{SPACE}scores must be an array of floats"),
    "fewer scores": (lambda w: (w.add_tokenizer_model("llama"), w.add_token_list(PIECES), w.add_token_scores([0.5])),
                     "a vocabulary must have at least 3 pieces and a score for each, not 288 pieces and 1 scores"),
    "a score that is none": (lambda w: (w.add_tokenizer_model("llama"), w.add_token_list(PIECES),
                                        w.add_token_scores([float("nan")] * 288)),
                             "a score must be a number, token 0 has nan"),
    "begin": (lambda w: (w.add_tokenizer_model("llama"), w.add_bos_token_id(5)),
              f"{SPACE}bos_token_id must be 1, not 5"),
    "unknown": (lambda w: (w.add_tokenizer_model("llama"), w.add_unk_token_id(3)),
                f"{SPACE}unknown_token_id must be 0, not 3"),
    "end in front": (edited(lambda w: w.add_add_eos_token(True)),
                     f"{SPACE}add_eos_token must be false, as nothing else is done here, not true"),
    "spaces": (edited(lambda w: w.add_remove_extra_whitespaces(True)),
               f"{SPACE}remove_extra_whitespaces must be false, as nothing else is done here, not true"),
    "characters": (edited(lambda w: w.add_precompiled_charsmap(b"abc")),
                   f"the key {SPACE}precompiled_charsmap is not known, and may change what the model computes"),
    "space that is none": (edited(lambda w: w.add_uint32(f"{SPACE}add_space_prefix", 0)),
                           f"{SPACE}add_space_prefix must be true or false, not 0"),
    "fewer types": (edited(lambda w: w.add_token_types(TYPES[:-1])),
                    f"{SPACE}token_type must be an array of integers, one for each of 288 tokens"),
    "types of text": (edited(lambda w: w.add_array(f"{SPACE}token_type", ["a"])),
                      f"{SPACE}token_type must be an array of integers, one for each of 288 tokens"),
    "type 0": (edited(lambda w: w.add_token_types([*TYPES[:-1], 0])),
               f"{SPACE}token_type must be from 1 to 6, token 287 has 0"),
    "byte that is none": (edited(lambda w: w.add_token_types([*TYPES[:-1], 6])),
                          f"{SPACE}token_type must be 6 where a piece spells a byte, and only there: token 287, "
                          f"b'ab', has 6"),
    "byte that is text": (edited(lambda w: w.add_token_types([*TYPES[:3], 1, *TYPES[4:]])),
                          f"{SPACE}token_type must be 6 where a piece spells a byte, and only there: token 3, "
                          f"b'<0x00>', has 1"),
}


@pytest.mark.parametrize("case", VOCABULARIES)
def test_wrong_vocabulary(tmp_path: Path, checkpoint: Checkpoint, case: str) -> None:
    edit, message = VOCABULARIES[case]
    file = read_gguf(write(tmp_path / "a.gguf", checkpoint, edit=edit))
    assert refusal(lambda: gguf_tokenizer(file)) == message


def test_an_end_token_of_another_number(tmp_path: Path, checkpoint: Checkpoint) -> None:
    path = write(tmp_path / "a.gguf", checkpoint, edit=lambda w: (w.add_tokenizer_model("llama"),
                                                                  w.add_eos_token_id(7)))
    assert refusal(lambda: gguf_tokenizer(read_gguf(path))) == f"{SPACE}eos_token_id must be 2, not 7"
