"""Mutation of the engine: what the native stimulus does not notice has a reason, with few exceptions.

All mutants are in one build; the golden model is the judge of each. Prints the table of survivors. Which mutants are
drawn follows from the netlist, so reasons are for kinds of places.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from rtl.tile.engine.compute_engine import ComputeEngine
from sim_models.mapping.gemm import KEPT, STREAMED
from sim_models.params.tile.engine.compute_engine import ComputeEngineParams
from tb.common.mutation import mutants, reason_of, run_mutants, survivors_table
from tb.common.native import NativeSim
from tb.common.timings import at_every_timing
from tb.tile.engine.engine_host import EngineCodecs
from tb.tile.engine.engine_sessions import SessionMaker
from tests.conftest import Extent
from tests.designs.run import BUILDS

ENGINE = ComputeEngineParams(rows=4, cols=4, columns_per_hop=2, activation_depth=8, weight_depth=8, psum_depth=8)
LIMIT = 40_000
#: why a mutant of the engine is not noticed, by what it changes
REASONS = {
    r"_\$dff_Q_D_\$mux_[AY]\.B\[": "a reset value of data: no result is valid before it has gone",
    r"\$shr_Y\.Y\[[1-9]|malformed_or_mux_a_\$add_Y\.Y\[4\]|systolic_mux_\$mux_Y\.[ABY]\[[3-6]\]"
    r"|tiles\.produce_d_\$add_Y\.Y\[5\]": "a bit that is cut off",
    r"k_words_sub|o_job__payload_mux_b_sub": "a high bit, which is zero in all that fits the memories",
    r"singles_\$dff_Q_D_\$mux_Y\.A\[3\]|sequencer\.job_\$dff_Q\.Q\[[0-7]\]": "a bit that only the first cycle has",
    r"active_\$mux_S\.A": "what a counter holds while no command is at work: the next one sets it",
    r"psum_available_shift\S*mux\S*\.A": "the status of a command that is not refused",
    r"size_d_\$mux_A\.B": "the size of a malformed block, the constant zero",
    r"step_weight_en": "a weight that is read again from the same place",
    r"control_\d_\$mux_S\S*\.[AY]": "an address inverted for reads and writes alike, or not written to",
    r"(tiles|jobs)\.i__ready": "whether a queue is full that has room for all that can be on their way",
    r"cnot1 decoder\.n_tiles_sub_a_\$add_Y\.Y": "a low bit of a number of tiles that is refused for a high one",
    r"cnot1 result_path\.done_and_b_\$eq_Y\.B\[2\]": "inverted with the sign of a number of rows less one",
    r"now_d_\$add_Y\.[ABY]\[(2\d|3[01])\]": "a bit of the clock that is zero for a million cycles",
    r"const0 idle_and_b_not_a": "results that pass the last of two groups, whose operands have all been read",
    r"const1 (activation|weight)_fill\.ready_and_a_\$and_Y\.B": "what blocks partial sums alone",
    r"sequencer\.i_job__payload_\$mux_B\.[AY]\[(2[3-9]|3[0-2])\]": "what the sequencer does not use of a job",
    r"waiting_not_\$mux_S\.A|response_cycles_\$mux|cnot1 \S+\$reduce_or_Y\.A":
        "one bit, where another that is set makes it count for nothing",
}


def engine_stimulus() -> Callable[[NativeSim], None]:
    """Sessions at random paces and at every timing, some cut off by resets."""
    gen = np.random.default_rng(2)
    maker = SessionMaker(ENGINE, gen)
    codecs, sessions = EngineCodecs(ENGINE), [maker.make(30) for _ in range(24)]
    # one after the other in a half that is still in use
    sessions += [maker.script([{"m": 1, "k": 4, "n": 32, **first},
                               {"m": 1, "k": 1, "n": n, "keep": True, "activation_half": 1, "weight_half": 1},
                               {"m": 1, "k": 4, "n": n, "accumulate": KEPT}])
                 for n in (4, 12, 32) for first in ({"accumulate": STREAMED}, {"keep": True})]
    cuts, timed = [maker.make(6) for _ in range(12)], [maker.make(30) for _ in range(3)]
    checks = {id(s): (s.queues(codecs), s.counts(ENGINE), partial(s.check, codecs)) for s in sessions + cuts + timed}

    def push(sim: NativeSim, session: object) -> None:
        for stream, beats in checks[id(session)][0].items():
            sim.push(stream, beats)

    def complete(sim: NativeSim, session: object) -> None:
        _, counts, check = checks[id(session)]
        target = {stream: sim.total(stream) + count for stream, count in counts.items()}
        push(sim, session)
        sim.run(target, LIMIT)
        sim.step(30)
        check({stream: sim.take(stream)[0] for stream in counts})

    def stimulus(sim: NativeSim) -> None:
        sim.reset()
        for number, session in enumerate(sessions):
            for stream in sim.streams:
                sim.rate(stream, (1.0, 0.6, 0.2)[number % 3 if number < 24 else 0])
            complete(sim, session)
        for session in timed:
            at_every_timing(sim, *checks[id(session)], limit=LIMIT)
        for number, session in enumerate(cuts):
            push(sim, session)
            sim.step(10 + 23 * number)
            sim.reset()
            complete(sim, sessions[number])
    return stimulus


def test_engine(capsys: pytest.CaptureFixture[str], extent: Extent) -> None:
    """Of the mutants at least 85% are noticed, and 95% are noticed or have a reason."""
    chosen = mutants(ComputeEngine(ENGINE), extent.count(150, 750), *extent.seeds(1, 1), BUILDS)
    report = run_mutants(chosen, engine_stimulus())
    with capsys.disabled():
        print(survivors_table("compute_engine", report, REASONS))
    assert report.score >= 0.85
    unexplained = [str(m) for m in report.survivors if not reason_of(str(m), REASONS)]
    assert len(unexplained) <= 0.05 * (len(report.killed) + len(report.survivors)), unexplained
