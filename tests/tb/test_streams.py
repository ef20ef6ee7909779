"""Stream rules, drivers, packing and comparison, each against something that breaks it."""

import math
import re
import struct

import numpy as np
import pytest
from amaranth.hdl import signed
from amaranth.lib import data, enum
from hypothesis import given, settings
from hypothesis import strategies as st

from rtl.tile.engine.layouts import gemm_command, gemm_response, psum_beat, result_beat, weight_beat
from sim_models.params.tile.engine.compute_engine import ComputeEngineParams
from tb.common import patterns
from tb.common.ledger import Ledger
from tb.common.packing import Codec
from tb.common.poison import poison, poison_bits, run_flags
from tb.common.rules import RuleViolation, StreamRules
from tb.common.scoreboard import Mismatch, Scoreboard, compare
from tests.designs.run import run_echo

# Rules, in the simulator: one broken rule per bench

BROKEN = {
    "drops_valid": r"o_beat, cycle \d+: valid fell before a transfer \(stream rule 2\)",
    "changes_payload": r"o_beat, cycle \d+: payload changed from 0x\w+ to 0x\w+ before a transfer "
                       r"\(stream rule 2\)",
    "valid_follows_ready": r"o_beat, cycle \d+: valid follows ready within the cycle \(stream rule 3\)",
    "payload_follows_ready": r"o_beat, cycle \d+: payload follows ready within the cycle \(stream rule 3\)",
    "waits_for_ready": r"not done after 20 us: .*o_beat made 0 transfers, valid 0, ready 0",
    "valid_in_reset": r"o_beat, cycle \d+: valid is high during or right after reset \(stream rule R\)",
    "keeps_beat_over_reset": r"o_beat, cycle \d+: valid is high during or right after reset",
    "bad_driver_drops_valid": r"i_beat, cycle \d+: valid fell before a transfer \(stream rule 2\)",
}


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    return run_echo("bench_rules", tmp_path_factory.mktemp("rules"))


@pytest.mark.parametrize("test", BROKEN)
def test_monitor_finds_the_broken_rule(broken, test):
    assert broken.tests == len(BROKEN)
    messages = [f.message for f in broken.failures if f.test == test]
    assert len(messages) == 1
    assert re.search(BROKEN[test], messages[0])


# Rules, cycle by cycle

def test_rules_count_transfers():
    rules = StreamRules("s")
    moves = [rules.step(i, valid, ready, 7, False)
             for i, (valid, ready) in enumerate([(0, 0), (0, 1), (1, 0), (1, 1), (1, 1), (0, 1)])]
    assert moves == [False, False, False, True, True, False]
    assert rules.transfers == 2


@pytest.mark.parametrize(("valid", "ready", "payload", "text"), [
    (None, 1, 0, "s, cycle 3: valid is undefined (stream rule X)"),
    (0, None, 0, "s, cycle 3: ready is undefined (stream rule X)"),
    (1, 0, None, "s, cycle 3: payload has undefined bits while valid is high (stream rule X)"),
])
def test_undefined_values_are_found(valid, ready, payload, text):
    with pytest.raises(RuleViolation) as error:
        StreamRules("s").step(3, valid, ready, payload, False)
    assert str(error.value) == text


def test_undefined_payload_without_valid_is_fine():
    assert StreamRules("s").step(0, 0, 1, None, False) is False


def test_reset_ends_a_waiting_beat_and_moves_nothing():
    rules = StreamRules("s")
    rules.step(0, 1, 0, 5, False)
    assert rules.step(1, 1, 1, 6, True) is False
    assert rules.transfers == 0
    rules.step(2, 0, 1, 0, False)
    rules.step(3, 1, 1, 9, False)
    assert rules.transfers == 1


def test_valid_right_after_reset_is_found_unless_tied():
    rules = StreamRules("s")
    rules.step(0, 0, 1, 0, True)
    with pytest.raises(RuleViolation, match="rule R"):
        rules.step(1, 1, 1, 0, False)
    tied = StreamRules("s", always_valid=True)
    tied.step(0, 1, 1, 0, True)
    assert tied.step(1, 1, 1, 0, False) is True


# Patterns

def _play(pattern, cycles=4000, seen=False, seed=1):
    step = pattern(np.random.default_rng(seed))
    return [step(seen) for _ in range(cycles)]


def test_patterns_do_what_their_names_say():
    assert all(_play(patterns.always()))
    assert _play(patterns.late(5), 8) == [False] * 5 + [True] * 3
    assert _play(patterns.after_valid(), 3, seen=False) == [False] * 3
    assert _play(patterns.after_valid(), 3, seen=True) == [True] * 3
    assert abs(np.mean(_play(patterns.random(0.3))) - 0.3) < 0.03
    burst = _play(patterns.bursts(8, 2), 20000)
    assert abs(np.mean(burst) - 0.8) < 0.05
    assert abs(np.sum(np.diff(np.array(burst, int)) == 1) - 2000) < 200
    assert _play(patterns.random(0.5)) == _play(patterns.random(0.5))
    assert _play(patterns.random(0.5)) != _play(patterns.random(0.5), seed=2)


@pytest.mark.parametrize("bad", [0, -0.1, 1.5])
def test_pattern_that_could_hang_is_refused(bad):
    with pytest.raises(ValueError, match=r"a probability above 0 and up to 1 was wanted, not "):
        patterns.random(bad)
    with pytest.raises(ValueError, match="mean burst lengths of at least 1 cycle were wanted"):
        patterns.bursts(0, 1)


# Packing

class Mode(enum.Enum, shape=2):
    A = 0
    B = 2


ODD = data.StructLayout({
    "a": 3, "b": data.ArrayLayout(signed(5), 3), "mode": Mode, "wide": 70, "w64": 64, "s64": signed(64),
    "inner": data.StructLayout({"x": signed(1), "y": data.ArrayLayout(data.ArrayLayout(4, 2), 2)})})
P = ComputeEngineParams()


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_packing_agrees_with_amaranth(draw):
    def ints(bits, sign=False, n=None):
        low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if sign else (0, (1 << bits) - 1)
        one = st.integers(low, high)
        return draw.draw(one if n is None else st.lists(one, min_size=n, max_size=n))
    v = {"a": ints(3), "b": ints(5, True, 3), "mode": draw.draw(st.sampled_from([0, 2])), "wide": ints(70),
         "w64": ints(64), "s64": ints(64, True)}
    x, y = ints(1, True), [ints(4, n=2), ints(4, n=2)]
    codec = Codec(ODD)
    flat = {**{k: np.array([e], object) for k, e in v.items()}, "inner.x": np.array([x]),
            "inner.y": np.array([y])}
    packed = codec.pack(flat)
    reference = ODD.const({**v, "mode": Mode(v["mode"]), "inner": {"x": x, "y": y}}).as_value().value
    assert codec.to_ints(packed) == [reference]
    back = codec.unpack(packed)
    for name, value in flat.items():
        assert back[name].tolist() == np.asarray(value).tolist(), name


@pytest.mark.parametrize("layout", [gemm_command, gemm_response, weight_beat(P), psum_beat(P),
                                    result_beat(P)])
def test_block_layouts_survive_a_round_trip(layout):
    codec = Codec(layout)
    gen = np.random.default_rng(3)
    raw = gen.integers(0, 256, (50, codec.nbytes)).astype(np.uint8)
    if codec.bits % 8:
        raw[:, -1] &= (1 << codec.bits % 8) - 1
    assert (codec.pack(codec.unpack(raw)) == raw).all()
    assert (codec.from_ints(codec.to_ints(raw)) == raw).all()


def test_odd_struct_is_nine_little_endian_bytes():
    codec = Codec(data.StructLayout({"data": data.ArrayLayout(signed(8), 8), "half": 1, "last": 1}))
    packed = codec.pack(data=[[-1, 2, 3, 4, 5, 6, 7, -128]], half=0, last=[1])
    assert packed.tolist() == [[255, 2, 3, 4, 5, 6, 7, 128, 2]]


def test_plain_shapes_need_no_names():
    codec = Codec(signed(12))
    assert codec.pack([-1, 5]).tolist() == [[255, 15], [5, 0]]
    assert codec.unpack(np.array([[255, 15], [5, 0]], np.uint8)).tolist() == [-1, 5]


@pytest.mark.parametrize(("fields", "text"), [
    ({"data": [[0] * 8], "half": 0}, "fields data, half, last were wanted, data, half came"),
    ({"data": [[0] * 8], "half": 0, "lost": 0, "last": 0},
     "fields data, half, last were wanted, data, half, lost, last came"),
    ({"data": [[0] * 7], "half": 0, "last": 0}, "data: shape (1, 8) was wanted, (1, 7) came"),
    ({"data": [[0] * 7 + [128]], "half": 0, "last": 0},
     "data: values from -128 to 127 were wanted, 128 came"),
    ({"data": [[0] * 8], "half": 2, "last": 0}, "half: values from 0 to 1 were wanted, 2 came"),
    ({"data": [[0.5] * 8], "half": 0, "last": 0}, "data: integers were wanted, float64 came"),
    ({"data": [[0] * 8] * 2, "half": [0, 1, 0], "last": 0}, "data: shape (3, 8) was wanted, (2, 8) came"),
])
def test_values_that_do_not_fit_are_refused(fields, text):
    layout = data.StructLayout({"data": data.ArrayLayout(signed(8), 8), "half": 1, "last": 1})
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        Codec(layout).pack(fields)


def test_layouts_without_a_flat_form_are_refused():
    with pytest.raises(TypeError, match="u: a UnionLayout has no flat numpy form"):
        Codec(data.StructLayout({"u": data.UnionLayout({"a": 1, "b": 2})}))
    with pytest.raises(TypeError, match="payload: an array of structs has no flat numpy form"):
        Codec(data.ArrayLayout(data.StructLayout({"a": 1, "b": 2}), 2))
    with pytest.raises(ValueError, match=r"payloads of shape \(n, 2\) were wanted, \(1, 3\) came"):
        Codec(signed(12)).unpack(np.zeros((1, 3), np.uint8))


# Comparison

def _mismatch(got, want):
    with pytest.raises(Mismatch) as error:
        compare(got, want, "x")
    return str(error.value)


def test_mismatch_has_coordinates_value_hex_and_count():
    got = np.arange(12).reshape(3, 4)
    want = got.copy()
    want[1, 2], want[2, 0] = -70000, 5
    assert _mismatch(got, want) == ("x[1, 2] (element 6): got 6 (0x00000006), want -70000 (0xfffeee90); "
                                    "2 of 12 differ, shape (3, 4)")


def test_equal_arrays_are_counted():
    with Ledger("t") as ledger:
        assert compare(np.zeros((3, 4), np.int8), np.zeros((3, 4), np.int32), "x") == 12
        compare(5, 5, "y")
    assert ledger.compared == 13


def test_empty_or_misshapen_results_do_not_pass():
    assert _mismatch([], [1]) == "x: shape (0,) came, (1,) was wanted"
    assert _mismatch([], []) == "x: nothing to compare (shape (0,))"
    assert _mismatch([[1, 2]], [1, 2]) == "x: shape (1, 2) came, (2,) was wanted"
    assert _mismatch("a", "a") == "x: numbers were wanted, <U1 came"
    assert "float and integer codes are not compared" in _mismatch([1.0], [1])


def test_floats_are_compared_by_bits():
    nan, other = (np.frombuffer(struct.pack("<I", c), np.float32) for c in (0x7FC00000, 0x7FC00001))
    assert compare(nan, nan, "x") == 1
    assert _mismatch(nan, other) == ("x[0]: got nan (0x7fc00000), want nan (0x7fc00001); "
                                     "1 of 1 differ, shape (1,)")
    assert "got 1.0 (0x3f800000), want nan" in _mismatch(np.float32([1]), np.float32([math.nan]))
    assert "0x80000000" in _mismatch(np.float32([0.0]), np.float32([-0.0]))


def test_large_integers_are_not_rounded():
    big = np.array([(1 << 63) + 1], np.uint64)
    assert "differ" in _mismatch(big, np.array([(1 << 63) + 2], np.uint64))
    assert "differ" in _mismatch(big, np.array([(1 << 63) + 2], object))
    assert _mismatch(np.array([1 << 63], np.uint64), np.array([-1], np.int64)).startswith("x[0]: got 922")
    assert compare(np.array([7], np.uint64), np.array([7], np.int64), "x") == 1


def test_scoreboard_finds_wrong_extra_and_missing():
    with Ledger("t") as ledger:
        board = Scoreboard("b")
        board.expect({"a": 1}, {"a": 2}, {"a": 3})
        board.got({"a": 1, "other": 9})
        with pytest.raises(Mismatch, match=r"b item 1 a: got 5 \(0x05\), want 2 \(0x02\)"):
            board.got({"a": 5})
        assert board.pending == 1
        assert ledger.owed() == ["b item 1 a: got 5 (0x05), want 2 (0x02); 1 of 1 differ, shape ()",
                                 "b: 1 expected items never came, first: {'a': 3}"]
        board.got({"a": 3})
        with pytest.raises(Mismatch, match="b: extra item 3: 4"):
            board.got(4)


def test_a_test_inside_a_test_is_refused():
    with Ledger("outer"), pytest.raises(RuntimeError, match="test outer is still running"), Ledger("inner"):
        pass
    with Ledger("next") as ledger:
        assert ledger.owed() == ["the test compared nothing"]


# Poison

def test_poison_values():
    assert poison((2,), np.int8).tolist() == [-128, -128]
    assert poison((1,), np.int32).tolist() == [-0x7F7F7F80]
    assert np.isnan(poison((3,), np.float32)).all()
    assert poison_bits(66) == 0x8080808080808080
    assert poison_bits(8) == 0x80
    with pytest.raises(TypeError, match="poison is for integers and floats, not bool"):
        poison((1,), bool)
    assert run_flags(7) != run_flags(8)
