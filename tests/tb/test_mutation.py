"""Mutation runs: what the stimulus looks at is killed, what it ignores survives, nothing hangs."""

import os
import time

import numpy as np
import pytest

from tb.common.mutation import equivalent, mutants, run_mutants
from tb.common.packing import Codec
from tests.designs.run import BUILDS
from tests.designs.units import BEAT, Echo

CODEC = Codec(BEAT)
GEN = np.random.default_rng(1)
SENT = CODEC.pack(data=GEN.integers(-128, 128, (600, 8)), half=GEN.integers(0, 2, 600),
                  last=GEN.integers(0, 2, 600))


@pytest.fixture(scope="module")
def chosen():
    return mutants(Echo(), 120, 1, BUILDS)


def _stimulus(sim, check_count=True):
    for _ in range(2):
        sim.reset()
        sim.rate("i_beat", 0.7)
        sim.rate("o_beat", 0.6)
        sim.push("i_beat", SENT)
        sim.run({"o_beat": len(SENT)}, 5000)
        assert (sim.take("o_beat")[0] == SENT).all()
        if check_count:
            assert sim.get("o_count") == len(SENT) % 256
        assert sim.total("i_beat") == len(SENT)


def test_good_stimulus_kills_the_data_path(chosen):
    report = run_mutants(chosen, _stimulus)
    assert len(report.killed) + len(report.survivors) == len(chosen.mutants) == 120
    lazy = run_mutants(chosen, lambda sim: _stimulus(sim, check_count=False))
    assert lazy.score < report.score
    extra = set(lazy.survivors) - set(report.survivors)
    assert extra
    assert all("o_count" in str(m) or "mux" in str(m) for m in extra)


def test_what_is_proven_to_be_the_original_survives(chosen):
    """And what is noticed is not proven."""
    report = run_mutants(chosen, _stimulus)
    killed, survivors = ([m.number for m in group] for group in (
        [m for m, _ in report.killed], report.survivors))
    same = equivalent(chosen, [*killed[:10], *survivors])
    assert same <= set(survivors)
    assert same, "a change of a bit that nothing reads was wanted among the survivors"
    assert equivalent(chosen, []) == set()


def test_mutants_say_where_they_are(chosen):
    first = chosen.mutants[0]
    assert first.number == 1
    assert str(first).startswith(f"1: {first.mode} {first.cell}.{first.port}[{first.bit}]")
    assert [m.number for m in chosen.mutants] == list(range(1, 121))
    assert all(m.cell and m.port and m.mode for m in chosen.mutants)
    assert not any("CLK" in m.port or m.wire in ("clk[0]", "rst[0]") for m in chosen.mutants)


def test_choice_is_repeatable(chosen):
    again = mutants(Echo(), 120, 1, BUILDS)
    assert again.library.reused
    assert again.mutants == chosen.mutants


def test_crash_and_hang_are_killed_and_the_rest_goes_on(chosen):
    # a few mutants have a combinational loop and crash on their own
    looping = {m.number for m, _ in run_mutants(chosen, lambda sim: sim.get("mutsel")).killed}
    quiet = [m.number for m in chosen.mutants if m.number not in looping]
    crash, hang, fail = quiet[3], quiet[20], quiet[21]

    def stimulus(sim):
        number = sim.get("mutsel")
        if number == crash:
            os.abort()
        if number == hang:
            time.sleep(60)
        if number == fail:
            raise ValueError("seen")
    report = run_mutants(chosen, stimulus, limit_s=1.0)
    how = {m.number: text for m, text in report.killed if m.number not in looping}
    assert how == {crash: "crashed", hang: "hung", fail: "ValueError: seen"}
    assert len(report.survivors) == len(quiet) - 3


def test_stimulus_that_fails_the_original_is_refused(chosen):
    def stimulus(sim):
        raise AssertionError("always")
    with pytest.raises(AssertionError, match="always"):
        run_mutants(chosen, stimulus)


def test_silly_numbers_of_mutants_are_refused():
    with pytest.raises(ValueError, match="a number of mutants from 1 to 65535 was wanted, not 0"):
        mutants(Echo, 0, 1, BUILDS)
