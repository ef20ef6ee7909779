"""``speculoos demo``: what it computes, compares, writes and refuses."""

import dataclasses
import json
import os
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from gen.errors import UserError
from sim_models.golden.tile.engine.compute_engine import cycles
from sim_models.params.tile.engine.compute_engine import ComputeEngineParams
from sim_models.transformer.checkpoint import Checkpoint, ModelShape, random_checkpoint
from sim_models.transformer.decoding import generate
from sim_models.transformer.formats.llama2c import save_llama2c, save_tokenizer
from sim_models.transformer.int8_model import Int8Model
from sim_models.transformer.smollm2 import smollm2_file
from sim_models.transformer.tokenizer import Tokenizer, byte_pieces
from speculoos import plots
from speculoos.bench.baselines import baseline_engines
from speculoos.cli import main
from speculoos.demo import demo
from speculoos.demo.models import GAMMA, Models, Spoken, speak
from tb.tile.engine import engine_meter
from tb.tile.engine.engine_meter import PassMeasured
from tests.designs.run import BUILDS
from tests.models.transformer.formats.gguf_files import write

Capture = pytest.CaptureFixture[str]

TARGET = ModelShape(dim=16, hidden_dim=24, n_layers=3, n_heads=2, n_kv_heads=1, vocab_size=262, max_seq_len=40)
DRAFT = ModelShape(dim=8, hidden_dim=12, n_layers=1, n_heads=2, n_kv_heads=2, vocab_size=262, max_seq_len=48)
SMALL = ComputeEngineParams(rows=4, cols=4, activation_depth=64, weight_depth=64, psum_depth=64)
TOKENIZER = Tokenizer([*byte_pieces(), b" a", b"b", b"\n"], np.zeros(262, np.float32))
PROMPT = "bb b"                     # BOS, the byte of a space, "b", "b", the byte of a space, "b"
ENGINES = ("auto", "systolic-only", "vector-only")


@pytest.fixture(autouse=True)
def in_folder_with_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands run in a folder that holds a random pair."""
    monkeypatch.chdir(tmp_path)
    save_llama2c("target.bin", random_checkpoint(TARGET, 1))
    save_llama2c("draft.bin", random_checkpoint(DRAFT, 2))
    save_tokenizer("t.bin", TOKENIZER)


def arguments(*more: str, draft: bool = True) -> list[str]:
    return ["demo", "--model", "target.bin", "--tokenizer", "t.bin", *(["--draft", "draft.bin"] if draft else []),
            "--prompt", PROMPT, "--engine", "engine_small", "--build-dir", str(BUILDS), "-o", "out", *more]


class ModelMeter:
    """An engine's meter that simulates nothing, for what surrounds the RTL."""

    def __init__(self, p: ComputeEngineParams, *_: Any, **__: Any) -> None:
        self.p, self.compared = p, 0

    def measure_pass(self, gemms: Any, mode: str = "auto", repeats: int = 2) -> PassMeasured:
        self.compared += sum(len(x) * w.shape[1] for _, x, w in gemms)
        busy = sum(cycles(self.p, len(x), *w.shape, mode) for _, x, w in gemms)
        return PassMeasured(busy, busy, 0)


@pytest.fixture
def no_rtl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_meter, "EngineMeter", ModelMeter)
    monkeypatch.setattr(demo, "_write_verilog", lambda folder, engines, report: dict.fromkeys(engines))


def vocabulary(writer: gguf.GGUFWriter) -> None:
    """The tokenizer in a GGUF file."""
    writer.add_tokenizer_model("llama")
    writer.add_token_list([p.replace(b" ", "▁".encode()) for p in TOKENIZER.pieces])
    writer.add_token_scores([0.0] * 262)


def spoken(prompt: str = PROMPT, count: int = 20, draft_seed: int = 2, same: bool = False) -> tuple[Models, Spoken]:
    target = random_checkpoint(TARGET, 1)
    models = Models(target, target if same else random_checkpoint(DRAFT, draft_seed), TOKENIZER, prompt)
    return models, speak(models, count)


def test_the_demonstration_runs_compares_and_writes(capsys: Capture) -> None:
    code = main([*arguments("--tokens", "12"), "--json", "d.json"])
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    data = json.loads(Path("d.json").read_text())
    rows = {(r["model"], r["phase"], r["engine"]): r for r in data["rows"]}
    assert {(model, phase): rows[model, phase, "auto"]["m"] for model, phase, _ in rows} == {
        ("target", "prompt"): 6, ("target", "verify"): GAMMA + 1, ("target", "decode"): 1,
        ("draft", "prompt"): 6, ("draft", "decode"): 1}
    outputs = 3 * (2 * 16 + 2 * 8 + 2 * 24 + 16) + 262
    for (model, phase, engine), r in rows.items():
        if model == "target":
            assert (r["matrices"], r["compared"]) == (22, outputs * r["m"])
        assert r["cycles"] >= rows[model, phase, "auto"]["cycles"] or engine == "vector-only"
    assert data["compared"] == sum(r["compared"] for r in rows.values())
    assert rows["target", "decode", "systolic-only"]["cycles"] > 3 * rows["target", "decode", "auto"]["cycles"]
    assert data["tokens"] == generate(Int8Model(random_checkpoint(TARGET, 1)), data["prompt_tokens"], 12)
    assert "with the draft's help: the same tokens, 12 in" in out
    assert f"{data['compared']} results of {3 * 22 + 2 * 8} GEMMs on 3 engines: every bit equal" in out
    assert out.splitlines()[-2:] == [f"next: {demo.NEXT}", "wrote d.json"]
    assert sorted(os.listdir("out")) == ["demo.json", "demo.png", "verilog"]
    assert json.loads(Path("out/demo.json").read_text())["rows"] == data["rows"]
    for name, p in baseline_engines(SMALL).items():
        manifest = json.loads(Path("out/verilog", name, "manifest.json").read_text())
        assert manifest["top"] == p.unit_name("compute_engine")


def test_recorded_operands_are_those_of_the_passes() -> None:
    _, said = spoken()
    passes = {(p.model, p.phase): p for p in said.passes}
    assert list(passes) == [("target", "prompt"), ("target", "verify"), ("target", "decode"), ("draft", "prompt"),
                            ("draft", "decode")]
    names = [f"layers.{i}.{w}" for i in range(3) for w in ("wq", "wk", "wv", "wo", "w1", "w3", "w2")] + ["wcls"]
    for phase in ("prompt", "verify", "decode"):
        assert [name for name, _, _ in passes["target", phase].gemms] == names
    # A row depends on its position only: the last token of the prompt is the first row of the verification.
    for (_, whole, _), (_, verified, _) in zip(passes["target", "prompt"].gemms, passes["target", "verify"].gemms,
                                               strict=True):
        assert verified.shape[0] == GAMMA + 1
        assert (verified[0] == whole[-1]).all()


@pytest.mark.parametrize("prompt", ["", "a", "abba b"])
@pytest.mark.parametrize("seed", [2, 3])
def test_speculation_says_the_same(prompt: str, seed: int) -> None:
    models, said = spoken(prompt, 30, seed)
    assert said.tokens == generate(Int8Model(models.target), said.prompt, 30)
    assert said.speculated == said.tokens
    assert said.rounds is not None
    assert all(0 <= r.accepted <= len(r.drafted) <= GAMMA for r in said.rounds)


def test_a_perfect_draft_is_always_right() -> None:
    _, said = spoken(count=27, same=True)
    assert said.rounds is not None
    assert [r.accepted for r in said.rounds] == [GAMMA] * 3
    assert said.speculated == said.tokens


def test_the_last_positions_are_used_and_not_exceeded() -> None:
    _, said = spoken(count=99)
    assert len(said.prompt) + len(said.tokens) == TARGET.max_seq_len + 1
    assert said.speculated == said.tokens
    assert sum(r.accepted + 1 for r in said.rounds or []) == len(said.tokens)


@pytest.mark.parametrize("positions", [15, 20, 33, 40])
def test_the_target_goes_on_alone_where_the_drafts_context_ends(positions: int) -> None:
    target = random_checkpoint(TARGET, 1)
    short = random_checkpoint(dataclasses.replace(TARGET, max_seq_len=positions), 1)
    said = speak(Models(target, short, TOKENIZER, PROMPT), 99)
    assert said.speculated == said.tokens == generate(Int8Model(target), said.prompt, 35)
    assert said.rounds is not None
    at, drafted = len(said.prompt), []
    for r in said.rounds:
        drafted += range(at, at + len(r.drafted))
        at += r.accepted + 1
    # the draft is always right; a token is drafted behind all that its context holds, the target's last never
    assert max(drafted) in (min(positions, 39), min(positions, 39) - 1)
    assert {(p.model, p.phase): p.m for p in said.passes}["target", "verify"] == GAMMA + 1


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_few_tokens_are_enough(count: int) -> None:
    """A verification is shown with all its rows, however little is said."""
    for same in (True, False):
        _, said = spoken(count=count, same=same)
        assert said.speculated == said.tokens
        assert len(said.tokens) == count
        assert [p.m for p in said.passes] == [6, GAMMA + 1, 1, 6, 1]


def test_a_context_of_a_million_positions_takes_no_memory() -> None:
    model = random_checkpoint(dataclasses.replace(TARGET, max_seq_len=1 << 20), 1)
    tracemalloc.start()
    said = speak(Models(model, model, TOKENIZER, PROMPT), 20)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert said.speculated == said.tokens
    assert peak < 64 << 20


@pytest.mark.filterwarnings("error")
def test_weights_beyond_float32_are_one_sentence() -> None:
    model = random_checkpoint(TARGET, 1)
    huge = Checkpoint(TARGET, {name: array * np.float32(1e30) for name, array in model.arrays.items()})
    for target, draft in ((huge, None), (model, huge)):
        with pytest.raises(UserError) as caught:
            speak(Models(target, draft, TOKENIZER, PROMPT), 20)
        assert str(caught.value) == ("the models cannot be computed: the weights lead to numbers that float32 cannot "
                                     "hold")


def test_a_prompt_without_tokens_is_refused() -> None:
    bare = Tokenizer(TOKENIZER.pieces, TOKENIZER.scores, begin=False)
    with pytest.raises(UserError, match=r"^the prompt has no tokens$"):
        speak(Models(random_checkpoint(TARGET, 1), None, bare, ""), 3)


@pytest.mark.usefixtures("no_rtl")
def test_without_a_draft_the_own_tokens_are_verified(capsys: Capture) -> None:
    code = main(arguments("--tokens", "9", "--layers", "1", draft=False))
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    assert "no draft" in out
    assert "target: 8 of its 22 weight matrices were run" in out
    assert "verify, auto: 8 matrices equal" in out
    assert "draft, " not in out


def test_one_wrong_bit_is_found(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def product(x: np.ndarray, w: np.ndarray) -> np.ndarray:
        out = x.astype(np.int64) @ w
        out[-1, -1] ^= 1
        return out
    monkeypatch.setattr(engine_meter, "_product", product)
    code = main(arguments())
    err = capsys.readouterr().err
    assert code == 1
    assert err.startswith("speculoos: error: the RTL differs from its model: results of layers.0.wq[5, 15]")
    assert "1 of 96 differ" in err


@pytest.mark.usefixtures("no_rtl")
def test_another_token_is_not_success(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Spoken, "speculated", [])
    code = main(arguments())
    assert code == 1
    assert "with the draft's help: OTHER TOKENS" in capsys.readouterr().out


@pytest.mark.usefixtures("no_rtl")
def test_without_matplotlib_there_is_a_hint(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code = main(arguments("--layers", "2"))
    assert code == 0
    assert plots.HINT in capsys.readouterr().out
    assert os.listdir("out") == ["demo.json"]


@pytest.mark.parametrize(("most", "asked", "target"), [
    (10**9, None, {"layers.0", "layers.1", "layers.2", "wcls"}),
    (0, None, {"layers.0", "layers.1"}),
    (10**9, 1, {"layers.0", "wcls"}),
    (0, 3, {"layers.0", "layers.1", "layers.2"}),
])
def test_layers_that_fit(monkeypatch: pytest.MonkeyPatch, most: int, asked: int | None, target: set[str]) -> None:
    monkeypatch.setattr(demo, "MOST_CYCLES", most)
    taken = demo.chosen(spoken()[1].passes, [SMALL], asked)
    assert taken["target"] == target
    assert taken["draft"] - {"wcls"} == {"layers.0"}


def test_more_layers_than_there_are() -> None:
    with pytest.raises(UserError, match="--layers asks for 4 layers, the target has 3"):
        demo.chosen(spoken()[1].passes, [SMALL], 4)


@pytest.mark.usefixtures("no_rtl")
def test_text_stays_on_its_line(capsys: Capture) -> None:
    assert main([*arguments("--layers", "1"), "--prompt", "a\n\x1b[31m\u202eb\udc80"]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first == "prompt:   a ?[31m?b?"


def test_a_terminal_may_know_few_characters() -> None:
    script = ("import sys; from speculoos.demo import demo; from speculoos.demo.models import *\n"
              "from speculoos.report import Report\n"
              "demo.load_models = lambda *a: Models(None, None, None, 'caf\\u00e9 \\u2603')\n"
              "demo.speak = lambda models, count: print(models.prompt) or sys.exit(0)\n"
              "from speculoos.cli import main; main(['demo'])")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True,
                          env={**os.environ, "PYTHONIOENCODING": "latin-1", "PYTHONPATH": str(BUILDS.parents[1])})
    assert done.stdout == b"caf\xe9 ?\n"


@pytest.mark.parametrize(("changes", "message"), [
    (["--model", "none.bin"], "none.bin: cannot be read: No such file or directory"),
    (["--model", "."], ". is not a regular file"),
    (["--draft", "t.bin"], None),
    (["--draft", "other.bin"], "the draft must have the target's vocabulary of 262 tokens, not 300"),
    (["--tokenizer", "target.bin"], None),
    (["--tokens", "0"], "argument --tokens: a number from 1 to 4096 was wanted, not '0'; see "
                        "`speculoos demo --help`"),
    (["--seed", "1.5"], "argument --seed: a seed is an integer from 0 to 2147483647, not '1.5'; see "
                        "`speculoos demo --help`"),
    (["--layers", "4"], "--layers asks for 4 layers, the target has 3"),
    (["--prompt", "b" * 40], "the prompt has 42 tokens, the target has 40 positions: at most 31 leave room for 8 "
                             "drafts"),
    (["--draft", "short.bin"], "the prompt has 6 tokens, the draft has 14 positions: at most 5 leave room for 8 "
                               "drafts"),
    (["--model", "narrow.toml"], None),
    (["--tokenizer", "narrow.toml"], None),
    (["--engine", "pe"], "--engine needs a compute_engine, and pe is a pe"),
    (["--engine", "narrow.toml"], "--engine needs an engine that takes int8 operands, operand_width is 7"),
    (["-o", "target.bin"], "--output target.bin: {here}/target.bin is not a folder"),
    (["-o", "target.bin/x"], "--output target.bin/x: {here}/target.bin is not a folder"),
])
def test_wrong_input_is_one_sentence(capsys: Capture, changes: list[str], message: str | None) -> None:
    save_llama2c("other.bin", random_checkpoint(ModelShape(
        dim=8, hidden_dim=8, n_layers=1, n_heads=2, n_kv_heads=1, vocab_size=300, max_seq_len=16), 1))
    save_llama2c("short.bin", random_checkpoint(dataclasses.replace(DRAFT, max_seq_len=14), 1))
    Path("narrow.toml").write_text('name = "narrow"\nblock = "compute_engine"\nparams.operand_width = 7\n')
    assert main([*arguments(), *changes]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    wanted = message and message.replace("{here}", str(Path.cwd()))
    assert err == f"speculoos: error: {wanted}\n" if wanted else changes[1] in err
    assert not Path("out").exists()


def test_a_target_needs_a_tokenizer(capsys: Capture) -> None:
    assert main(["demo", "--model", "target.bin"]) == 2
    assert "target.bin brings no tokenizer: name its tokenizer.bin with --tokenizer" in capsys.readouterr().err


@pytest.mark.usefixtures("no_rtl")
def test_gguf_brings_its_own_tokenizer(capsys: Capture) -> None:
    write(Path("m.gguf"), random_checkpoint(TARGET, 1), edit=vocabulary)
    code = main(["demo", "--model", "m.gguf", "--engine", "engine_small", "--layers", "1", "--build-dir",
                 str(BUILDS), "-o", "out"])
    out = capsys.readouterr().out
    assert code == 0
    assert out.startswith("prompt:   Once upon a time\n")


@pytest.mark.usefixtures("no_rtl")
def test_a_tokenizer_that_cannot_be_read_can_be_replaced(capsys: Capture) -> None:
    write(Path("m.gguf"), random_checkpoint(TARGET, 1), edit=lambda w: w.add_tokenizer_model("gpt2"))
    assert main(["demo", "--model", "m.gguf"]) == 2
    assert capsys.readouterr().err == (
        "speculoos: error: m.gguf: the tokenizer is byte-level BPE (tokenizer.ggml.model is gpt2), which is not read "
        "yet, only llama's pieces with scores are\n")
    write(Path("own.gguf"), random_checkpoint(TARGET, 1), edit=vocabulary)
    for tokenizer in ("t.bin", "own.gguf"):
        assert main(["demo", "--model", "m.gguf", "--tokenizer", tokenizer, "--draft", "m.gguf", "--engine",
                     "engine_small", "--layers", "1", "--build-dir", str(BUILDS), "-o", "out"]) == 0
        assert "the same tokens" in capsys.readouterr().out


def test_smollm2_is_refused_before_it_is_read(capsys: Capture) -> None:
    before = time.process_time()
    assert main(["demo", "--model", str(smollm2_file())]) == 2
    assert "the tokenizer is byte-level BPE" in capsys.readouterr().err
    assert time.process_time() - before < 3


def test_the_shipped_pair_speaks(capsys: Capture) -> None:
    code = main(["demo", "--engine", "engine_small", "--layers", "1", "--tokens", "24", "--build-dir", str(BUILDS),
                 "-o", "out", "--json", "d.json"])
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    assert "with the draft's help: the same tokens, 24 in" in out
    data = json.loads(Path("d.json").read_text())
    assert data["same_tokens"] is True
    # English words, not noise: the text is made of them, and the draft guesses some.
    assert {"the", "and", "of"} & set(data["text"].split())
    assert sum(r["accepted"] for r in data["rounds"]) > len(data["rounds"])
