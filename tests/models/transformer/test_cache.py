"""KV caches and greedy decoding: lengths after every step, roll-back, and what is out of range."""

import numpy as np
import pytest

from sim_models.transformer.cache import SequenceError
from sim_models.transformer.checkpoint import ModelShape, random_checkpoint
from sim_models.transformer.decoding import LanguageModel, first_choices, generate
from sim_models.transformer.float_model import FloatModel
from sim_models.transformer.int8_model import Int8Model

SHAPE = ModelShape(dim=16, hidden_dim=24, n_layers=2, n_heads=4, n_kv_heads=2, vocab_size=32, max_seq_len=12)
CHECKPOINT = random_checkpoint(SHAPE, 1)


@pytest.fixture(params=[FloatModel, Int8Model], ids=["float32", "int8"])
def model(request: pytest.FixtureRequest) -> LanguageModel:
    return request.param(CHECKPOINT)


def test_length_is_the_positions_passed(model: LanguageModel) -> None:
    cache = model.new_cache()
    assert cache.length == 0
    assert model.forward([1, 2, 3], cache).shape == (3, 32)
    assert cache.length == 3
    model.forward([4], cache)
    assert cache.length == 4
    for length in (4, 2, 0):
        cache.roll_back(length)
        assert cache.length == length


def test_rolled_back_positions_leave_no_trace(model: LanguageModel) -> None:
    clean, dirty = model.new_cache(), model.new_cache()
    model.forward([1, 2, 3], clean)
    model.forward([1, 2, 3], dirty)
    model.forward([30, 29, 28], dirty)
    dirty.roll_back(3)
    np.testing.assert_array_equal(model.forward([4, 5], dirty), model.forward([4, 5], clean))


def test_prefill_verification_and_decoding_agree(model: LanguageModel) -> None:
    tokens = np.random.default_rng(3).integers(0, 32, 12)
    whole, cache = model.forward(tokens, model.new_cache()), model.new_cache()
    parts = [model.forward(tokens[a:b], cache) for a, b in ((0, 6), (6, 11), (11, 12))]
    np.testing.assert_allclose(np.concatenate(parts), whole, atol=2e-5)


@pytest.mark.parametrize("length", [-1, 4])
def test_roll_back_out_of_range(model: LanguageModel, length: int) -> None:
    cache = model.new_cache()
    model.forward([1, 2, 3], cache)
    with pytest.raises(SequenceError, match=f"^a cache can be rolled back to 0 to 3 .*, not {length}$"):
        cache.roll_back(length)
    assert cache.length == 3


def test_the_last_position_can_be_used_and_no_more(model: LanguageModel) -> None:
    cache = model.new_cache()
    model.forward(list(range(11)), cache)
    with pytest.raises(SequenceError) as caught:
        model.forward([1, 2], cache)
    assert str(caught.value) == "the model has 12 positions, 11 are used, and 2 more were asked for"
    assert cache.length == 11
    model.forward([1], cache)
    assert cache.length == 12


@pytest.mark.parametrize(("tokens", "message"), [
    ([], "a pass needs a row of at least 1 token, not shape [0]"),
    ([[1, 2]], "a pass needs a row of at least 1 token, not shape [1, 2]"),
    ([1, 32], "a token must be from 0 to 31, not 32"),
    ([-1], "a token must be from 0 to 31, not -1"),
    ([1.0], "tokens must be integers, not float64"),
])
def test_tokens_that_are_none(model: LanguageModel, tokens: list, message: str) -> None:
    cache = model.new_cache()
    with pytest.raises(SequenceError) as caught:
        model.forward(tokens, cache)
    assert str(caught.value) == message
    assert cache.length == 0


def test_generate_is_argmax_after_argmax(model: LanguageModel) -> None:
    tokens = [1, 7]
    for _ in range(6):
        tokens.append(int(np.argmax(model.forward(tokens, model.new_cache())[-1])))
    assert generate(model, [1, 7], 6) == tokens[2:]
    assert generate(model, [1, 7], 0) == []


def test_generate_stops_behind_the_end_token(model: LanguageModel) -> None:
    free = generate(model, [1, 7], 6)
    end = free[2]
    assert generate(model, [1, 7], 6, end=end) == free[:free.index(end) + 1]
    both = min(free.index(end), free.index(free[4]))
    assert generate(model, [1, 7], 6, end=[free[4], end]) == free[:both + 1]
    for wrong in (-1, [SHAPE.vocab_size]):
        with pytest.raises(SequenceError, match=rf"^an end token must be from 0 to {SHAPE.vocab_size - 1}, not "):
            generate(model, [1, 7], 6, end=wrong)
    with pytest.raises(SequenceError, match=r"^the number of tokens wanted must be at least 0, not -1$"):
        generate(model, [1, 7], -1)


def test_generate_uses_the_last_position(model: LanguageModel) -> None:
    assert len(generate(model, [1, 7], 11)) == 11
    with pytest.raises(SequenceError, match=r"^the model has 12 positions: 12 tokens do not fit behind a prompt "
                                            r"of 2, at most 11 do$"):
        generate(model, [1, 7], 12)


def test_of_equal_logits_the_lowest_token_wins() -> None:
    assert first_choices(np.array([[1, 3, 3], [2, 2, 2]], np.float32)).tolist() == [1, 0]
