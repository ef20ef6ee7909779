"""The shipped pair: what its files hold, how well it does, and that speculation with it is lossless."""

from pathlib import Path

import numpy as np
import pytest

from sim_models.transformer import measure
from sim_models.transformer.checkpoint import CheckpointError, ModelShape, random_checkpoint
from sim_models.transformer.decoding import LanguageModel, first_choices, generate
from sim_models.transformer.float_model import FloatModel
from sim_models.transformer.formats.llama2c import save_llama2c
from sim_models.transformer.int8_model import Int8Model
from sim_models.transformer.pair import DATA, Pair, load_pair

PROMPTS = 6
TOKENS = 64
TINY = ModelShape(dim=8, hidden_dim=8, n_layers=1, n_heads=2, n_kv_heads=1, vocab_size=16, max_seq_len=64)


@pytest.fixture(scope="module")
def pair() -> Pair:
    return load_pair()


@pytest.fixture(scope="module")
def prompts(pair: Pair) -> list[list[int]]:
    return [pair.tokenizer.encode(p) for p in pair.prompts[::len(pair.prompts) // PROMPTS][:PROMPTS]]


@pytest.fixture(scope="module")
def float_texts(pair: Pair, prompts: list[list[int]]) -> list[tuple[int, np.ndarray]]:
    return measure.greedy_text(FloatModel(pair.target), prompts, TOKENS)


@pytest.fixture(scope="module")
def int8_texts(pair: Pair, prompts: list[list[int]]) -> list[tuple[int, np.ndarray]]:
    return measure.greedy_text(Int8Model(pair.target), prompts, TOKENS)


def test_sizes(pair: Pair) -> None:
    target, draft = pair.target.shape, pair.draft.shape
    assert 300_000 <= target.parameters <= 1_000_000
    assert draft.parameters * 10 <= target.parameters
    assert draft.n_layers <= 2
    assert target.n_kv_heads < target.n_heads
    for shape in (target, draft):
        assert all(n % 8 == 0 for name in ("wq", "wk", "w1", "w2", "wcls") for n in shape.gemm(name))
        assert shape.vocab_size == pair.tokenizer.vocab_size == 512
        assert shape.max_seq_len == 256
    assert sum(p.stat().st_size for p in DATA.iterdir()) < 3_000_000


def test_prompts_and_vocabulary(pair: Pair) -> None:
    assert len(pair.prompts) == len(set(pair.prompts)) == 48
    for prompt in pair.prompts:
        tokens = pair.tokenizer.encode(prompt)
        assert pair.tokenizer.decode(tokens) == prompt.encode()
        assert len(tokens) < 70
        assert not any(3 <= t < 259 for t in tokens), "a byte token in plain text"


def test_float_acceptance_is_as_measured(pair: Pair, float_texts: list) -> None:
    got = measure.acceptance(FloatModel(pair.draft), float_texts)
    assert got.tokens == PROMPTS * TOKENS
    assert got.first_token >= 0.76
    assert got.accepted_length >= 2.6


def test_int8_acceptance_is_as_measured(pair: Pair, int8_texts: list) -> None:
    """The integer model is the same on every machine, so its counts are too."""
    got = measure.acceptance(Int8Model(pair.draft), int8_texts)
    assert (round(got.first_token * got.tokens), got.tokens) == (299, 384)
    assert (round(got.accepted_length * got.rounds), got.rounds) == (263, 90)


def test_int8_agrees_with_float32(pair: Pair, float_texts: list) -> None:
    share, count = measure.agreement(Int8Model(pair.target), float_texts)
    assert count == PROMPTS * TOKENS
    assert share >= 0.97


def speculate(target: LanguageModel, draft: LanguageModel, prompt: list[int], count: int,
              gamma: int) -> tuple[list[int], list[int]]:
    """Draft, verify, roll back: the tokens, and the accepted drafts of each round."""
    t_cache, d_cache = target.new_cache(), draft.new_cache()
    text = list(prompt)
    target.forward(text[:-1], t_cache)
    accepted = []
    while len(text) < len(prompt) + count:
        drafts: list[int] = []
        for _ in range(gamma):
            rows = [*text, *drafts][d_cache.length:]
            drafts.append(int(first_choices(draft.forward(rows, d_cache)[-1])))
        said = first_choices(target.forward([text[-1], *drafts], t_cache)).tolist()
        taken = next((i for i, (d, s) in enumerate(zip(drafts, said, strict=False)) if d != s), gamma)
        text += said[:taken + 1]
        accepted.append(taken)
        t_cache.roll_back(len(text) - 1)
        d_cache.roll_back(min(d_cache.length, len(text) - 1))
        assert t_cache.length == len(text) - 1
    return text[len(prompt):len(prompt) + count], accepted


@pytest.mark.parametrize("gamma", [1, 3, 8])
def test_speculation_changes_no_token_and_accepts_as_predicted(pair: Pair, gamma: int,
                                                               int8_texts: list) -> None:
    n, tokens = int8_texts[1]
    draft = Int8Model(pair.draft)
    got, accepted = speculate(Int8Model(pair.target), draft, tokens[:n].tolist(), TOKENS, gamma)
    assert got == tokens[n:].tolist()
    same = first_choices(draft.forward(tokens[:-1], draft.new_cache())[n - 1:]) == tokens[n:]
    predicted = measure.accepted_lengths(same, gamma)
    assert accepted[:len(predicted)] == predicted


@pytest.mark.parametrize(("same", "gamma", "lengths"), [
    ("1111 1111 1111", 4, [4, 4]),          # a bonus token follows each round, the rest is too short
    ("1101 0111 1111", 4, [2, 1, 4]),
    ("0000 0", 4, [0]),
    ("1111", 4, []),
    ("1111 0", 4, [4]),
    ("10", 1, [1]),
])
def test_accepted_lengths_by_hand(same: str, gamma: int, lengths: list[int]) -> None:
    flags = np.array([c == "1" for c in same.replace(" ", "")])
    assert measure.accepted_lengths(flags, gamma) == lengths


def test_a_model_agrees_with_itself_and_texts_may_be_too_short() -> None:
    model = FloatModel(random_checkpoint(TINY, 1))
    texts = measure.greedy_text(model, [[1, 2], [1, 3, 4]], 12)
    assert [(n, len(t)) for n, t in texts] == [(2, 14), (3, 15)]
    assert measure.agreement(model, texts) == (1.0, 24)
    assert measure.acceptance(model, texts, 4) == measure.Acceptance(1.0, 4.0, 4, 24, 4)
    with pytest.raises(ValueError, match=r"^a text of more than 12 generated tokens is needed, none came$"):
        measure.acceptance(model, texts, 12)
    assert measure.greedy_text(model, [[1]], 5)[0][1][1:].tolist() == generate(model, [1], 5)


def copy_pair(folder: Path) -> Path:
    for file in DATA.glob("*.*"):
        (folder / file.name).write_bytes(file.read_bytes())
    return folder


def test_draft_of_another_vocabulary_is_refused(tmp_path: Path) -> None:
    save_llama2c(copy_pair(tmp_path) / "draft.bin", random_checkpoint(TINY, 1))
    with pytest.raises(CheckpointError) as caught:
        load_pair(tmp_path)
    assert str(caught.value) == "the draft must have the target's vocabulary of 512 tokens, not 16"


def test_prompts_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (copy_pair(tmp_path) / "prompts.txt").write_bytes(b"\xff\n")
    with pytest.raises(CheckpointError, match=r"^.*/prompts.txt: prompts must be UTF-8 text$"):
        load_pair(tmp_path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    (copy_pair(tmp_path) / "tokenizer.bin").unlink()
    with pytest.raises(CheckpointError, match=r"^.*/tokenizer.bin: cannot be read: No such file"):
        load_pair(tmp_path)
