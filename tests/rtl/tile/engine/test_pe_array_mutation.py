"""Mutation of the array and of the engine: what the native stimuli do not notice must have a reason.

All mutants of a unit are in one build; the golden model is the judge of each. Prints the table of survivors.
"""

from collections.abc import Callable

import numpy as np
import pytest

from rtl.tile.engine.pe_array import PEArray
from sim_models.golden.tile.engine.pe_array import run
from sim_models.params.tile.engine.pe_array import PEArrayParams
from tb.common.mutation import mutants, reason_of, run_mutants, survivors_table
from tb.common.native import NativeSim
from tb.tile.engine.array_steps import OUTPUTS, ArrayPorts, check, idle, random_steps
from tests.conftest import Extent
from tests.designs.run import BUILDS

ARRAY = PEArrayParams(rows=4, cols=4, columns_per_hop=2)

#: why a mutant of the array cannot be noticed, by what it changes
ARRAY_REASONS = {
    r"pe_0_\d+\.add_above_mux\S*\.B": "above the top row there is the constant zero",
    r"\$add_Y\.[ABY]\[2[56]\]|mux_\$mux_Y\.[ABY]\[25\]|mux_b_\$add_Y\.Y\[2\]": "a carry that is cut off",
    r"const0 second_\d+_mux\S*\.A": "the operand that is the constant zero already",
    r"control_2_\$mux_S\S*\.A": "write data while nothing is written",
    r"(hop|seen|keep|control)_\S*mux_[AY]\.B": "the reset value of data: no result is valid before it has gone",
    r"const0 hop_\S*mux_[AY]\.S": "an activation that outlives a reset meets weights of zero",
    r"(vector|first|systolic_step| add_above)_\S*mux_[AY]\.[BS]\[0\]":
        "a mode of cycles before a reset: all products are zero",
    r"const0 \S+_\$mux_[AY]\.B\[\d+\]": "a reset value that is zero already",
    r"const1 (weight|pe_\d_\d\.weight|stepped)_\$dff_Q_D_\$mux_Y\.B": "a reset value of what meets zeros alone",
    r"fresh_srst_\$reduce_or_Y": "either of two causes will do",
    r"const1 second_\d+_add_\$add_Y\.Y\[0\]": "the lowest bit of the sum is there for its carry alone",
    r"const1 control_\d_\$mux_S\S*\.B": "a write enable that is one already",
    r"draining_d_mux_a_mux_s_\$ne_Y\.B": "the number of the bottom row, all ones already",
    r"inv control_2_\$dff_Q\.Q\[[2-9]\]": "an address bit inverted for reads and writes alike",
    r"systolic_not": "a tile's end coincides with its last result, and `first` is looked at in dot products alone",
    r"const1 draining_d_mux_a_\$mux_Y\.B": "off the bottom row it is always draining",
}


def array_stimulus() -> Callable[[NativeSim], None]:
    """Random traffic twice without a reset, then resets of one cycle after every kind of step."""
    ports, gen = ArrayPorts(ARRAY), np.random.default_rng(1)
    long = [random_steps(ARRAY, gen, 600) for _ in range(2)]
    short = [idle(int(n)) + random_steps(ARRAY, gen, 12) for n in gen.integers(0, 3, 8)]
    long_runs, short_runs = ([(ports.rows(s, gen), run(ARRAY, s)) for s in group] for group in (long, short))
    before = ports.rows(random_steps(ARRAY, gen, 120), gen)

    def stimulus(sim: NativeSim) -> None:
        sim.reset()
        for rows, want in long_runs:
            check(ports, want, sim.play(rows, OUTPUTS))
        for cut in range(1, 120):
            sim.play({name: r[:cut] for name, r in before.items()}, OUTPUTS)
            sim.reset()
            rows, want = short_runs[cut % len(short_runs)]
            check(ports, want, sim.play(rows, OUTPUTS))
    return stimulus


def test_array(capsys: pytest.CaptureFixture[str], extent: Extent) -> None:
    """At least 95% of the mutants are noticed, and no survivor lacks a reason."""
    chosen = mutants(PEArray(ARRAY), extent.count(400, 2000), *extent.seeds(1, 1), BUILDS)
    report = run_mutants(chosen, array_stimulus())
    with capsys.disabled():
        print(survivors_table("pe_array", report, ARRAY_REASONS))
    assert report.score >= 0.95
    assert not [str(m) for m in report.survivors if not reason_of(str(m), ARRAY_REASONS)]
