"""Checkpoints: shapes that make sense, arrays that fit them, rotary tables."""

import dataclasses

import numpy as np
import pytest

from sim_models.transformer.checkpoint import (
    STORIES260K,
    Checkpoint,
    CheckpointError,
    ModelShape,
    random_checkpoint,
    rotary_tables,
)
from sim_models.transformer.int8_model import Int8Model

SHAPE = ModelShape(dim=16, hidden_dim=24, n_layers=2, n_heads=4, n_kv_heads=2, vocab_size=32, max_seq_len=8)
UNSHARED = dataclasses.replace(SHAPE, shared_classifier=False)


def test_stories260k_has_its_published_size() -> None:
    assert STORIES260K.parameters == 260032
    assert STORIES260K.gemm("wk") == (64, 32)
    assert STORIES260K.gemm("w2") == (172, 64)
    assert STORIES260K.gemm("wcls") == (64, 512)
    assert (STORIES260K.head_dim, STORIES260K.kv_dim) == (8, 32)


def test_random_weights_repeat() -> None:
    one, two, other = (random_checkpoint(SHAPE, seed) for seed in (5, 5, 6))
    np.testing.assert_array_equal(one["w1"], two["w1"])
    assert not np.array_equal(one["w1"], other["w1"])


def test_arrays_are_checked() -> None:
    arrays = dict(random_checkpoint(SHAPE, 1).arrays)
    with pytest.raises(CheckpointError, match=r"^weights w1 must have shape 2 x 24 x 16, not 2 x 16 x 24$"):
        Checkpoint(SHAPE, arrays | {"w1": arrays["w2"]})
    with pytest.raises(CheckpointError, match=r"^weights wcls of shape 32 x 16 are missing$"):
        Checkpoint(UNSHARED, arrays)
    with pytest.raises(CheckpointError, match=r"^weights must be among tok_emb, .*, rms_final, not wcls$"):
        Checkpoint(SHAPE, arrays | {"wcls": arrays["tok_emb"]})


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("change", "message"), [
    ({"norm_eps": float("nan")}, "norm_eps must be positive and finite as float32, not nan"),
    ({"norm_eps": -1e-5}, "norm_eps must be positive and finite as float32, not -1e-05"),
    ({"norm_eps": 1e-60}, "norm_eps must be positive and finite as float32, not 1e-60"),
    ({"norm_eps": 1e60}, "norm_eps must be positive and finite as float32, not 1e+60"),
    ({"rope_theta": float("inf")}, "rope_theta must be at least 1 and finite, not inf"),
    ({"rope_theta": 1e-300}, "rope_theta must be at least 1 and finite, not 1e-300"),
    ({"rope_theta": float("nan")}, "rope_theta must be at least 1 and finite, not nan"),
])
def test_numbers_that_a_model_cannot_compute_with(change: dict[str, float], message: str) -> None:
    with pytest.raises(CheckpointError) as caught:
        dataclasses.replace(SHAPE, **change)
    assert str(caught.value) == message


def test_a_shortened_model_says_the_same() -> None:
    """Tables and caches are as long as its positions, which a file may give as a million."""
    whole = random_checkpoint(dataclasses.replace(SHAPE, max_seq_len=1 << 20), 1)
    short = whole.shortened(8)
    assert (whole.shape.max_seq_len, short.shape.max_seq_len) == (1 << 20, 8)
    assert short.shortened(9).shape.max_seq_len == 8
    assert short["wq"] is whole["wq"]
    models = [Int8Model(c) for c in (short, random_checkpoint(SHAPE, 1))]
    np.testing.assert_array_equal(*(m.forward([1, 2, 3], m.new_cache()) for m in models))


def test_rotary_tables_match_llama2c_formula() -> None:
    cos, sin = rotary_tables(STORIES260K)
    assert cos.shape == sin.shape == (512, 4)
    position, pair = 37, 3
    angle = position / 10000.0 ** (2 * pair / 8)
    assert cos[position, pair] == np.float32(np.cos(angle))
    assert sin[position, pair] == np.float32(np.sin(angle))
