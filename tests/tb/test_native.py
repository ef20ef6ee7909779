"""The native path: the same values as numpy, and wrong use refused."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tb.common.native import NativeSim, NativeTimeout
from tb.common.packing import Codec
from tb.common.rules import RuleViolation
from tests.designs.run import BUILDS
from tests.designs.units import BEAT, Echo, Fault, Mix

CODEC = Codec(BEAT)


@pytest.fixture(scope="module")
def echo():
    return NativeSim(Echo(), BUILDS).library


def _beats(count, seed=1):
    gen = np.random.default_rng(seed)
    return CODEC.pack(data=gen.integers(-128, 128, (count, 8)), half=gen.integers(0, 2, count),
                      last=[0] * (count - 1) + [1])


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 300), st.floats(0.01, 1), st.floats(0.01, 1), st.integers(0, 1 << 32))
def test_nothing_is_lost_or_changed_under_any_pauses(echo, count, offer, accept, seed):
    sim = NativeSim(echo, seed=seed)
    for _ in range(2):
        sim.reset()
        sim.rate("i_beat", offer)
        sim.rate("o_beat", accept)
        sent = _beats(count, seed)
        sim.push("i_beat", sent)
        sim.run({"o_beat": count}, 1000 * count + 1000)
        came, stamps = sim.take("o_beat")
        assert (came == sent).all()
        assert (np.diff(stamps) > 0).all()
        assert (stamps > sim.accepted("i_beat")).all()
        assert sim.get("o_count") == count % 256
        sim.step(20)
        assert sim.total("o_beat") == count


def test_full_rate_moves_a_beat_every_cycle(echo):
    sim = NativeSim(echo)
    sim.reset(3)
    assert sim.cycle == 3
    sim.push("i_beat", _beats(100).tobytes())
    assert sim.run({"o_beat": 100}, 1000) == 101
    assert sim.take("o_beat", 40)[1].tolist() == list(range(4, 44))
    assert sim.take("o_beat")[1].tolist() == list(range(44, 104))
    assert sim.accepted("i_beat").tolist() == list(range(3, 103))


def test_same_seed_same_cycles(echo):
    def cycles(seed):
        sim = NativeSim(echo, seed=seed)
        sim.reset()
        sim.rate("i_beat", 0.5)
        sim.rate("o_beat", 0.5)
        sim.push("i_beat", _beats(200))
        sim.run({"o_beat": 200}, 10000)
        return sim.take("o_beat")[1].tolist()
    assert cycles(3) == cycles(3)
    assert cycles(3) != cycles(4)


def test_unwritten_memory_is_random_and_repeats_with_the_seed(echo):
    def words(seed):
        seen = NativeSim(echo, seed=seed).play({"fault": np.arange(16, dtype=np.uint8)[:, None]}, ["stale"])
        return seen["stale"].view("<u4")[1:].ravel().tolist()
    assert all(words(1))
    assert words(1) == words(1)
    assert words(1) != words(2)


def test_two_models_live_side_by_side(echo):
    """Two instances of one library and one of another, in turns: no state and no symbol is shared."""
    first, other, second = NativeSim(echo), NativeSim(Mix(), BUILDS), NativeSim(echo)
    sent = {first: _beats(50, 1), second: _beats(50, 2)}
    for sim, beats in sent.items():
        sim.reset()
        sim.push("i_beat", beats)
    other.set("a", 99)
    for count in range(1, 51):
        for sim in sent:
            sim.run({"o_beat": count}, 10)
        other.step()
        assert other.get("previous") == 99
    for sim, beats in sent.items():
        assert (sim.take("o_beat")[0] == beats).all()


def test_reset_in_the_middle_leaves_nothing(echo):
    sim = NativeSim(echo)
    sim.reset()
    sim.rate("o_beat", 0)
    sim.push("i_beat", _beats(5))
    sim.step(10)
    assert (sim.total("i_beat"), sim.total("o_beat")) == (1, 0)
    sim.reset()
    sim.rate("o_beat", 1)
    sim.step(10)
    assert (sim.total("i_beat"), sim.total("o_beat"), len(sim.take("o_beat")[0])) == (0, 0, 0)


@pytest.mark.parametrize("fault", [Fault.DROPS_VALID, Fault.CHANGES_PAYLOAD])
def test_broken_rule_is_found(echo, fault):
    sim = NativeSim(echo)
    sim.set("fault", fault.value)
    sim.reset()
    sim.rate("o_beat", 0.3)
    sim.push("i_beat", _beats(100))
    with pytest.raises(RuleViolation, match=r"o_beat, cycle \d+: valid fell or the payload changed"):
        sim.run({"o_beat": 100}, 10000)


def test_missing_output_is_a_timeout_that_says_where_things_stand(echo):
    sim = NativeSim(echo)
    sim.set("fault", Fault.LOSES_LAST.value)
    sim.reset()
    sim.push("i_beat", _beats(10))
    with pytest.raises(NativeTimeout) as error:
        sim.run({"o_beat": 10}, 200)
    assert str(error.value) == ("echo: o_beat 10 transfers were wanted, after 200 cycles there are "
                                "i_beat 10, o_beat 9")


@pytest.mark.parametrize(("use", "text"), [
    (lambda s: s.push("x", _beats(1)), "echo has no stream x; it has i_beat, o_beat"),
    (lambda s: s.push("o_beat", _beats(1)), "o_beat is an output stream"),
    (lambda s: s.take("i_beat"), "i_beat is an input stream"),
    (lambda s: s.take("o_beat", 1), "1 beats of o_beat were wanted, 0 are there"),
    (lambda s: s.push("i_beat", np.zeros((2, 8), np.uint8)),
     "i_beat: uint8 (n, 9) was wanted, uint8 (2, 8) came"),
    (lambda s: s.push("i_beat", np.zeros((2, 9))), "i_beat: uint8 (n, 9) was wanted, float64 (2, 9) came"),
    (lambda s: s.push("i_beat", np.full((1, 9), 255, np.uint8)),
     "i_beat has 66 bits, a payload has bits beyond"),
    (lambda s: s.set("fault", 16), "fault has 4 bits, 16 does not fit"),
    (lambda s: s.get("nothing"), "echo has no port nothing; it has "),
    (lambda s: s.rate("i_beat", 2), "a probability from 0 to 1 was wanted, not 2"),
])
def test_wrong_use_is_refused(echo, use, text):
    with pytest.raises(ValueError, match=f"^{re.escape(text)}"):
        use(NativeSim(echo))


def test_a_folder_for_builds_is_needed():
    unit = Mix()
    with pytest.raises(ValueError, match="a folder for builds was wanted"):
        NativeSim(unit)
    assert NativeSim(unit, BUILDS).library.top == "mix"


def test_plain_ports_and_wide_words():
    sim = NativeSim(Mix(), BUILDS)
    a, b = (1 << 99) + 12345, (1 << 98) + 7
    sim.set("a", a)
    sim.set("b", b)
    assert sim.get("both") == a ^ b
    gen = np.random.default_rng(2)
    rows = gen.integers(0, 256, (500, 13)).astype(np.uint8)
    rows[:, -1] &= 15
    seen = sim.play({"a": rows, "b": rows[::-1].copy()}, ["both", "previous"])
    assert (seen["both"] == rows ^ rows[::-1]).all()
    assert (seen["previous"][1:] == rows[:-1]).all()
    with pytest.raises(ValueError, match=r"inputs of one length were wanted, lengths \[1, 2\] came"):
        sim.play({"a": rows[:1], "b": rows[:2]}, [])


def test_model_without_clock():
    sim = NativeSim(Mix(registered=False), BUILDS)
    sim.set("a", 6)
    sim.set("b", 3)
    assert sim.get("both") == 5
