"""The training script: its text, its vocabulary, its model, and a run of a few steps."""

import dataclasses
import itertools
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from scripts import pair_text, train_pair
from scripts.torch_llama import TorchLlama
from sim_models.transformer.checkpoint import ModelShape, random_checkpoint
from sim_models.transformer.float_model import FloatModel
from sim_models.transformer.formats.llama2c import load_llama2c
from sim_models.transformer.pair import load_pair
from sim_models.transformer.tokenizer import BOS, EOS

SHAPE = ModelShape(dim=24, hidden_dim=40, n_layers=2, n_heads=6, n_kv_heads=2, vocab_size=48, max_seq_len=32)
NAMES = ["".join(c) + "el" for c in itertools.product("ABDEG", "aeiou", "bdfghklm")]
CHAPTERS = [f"In the year {n} the king of the north spoke to {NAMES[3 * n]} and the people of the land. "
            f"{NAMES[3 * n + 1]} said to him, \"We will hear the words of {NAMES[3 * n + 2]}.\"\n"
            f"He sent {n} men.\n" * 9 for n in range(60)]

OSIS = """<div type="book"/><title>Matthew</title><chapter n="1" osisID="M.1" sID="M.1"/>
<div sID="g1" type="x-p"/><w lemma="strong:G1">The</w> <w>book</w>,<note placement="foot">
<reference>1:1 </reference>Or not</note><w>the</w> <w>son</w> \u201cof\u201d David\u2019s.
<div eID="g1" type="x-p"/><div sID="g2" type="x-p"/>%s <chapter eID="M.1"/>
<title>ignored</title><p>glossary</p>"""


def test_markup_becomes_plain_paragraphs() -> None:
    filler = "So it was written. " * 12
    assert list(pair_text._chapters(OSIS % filler)) == [
        'The book, the son "of" David\'s.\n' + filler.strip()]


def test_short_chapters_are_left_out() -> None:
    assert list(pair_text._chapters(OSIS % "Short.")) == []


def test_a_missing_command_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(pair_text.TextError, match=r"^apt-get cannot be run: No such file or directory$"):
        pair_text.fetch_text(tmp_path / "build")


def test_vocabulary_repeats_and_pieces_stay_within_words() -> None:
    one, two = (pair_text.train_vocabulary(CHAPTERS, 320) for _ in range(2))
    assert one.pieces == two.pieces
    assert one.vocab_size == 320
    learned = [p.decode() for p in one.pieces[259:]]
    assert " the" in learned
    assert all(pair_text.WORD.fullmatch(p) for p in learned)
    text = " ".join(CHAPTERS[3:5])
    assert one.encode(text)[1:] == pair_text.tokenise([text], one)[1:-1].tolist()
    assert one.decode(one.encode(text)) == text.encode()


def test_a_text_of_few_words_is_refused() -> None:
    with pytest.raises(pair_text.TextError) as caught:
        pair_text.train_vocabulary(["ab ab"], 300)
    assert str(caught.value) == "the text must have pieces for a vocabulary of 300, it has 264"


def test_stream_and_starts() -> None:
    tokenizer = pair_text.train_vocabulary(CHAPTERS, 320)
    stream = pair_text.tokenise(CHAPTERS, tokenizer)
    assert np.count_nonzero(stream == BOS) == np.count_nonzero(stream == EOS) == len(CHAPTERS)
    starts = pair_text.sentence_starts(stream, tokenizer, 100)
    assert starts[0] == 1
    assert starts[-1] <= len(stream) - 100
    ends = {tokenizer.pieces[t][-1:] for t in stream[starts - 1]}
    assert ends <= {b".", b"\n", b'"'}


def test_prompts_end_at_words() -> None:
    prompts = pair_text.held_out_prompts(CHAPTERS, 10)
    assert len(prompts) == len(set(prompts)) == 10
    for prompt, chapter in zip(prompts, CHAPTERS[::6], strict=True):
        assert 30 <= len(prompt) <= 90
        assert chapter.replace("\n", " ").startswith(prompt + " ")


def test_torch_model_equals_the_numpy_model() -> None:
    checkpoint = random_checkpoint(SHAPE, 4)
    model, ours = TorchLlama.load(checkpoint), FloatModel(checkpoint)
    tokens = np.random.default_rng(5).integers(0, 48, (3, 32))
    with torch.no_grad():
        whole = model(torch.from_numpy(tokens)).numpy()
        cache: list = []
        parts = [model(torch.from_numpy(tokens[:, :9]), cache)]
        parts += [model(torch.from_numpy(tokens[:, i:i + 1]), cache) for i in range(9, 32)]
    for row, wanted in zip(tokens, whole, strict=True):
        np.testing.assert_allclose(ours.forward(row, ours.new_cache()), wanted, atol=2e-5)
    np.testing.assert_allclose(torch.cat(parts, 1).numpy(), whole, atol=2e-5)
    back = model.checkpoint()
    assert all(np.array_equal(back[n], checkpoint[n]) for n in SHAPE.arrays())


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The script with little text and a small target."""
    monkeypatch.setattr(pair_text, "fetch_text", lambda build: CHAPTERS)
    monkeypatch.setattr(train_pair, "TARGET", dataclasses.replace(train_pair.DRAFT, hidden_dim=64))
    monkeypatch.setattr(train_pair, "MEASURED", 20)


def run(monkeypatch: pytest.MonkeyPatch, folder: Path, *options: str) -> None:
    folders = ["--output", str(folder), "--build", str(folder)]
    monkeypatch.setattr(sys, "argv", ["train_pair", *folders, *options])
    train_pair.main()


@pytest.mark.usefixtures("small")
def test_a_few_steps_write_a_pair_that_repeats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                               capsys: pytest.CaptureFixture[str]) -> None:
    steps = ("--target-steps", "4", "--draft-steps", "3", "--windows", "5")
    for folder in ("a", "b"):
        run(monkeypatch, tmp_path / folder, *steps)
    said = capsys.readouterr().out
    assert "target: step 4/4, loss" in said
    assert "float32: first token accepted" in said
    for name in ("target.bin", "draft.bin", "tokenizer.bin", "prompts.txt"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    pair = load_pair(tmp_path / "a")
    assert len(pair.prompts) == 3
    assert np.abs(pair.target["rms_final"] - 1).max() > 0

    target = load_llama2c(tmp_path / "a" / "target.bin")
    draft = (tmp_path / "a" / "draft.bin").read_bytes()
    run(monkeypatch, tmp_path / "a", "--only", "draft", "--draft-steps", "4", "--windows", "5")
    assert np.array_equal(load_llama2c(tmp_path / "a" / "target.bin")["wq"], target["wq"])
    assert (tmp_path / "a" / "draft.bin").read_bytes() != draft


def test_without_torch_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(SystemExit) as caught:
        run(monkeypatch, tmp_path)
    assert caught.value.code == ("error: training needs PyTorch, which is not installed: "
                                 "pip install 'speculoos[train]'")


def test_evaluating_what_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit) as caught:
        run(monkeypatch, tmp_path, "--evaluate")
    assert caught.value.code == f"error: {tmp_path}/target.bin: cannot be read: No such file or directory"
