"""The law in the integer model: a row's logits do not depend on how the rows were passed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim_models.numerics import rows as exact
from sim_models.numerics.noise import choose
from sim_models.transformer.checkpoint import (
    STORIES260K,
    WEIGHTS,
    Checkpoint,
    CheckpointError,
    ModelShape,
    random_checkpoint,
    rotary_tables,
)
from sim_models.transformer.decoding import generate
from sim_models.transformer.float_model import FloatModel
from sim_models.transformer.int8_model import Int8Model, QuantisedCheckpoint, quantise_checkpoint

F = np.float32
SHAPE = ModelShape(dim=24, hidden_dim=40, n_layers=2, n_heads=6, n_kv_heads=2, vocab_size=48, max_seq_len=48)
UNSHARED = ModelShape(dim=16, hidden_dim=24, n_layers=2, n_heads=2, n_kv_heads=2, vocab_size=40,
                      max_seq_len=16, shared_classifier=False, rope_theta=500.0, norm_eps=1e-3)
MODEL = Int8Model(random_checkpoint(SHAPE, 1))
TOKENS = np.random.default_rng(2).integers(0, SHAPE.vocab_size, SHAPE.max_seq_len)
WHOLE = MODEL.forward(TOKENS, MODEL.new_cache())


def assert_same_bits(got: np.ndarray, want: np.ndarray, what: str) -> None:
    assert got.shape == want.shape
    differing = np.argwhere(got.view(np.uint32) != want.view(np.uint32))
    if len(differing):
        where = tuple(int(i) for i in differing[0])
        pytest.fail(f"{what}: {len(differing)} of {got.size} differ, first at {where}: got {got[where]!r} "
                    f"(0x{got.view(np.uint32)[where]:08x}), wanted {want[where]!r} "
                    f"(0x{want.view(np.uint32)[where]:08x})")


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 17), st.integers(0, 20)), min_size=3, max_size=12))
def test_rows_do_not_depend_on_the_split_nor_on_what_was_rolled_back(steps: list[tuple[int, int]]) -> None:
    cache, at = MODEL.new_cache(), 0
    junk = np.random.default_rng(len(steps)).integers(0, SHAPE.vocab_size, 20)
    for rows, rejected in steps:
        take = min(rows, SHAPE.max_seq_len - at)
        if not take:
            break
        spare = min(rejected, SHAPE.max_seq_len - at - take)
        logits = MODEL.forward(np.concatenate((TOKENS[at:at + take], junk[:spare])), cache)
        assert_same_bits(logits[:take], WHOLE[at:at + take], f"rows {at} to {at + take - 1}")
        at += take
        cache.roll_back(at)
        assert cache.length == at


def test_one_row_at_a_time_equals_prefill() -> None:
    cache = MODEL.new_cache()
    rows = [MODEL.forward(TOKENS[i:i + 1], cache) for i in range(len(TOKENS))]
    assert_same_bits(np.concatenate(rows), WHOLE, "decoding")


def test_stories260k_shape_is_invariant_too() -> None:
    model = Int8Model(random_checkpoint(STORIES260K, 3))
    tokens = np.random.default_rng(4).integers(0, 512, 300)
    whole, cache = model.forward(tokens, model.new_cache()), model.new_cache()
    parts = [model.forward(tokens[a:b], cache) for a, b in ((0, 131), (131, 140), (140, 141), (141, 300))]
    assert_same_bits(np.concatenate(parts), whole, "300 rows in 4 passes")


def scalar_forward(q: QuantisedCheckpoint, tokens: list[int]) -> np.ndarray:
    """The model written out for one position at a time, in Python integers and float32 scalars."""
    s, (cos, sin) = q.shape, rotary_tables(q.shape)
    group = s.n_heads // s.n_kv_heads
    memory: list[list[tuple]] = [[] for _ in range(s.n_layers)]     # (k, k scales, v, v scales) a position

    def quantise(x: list[F]) -> tuple[list[int], F]:
        top = max(abs(v) for v in x)
        factor = F(F(127) / top)
        return [round(float(F(v * factor))) for v in x], F(top / F(127))

    def linear(x: list[F], name: str) -> list[F]:
        row, scale = quantise(x)
        matrix = q.matrices[name]
        sums = [sum(a * int(b) for a, b in zip(row, column, strict=True)) for column in matrix.weights.T]
        return [F(F(F(acc) * scale) * c) for acc, c in zip(sums, matrix.scale, strict=True)]

    def norm(x: list[F], weight: np.ndarray) -> list[F]:
        mean = F(lane_sum([F(v * v) for v in x]) / F(len(x)))
        inverse = F(F(1) / np.sqrt(F(mean + F(s.norm_eps))))
        return [F(F(v * inverse) * w) for v, w in zip(x, weight, strict=True)]

    def lane_sum(x: list[F]) -> F:
        lanes = [F(0)] * 8
        for i, value in enumerate(x):
            lanes[i % 8] = F(lanes[i % 8] + value)
        a, b, c, d = (F(lanes[i] + lanes[i + 1]) for i in (0, 2, 4, 6))
        return F(F(a + b) + F(c + d))

    def heads(x: list[F], position: int | None) -> tuple[list[list[int]], list[F]]:
        values, scales = [], []
        for at in range(0, len(x), s.head_dim):
            head = x[at:at + s.head_dim]
            if position is not None:
                for i, (c, n) in enumerate(zip(cos[position], sin[position], strict=True)):
                    a, b = head[2 * i:2 * i + 2]
                    head[2 * i:2 * i + 2] = [F(F(a * c) - F(b * n)), F(F(a * n) + F(b * c))]
            q8, scale = quantise(head)
            values.append(q8)
            scales.append(scale)
        return values, scales

    def attend(x: list[F], layer: int, position: int) -> list[F]:
        wq, wk, wv = (linear(x, f"layers.{layer}.{n}") for n in ("wq", "wk", "wv"))
        q8, q_scale = heads(wq, position)
        memory[layer].append((*heads(wk, position), *heads(wv, None)))
        out: list[F] = []
        for h in range(s.n_heads):
            kv, factor = h // group, F(q_scale[h] * F(F(1) / np.sqrt(F(s.head_dim))))
            scores = [F(F(F(sum(a * b for a, b in zip(q8[h], k[kv], strict=True))) * factor) * ks[kv])
                      for k, ks, _, _ in memory[layer]]
            e = [exact.exp(np.array([F(v - max(scores))]))[0] for v in scores]
            inverse = F(F(1) / lane_sum(e))
            v_scales = [vs[kv] for _, _, _, vs in memory[layer]]
            p8, p_scale = quantise([F(F(v * inverse) * vs) for v, vs in zip(e, v_scales, strict=True)])
            values = [v[kv] for _, _, v, _ in memory[layer]]
            sums = [sum(p * v[i] for p, v in zip(p8, values, strict=True)) for i in range(s.head_dim)]
            out += [F(F(acc) * p_scale) for acc in sums]
        return out

    logits = []
    for position, token in enumerate(tokens):
        x = [F(F(w) * q.tok_emb.scale[token]) for w in q.tok_emb.weights[:, token]]
        for layer in range(s.n_layers):
            mixed = attend(norm(x, q.norms["rms_att"][layer]), layer, position)
            x = [F(a + b) for a, b in zip(x, linear(mixed, f"layers.{layer}.wo"), strict=True)]
            h = norm(x, q.norms["rms_ffn"][layer])
            gate, up = linear(h, f"layers.{layer}.w1"), linear(h, f"layers.{layer}.w3")
            silu = [F(g * F(F(1) / F(F(1) + exact.exp(np.array([-g]))[0]))) for g in gate]
            gated = [F(g * u) for g, u in zip(silu, up, strict=True)]
            x = [F(a + b) for a, b in zip(x, linear(gated, f"layers.{layer}.w2"), strict=True)]
        logits.append(linear(norm(x, q.norms["rms_final"]), "wcls"))
    return np.array(logits, F)


@pytest.mark.parametrize("shape", [SHAPE, UNSHARED], ids=["gqa-shared", "mha-unshared"])
def test_equals_the_scalar_definition(shape: ModelShape) -> None:
    quantised = quantise_checkpoint(random_checkpoint(shape, 9))
    tokens = np.random.default_rng(10).integers(0, shape.vocab_size, 11).tolist()
    model = Int8Model(quantised)
    assert_same_bits(model.forward(tokens, model.new_cache()), scalar_forward(quantised, tokens), "logits")


def test_quantised_weights_are_close_and_per_output_channel() -> None:
    checkpoint = random_checkpoint(UNSHARED, 5)
    quantised = quantise_checkpoint(checkpoint)
    assert list(quantised.matrices) == [f"layers.{i}.{n}" for i in range(2) for n in WEIGHTS] + ["wcls"]
    for name, matrix in quantised.matrices.items():
        real = checkpoint["wcls"] if name == "wcls" else checkpoint[name[9:]][int(name[7])]
        assert matrix.weights.shape == UNSHARED.gemm(name.rpartition(".")[2])
        assert matrix.weights.flags.c_contiguous
        assert np.abs(matrix.weights.astype(int)).max(axis=0).min() == 127
        steps = np.abs(real.T / matrix.scale - matrix.weights)
        assert steps.max() < 0.5001
    assert quantised.tok_emb is not quantised.matrices["wcls"]
    shared = quantise_checkpoint(random_checkpoint(SHAPE, 5))
    assert shared.tok_emb is shared.matrices["wcls"]


def test_every_weight_matrix_goes_through_the_hook() -> None:
    seen: list[tuple[str, tuple[int, ...], tuple[int, ...]]] = []

    def record(x: np.ndarray, w: np.ndarray, name: str) -> np.ndarray:
        assert x.dtype == w.dtype == np.int8
        seen.append((name, x.shape, w.shape))
        return (x.astype(np.int64) @ w.astype(np.int64)).astype(np.int32)

    model = Int8Model(MODEL.checkpoint, record)
    assert_same_bits(model.forward(TOKENS[:5], model.new_cache()), WHOLE[:5], "through the hook")
    order = ("wq", "wk", "wv", "wo", "w1", "w3", "w2")
    names = [f"layers.{i}.{n}" for i in range(SHAPE.n_layers) for n in order] + ["wcls"]
    assert [name for name, _, _ in seen] == names
    for name, x, w in seen:
        assert w == SHAPE.gemm(name.rpartition(".")[2])
        assert x == (5, w[0])


def test_a_wrong_bit_from_the_hook_is_seen() -> None:
    model = Int8Model(MODEL.checkpoint, lambda x, w, name: exact.int_matmul(x, w) + (name == "layers.1.w3"))
    assert not np.array_equal(model.forward(TOKENS[:3], model.new_cache()), WHOLE[:3])


def test_a_hook_that_returns_something_else_is_refused() -> None:
    cache = MODEL.new_cache()
    model = Int8Model(MODEL.checkpoint, lambda x, w, name: exact.int_matmul(x, w).astype(np.int64))
    with pytest.raises(ValueError, match="matmul") as caught:
        model.forward(TOKENS[:3], cache)
    assert str(caught.value) == "matmul of layers.0.wq must return int32 [3, 24], not int64 [3, 24]"
    assert cache.length == 0


def test_close_to_the_float_model() -> None:
    checkpoint = random_checkpoint(STORIES260K, 8)
    tokens = np.random.default_rng(8).integers(0, 512, 64)
    float_model, int8_model = FloatModel(checkpoint), Int8Model(checkpoint)
    wanted = float_model.forward(tokens, float_model.new_cache())
    got = int8_model.forward(tokens, int8_model.new_cache())
    assert np.corrcoef(wanted.ravel(), got.ravel())[0, 1] > 0.995


def test_generation_repeats() -> None:
    one, two = (generate(MODEL, [1, 2, 3], 20) for _ in range(2))
    assert one == two
    assert len(one) == 20


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale", [1e25, 1e38])
def test_numbers_beyond_float32_are_refused(scale: float) -> None:
    """Without a warning, and before a row of zeros or NaN says something; the cache is as before."""
    model = random_checkpoint(SHAPE, 1)
    huge = Int8Model(Checkpoint(SHAPE, {n: a * F(scale) if n == "tok_emb" else a for n, a in model.arrays.items()}))
    cache = huge.new_cache()
    with pytest.raises(CheckpointError, match=r"^the weights lead to numbers that float32 cannot hold$"):
        huge.forward([1, 2], cache)
    assert cache.length == 0


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale", [0, 1e-44])
def test_weights_of_nothing_are_computed(scale: float) -> None:
    model = random_checkpoint(SHAPE, 1)
    tiny = Int8Model(Checkpoint(SHAPE, {n: a * F(scale) for n, a in model.arrays.items()}))
    assert (tiny.forward([1, 2], tiny.new_cache()) == 0).all()


def test_sampled_text_depends_on_seed_request_and_temperature_alone() -> None:
    """Tokens are the choices of the logits' row at the position that they take."""
    text = generate(MODEL, [1, 2, 3], 20, temperature=0.8, seed=5, request=2)
    assert text == generate(MODEL, [1, 2, 3], 20, temperature=0.8, seed=5, request=2)
    others = [generate(MODEL, [1, 2, 3], 20, **{"temperature": 0.8, "seed": 5, "request": 2, **change})
              for change in ({"seed": 6}, {"request": 3}, {"temperature": 0})]
    assert all(other != text for other in others)
    assert others[2] == generate(MODEL, [1, 2, 3], 20)
    logits = MODEL.forward([1, 2, 3, *text[:-1]], MODEL.new_cache())[2:]
    assert text == [choose(row, 0.8, 5, 2, 3 + i) for i, row in enumerate(logits)]
