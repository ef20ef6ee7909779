"""Mutation of the processing element and of the rounder: what the native stimuli do not notice must have a reason.

Prints the table of survivors.
"""

from collections.abc import Callable

import numpy as np
import pytest

from rtl.pim.bank.bank_pe import BankPE
from rtl.pim.bank.sum_rounder import SumRounder
from sim_models.golden.pim.bank.bank_pe import BankPE as Model
from sim_models.golden.pim.bank.sum_rounder import SumRounder as RounderModel
from sim_models.params.pim.bank.bank_pe import BankPEParams
from sim_models.params.pim.bank.sum_rounder import SumRounderParams
from tb.common.mutation import mutants, reason_of, run_mutants, survivors_table
from tb.common.native import NativeSim
from tb.pim.bank.pe_sums import random_sums
from tb.pim.bank.pe_traffic import PATTERNS, pack_steps, pack_sums, random_traffic, seen, unpack_sums
from tests.conftest import Extent
from tests.designs.run import BUILDS

ELEMENT = BankPEParams(lanes=2, accumulators=4, terms_width=3)
ROUNDER = SumRounderParams()
_COMMON = {
    r"const0 valid_\d_\$dff_Q_D_\$mux_Y\.B": "a reset value that is zero already",
    r"cnot1 \S+_\$reduce_or_Y\.A|cnot0 \S+_\$reduce_and_Y\.A": "another of several causes decides already",
}
#: why a mutant cannot be noticed, by what it changes
ELEMENT_REASONS = _COMMON | {
    r"add_\$add_Y\.Y\[0\]": "the lowest bit of the sum is there for its carry alone",
    r"sum_1_0_add_\$add_Y\.[AY]\[8[345]\]|write_data_add_\$add_Y\.[AY]\[8[678]\]|sum_d_mux_b_\$add_Y\.Y\[2\d\]":
        "a carry that is cut off",
    r"const0 lane_\d\.(coarse_2_mux\S*\.[ABY]\[[12]?\d\]|place_mux\S*\.[ABY]\[[0-7]\])":
        "a place that the shift leaves zero",
    r"lane_\d\.place_mux_1_\$mux_Y\.[ABY]\[2[789]\]": "a bit above the multiplier's operand",
    r"cnot. lane_\d\.(place|near)\S*mux\S*\.": "the other bit is zero, or a sign: int8 is not shifted so",
    r"const0 lane_\d\.number_[ab]_\$dff_Q_1_D_\$mux_Y\.A": "a bit that is the constant zero already",
    r"lane_\d\.[ab]_hidden_mux_\$mux_Y\.[ABY]\[3\]|mark_5_\$dff_Q\.[DQ]\[[01]\]": "a bit that nothing reads",
    r"accumulators\.sums\.n_\d_\$dff_Q_D_\$mux_Y\.A": "what is held while nothing is read, which never happens",
}
ROUNDER_REASONS = _COMMON | {
    r"single_exponent_sub_\$sub_Y\.Y\[[89]\]|(single|half)_code_add_\$add_Y\.Y\[(1[7-9]|[23]\d)\]|"
    r"half_exponent_(add|sub)_\$(add|sub)_Y\.Y\[[7-9]\]": "a carry that is cut off",
    r"const1 zeros_(128_94|64_46|32_22|16_10|8_4|4_2)_any_\$or_Y|const0 zeros_2_0_zeros_\$mux_Y\.A\[5\]|"
    r"const1 zeros_64_46_any_\$or_Y\.B": "whether the lowest places are all zero: they are not, or the sum is zero",
    r"const0 (zero|half)_3_mux\S*\.B": "a bit that is the constant zero already",
}


def _element_stimulus() -> Callable[[NativeSim], None]:
    """Every order of accumulators, then resets of one cycle with steps on their way."""
    p, gen = ELEMENT, np.random.default_rng(1)

    def inputs(traffic):
        return {"step": pack_steps(p, traffic), "read_en": traffic.read_en.astype(np.uint8)[:, None],
                "read_index": traffic.read_index.astype(np.uint8)[:, None]}

    model = Model(p)
    long = [random_traffic(p, gen, 400, pattern=pattern, rate=0.8) for pattern in PATTERNS]
    long += [random_traffic(p, gen, 1200, pattern="round", kinds=(kind,)) for kind in ("infinite", "special")]
    runs = [(inputs(t), seen(model, t)) for t in long]
    short = [random_traffic(p, gen, 24, pattern="random", rate=0.5) for _ in range(8)]
    cuts = [(inputs(t), seen(Model(p), t)) for t in short]
    before = inputs(long[0])

    def check(sim: NativeSim, rows: dict[str, np.ndarray], want: list) -> None:
        came = sim.play(rows, ["sum", "busy"])
        assert came["busy"][:, 0].tolist() == [busy for _, busy in want]
        known = [k for k, (total, _) in enumerate(want) if total is not None]
        assert unpack_sums(p, came["sum"][known]) == [want[k][0] for k in known]

    def stimulus(sim: NativeSim) -> None:
        sim.reset()
        for rows, want in runs:
            check(sim, rows, want)
        for k, (rows, want) in enumerate(cuts):
            sim.play({name: r[:3 + k] for name, r in before.items()}, ["sum"])
            sim.reset()
            check(sim, rows, want)
    return stimulus


def test_element(capsys: pytest.CaptureFixture[str], extent: Extent) -> None:
    """At least 95% of the mutants are noticed, and no survivor lacks a reason."""
    chosen = mutants(BankPE(ELEMENT), extent.count(400, 2000), *extent.seeds(1, 1), BUILDS)
    report = run_mutants(chosen, _element_stimulus())
    with capsys.disabled():
        print(survivors_table("bank_pe", report, ELEMENT_REASONS))
    assert report.score >= 0.95
    assert not [str(m) for m in report.survivors if not reason_of(str(m), ELEMENT_REASONS)]


def _rounder_stimulus() -> Callable[[NativeSim], None]:
    """Sums of every size in every format, with pauses."""
    p, gen = ROUNDER, np.random.default_rng(2)
    sums, formats = random_sums(p, gen, 6000)
    want = RounderModel(p).results(sum=sums, format=formats)["result"]
    enable = gen.random(2 * len(sums)) < 0.6
    offer = gen.random(2 * len(sums)) < 0.9
    at = np.cumsum(enable) - enable                     # which entry stands at the input
    rows = {"enable": enable.astype(np.uint8)[:, None], "i_valid": offer.astype(np.uint8)[:, None],
            "sum": pack_sums(p, sums)[at % len(sums)], "format": np.array(formats, np.uint8)[at % len(sums)][:, None]}
    taken = np.flatnonzero(enable)

    def stimulus(sim: NativeSim) -> None:
        sim.reset()
        came = sim.play(rows, ["o_valid", "result"])
        result = np.ascontiguousarray(came["result"]).view("<u4")[:, 0]
        # the n-th enabled edge sees what was offered `stages` enabled edges before
        valid = came["o_valid"][taken, 0]
        assert not valid[:p.stages].any()
        offered = offer[taken][:-p.stages]
        assert (valid[p.stages:] == offered).all()
        wanted = want[at[taken] % len(sums)][:-p.stages]
        assert (result[taken][p.stages:] == wanted)[offered].all()
        sim.reset()
        assert sim.get("o_valid") == 0
    return stimulus


def test_rounder(capsys: pytest.CaptureFixture[str], extent: Extent) -> None:
    """At least 95% of the mutants are noticed, and no survivor lacks a reason."""
    chosen = mutants(SumRounder(ROUNDER), extent.count(300, 1500), *extent.seeds(1, 1), BUILDS)
    report = run_mutants(chosen, _rounder_stimulus())
    with capsys.disabled():
        print(survivors_table("sum_rounder", report, ROUNDER_REASONS))
    assert report.score >= 0.95
    assert not [str(m) for m in report.survivors if not reason_of(str(m), ROUNDER_REASONS)]
