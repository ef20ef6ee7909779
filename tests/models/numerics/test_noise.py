"""Seeded noise: the cipher, the logarithms, the law of what is chosen, and what is refused."""

import itertools
import math

import numpy as np
import pytest

from sim_models.numerics import noise
from sim_models.numerics.float32 import bits
from tests.conftest import Extent

F = np.float32


def test_the_cipher_is_speck() -> None:
    """The vector that its authors publish: key 1918 1110 0908 0100, text 6574 694c."""
    keys = noise.round_keys(seed=0x19181110, request=0x0908, position=0x0100)
    assert noise.encipher(np.array([0x6574694C]), keys).tolist() == [0xA86842F2]


def test_no_two_tokens_share_a_word() -> None:
    words = noise.encipher(np.arange(1 << 18), noise.round_keys(1, 2, 3))
    assert len(np.unique(words)) == 1 << 18
    assert words.min() >= 0
    assert words.max() < 1 << 32


def exact(h: int) -> float:
    """-log2(-log2 u), to a float64."""
    rest = (1 << 33) - (2 * h + 1)
    minus_log = -math.log1p(-rest / 2**33) / math.log(2) if rest < 1 << 32 else -math.log2((2 * h + 1) / 2**33)
    return -math.log2(minus_log)


def test_noise_is_the_double_logarithm(monkeypatch: pytest.MonkeyPatch) -> None:
    """At both ends, around 1/2, around powers of two and anywhere."""
    powers = (1 << np.arange(32))[:, None] + np.arange(-2, 3)
    low = np.concatenate([powers.ravel(), np.arange(100)])
    h = np.concatenate([low, (1 << 32) - 1 - low, np.random.default_rng(1).integers(0, 1 << 32, 20_000)])
    h = np.unique(h[(h >= 0) & (h < 1 << 32)])
    monkeypatch.setattr(noise, "encipher", lambda tokens, keys: tokens)
    got = noise.noise(h, [])
    assert got.dtype == np.float32
    error = np.abs(got - np.array([exact(int(n)) for n in h]))
    assert error.max() < 1.6e-5
    assert (got * 2.0**18 == np.rint(got * 2.0**18)).all()
    assert (np.diff(got) >= 0).all(), "the noise must grow with the word"
    assert got[0] == pytest.approx(-5.0444, abs=1e-4)
    assert got[-1] == pytest.approx(32.4712, abs=1e-4)


def chi_square(counts: np.ndarray, expected: np.ndarray) -> float:
    """Deviation in standard deviations of the chi-square law, by Wilson and Hilferty's cube root."""
    freedom = len(counts) - 1
    value = float(((counts - expected)**2 / expected).sum())
    return ((value / freedom)**(1 / 3) - (1 - 2 / (9 * freedom))) / math.sqrt(2 / (9 * freedom))


def chosen(logits: np.ndarray, count: int, seed: int, temperature: float = 1.0) -> np.ndarray:
    return np.array([noise.choose(logits, temperature, seed, n % 7, 11 + n // 7) for n in range(count)])


@pytest.mark.parametrize(("size", "few", "many"), [(512, 2000, 100_000), (50_272, 150, 20_000), (128_256, 60, 8000)])
def test_a_flat_law_is_sampled_as_one(size: int, few: int, many: int, extent: Extent) -> None:
    """Each part of the vocabulary has its share; a tie would go to the lower token and pull the mean index down."""
    count = extent.count(few, many)
    for seed in extent.seeds(3, 1):
        got = chosen(np.zeros(size, F), count, seed & 0xFFFFFFFF)
        parts = np.bincount(got * 10 // size, minlength=10)
        assert abs(chi_square(parts, np.full(10, count / 10))) < 4
        assert abs(got.mean() / (size - 1) - 0.5) < 4 * math.sqrt(1 / 12 / count)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_a_peaked_law_is_sampled_as_one(temperature: float, extent: Extent) -> None:
    gen, count = np.random.default_rng(4), extent.count(1500, 100_000)
    logits = np.concatenate([[5, 4.5, 3], gen.normal(0, 1, 509)]).astype(F)
    p = np.exp(logits.astype(np.float64) / temperature)
    p /= p.sum()
    for seed in extent.seeds(8, 1):
        got = chosen(logits, count, seed & 0xFFFFFFFF, temperature)
        cuts = [0, 1, 2, 3, 100, 200, 300, 400, 512]
        counts = np.array([((got >= a) & (got < b)).sum() for a, b in itertools.pairwise(cuts)])
        shares = np.array([p[a:b].sum() for a, b in itertools.pairwise(cuts)])
        assert abs(chi_square(counts, count * shares)) < 4


def test_neighbouring_names_are_independent(extent: Extent) -> None:
    """Choices at two positions, of two requests and of two seeds agree as often as independent ones do."""
    count = extent.count(800, 50_000)
    logits = np.zeros(8, F)
    for seed in extent.seeds(1, 1):
        base = seed & 0xFFFF
        names = [(base, 0, n) for n in range(count)], [(base, 0, n + 1) for n in range(count)], \
            [(base, 1, n) for n in range(count)], [(base + 1, 0, n) for n in range(count)]
        first, *others = (np.array([noise.choose(logits, 1, *name) for name in group]) for group in names)
        for other in others:
            table = np.bincount(first * 8 + other, minlength=64)
            assert abs(chi_square(table, np.full(64, count / 64))) < 4


def test_choice_is_argmax_of_scaled_logits_and_noise() -> None:
    logits = np.random.default_rng(2).normal(0, 3, 100).astype(F)
    keys = noise.round_keys(9, 8, 7)
    g = noise.noise(np.arange(100), keys)
    scale = F(F(1.4426950408889634) / F(0.7))
    sums = [F(F(x * scale) + n) for x, n in zip(logits, g, strict=True)]
    assert noise.choose(logits, 0.7, 9, 8, 7) == int(np.argmax(sums))
    # any split of the vocabulary, merged by (largest, lowest token)
    parts = [noise.noise(np.arange(a, b), keys) for a, b in ((0, 13), (13, 64), (64, 100))]
    assert (bits(np.concatenate(parts)) == bits(g)).all()


def test_temperature_0_is_greedy_and_ties_go_to_the_lowest() -> None:
    logits = np.array([1, 3, 3, 2], F)
    assert noise.choose(logits, 0, 1, 2, 3) == 1
    assert {noise.choose(logits, 1e-20, 1, 2, n) for n in range(20)} == {1}


@pytest.mark.parametrize(("values", "message"), [
    ((1, -1, 0, 0), "seed must be from 0 to 4294967295, not -1"),
    ((1, 1 << 32, 0, 0), "seed must be from 0 to 4294967295, not 4294967296"),
    ((1, 0, 1 << 16, 0), "request must be from 0 to 65535, not 65536"),
    ((1, 0, 0, 1 << 16), "position must be from 0 to 65535, not 65536"),
    ((-1, 0, 0, 0), r"the temperature must be 0 or from 2\^-100 to 2\^100, not -1"),
    ((math.nan, 0, 0, 0), r"the temperature must be 0 or from 2\^-100 to 2\^100, not nan"),
    ((1e-45, 0, 0, 0), r"the temperature must be 0 or from 2\^-100 to 2\^100, not 1e-45"),
])
def test_names_and_temperatures_out_of_range_are_refused(values: tuple[float, int, int, int], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        noise.choose(np.zeros(4, F), *values)
