"""The cocotb benches of the array and of the engine notice mistakes that random commands seldom show.

Mutation tests run native stimuli; here ``speculoos sim`` alone must see that something is wrong.
"""

from pathlib import Path

import pytest

from rtl.tile.engine import compute_engine, gemm_decoder, pe_array
from sim_models.params.tile.engine.compute_engine import ComputeEngineParams
from sim_models.params.tile.engine.pe_array import PEArrayParams
from tb.common.runner import BenchResult, run_unit, variants
from tests.changed import changed
from tests.designs.run import BUILDS

#: a column group a column: the last one is far behind the first
ENGINE = ComputeEngineParams(**variants("compute_engine")["2x16"])
ARRAY = PEArrayParams(**variants("pe_array")["3x5"])
FREE = "fill.free.eq(ended[name] |"


def _failed(result: BenchResult) -> set[str]:
    assert result.tests
    return {f.test for f in result.failures}


@pytest.mark.long
@pytest.mark.parametrize(("old", "new", "test"), [
    # partial sums come in before their half is empty
    ("blocked.eq(~decoder.psum_open | (keeping != 0))", "blocked.eq(keeping != 0)",
     "a_streamed_block_belongs_to_its_command"),
    # or while results are written to the memory
    ("blocked.eq(~decoder.psum_open | (keeping != 0))", "blocked.eq(~decoder.psum_open)",
     "a_streamed_block_waits_for_kept_results"),
    # or while the last column groups have not written theirs
    ("(taken & job.keep) - ended.kept", "(taken & job.keep) - (results.done & done.keep)",
     "a_streamed_block_waits_for_kept_results"),
    # halves are free when the first column group is done with them
    (FREE, "fill.free.eq((in_half(results.done & done.accumulate & ~done.keep, done.psum_half) if name == 'psum' "
     "else ended[name]) |", "fills_run_ahead"),
    (FREE, "fill.free.eq((in_half(results.done & done[f'release_{name}'], done[f'{name}_half']) "
     "if name != 'psum' else ended[name]) |", "fills_run_ahead"),
    ("reader.written.eq(ended.output)", "reader.written.eq(in_half(results.done & ~done.keep, done.output_half))",
     "every_m"),
], ids=["empty", "written", "last_written", "psum_free", "operands_free", "output_written"])
def test_bench_of_the_engine(old: str, new: str, test: str, tmp_path: Path) -> None:
    unit = changed(compute_engine, old, new)["ComputeEngine"](ENGINE)
    assert _failed(run_unit(unit, "tb.tile.engine.test_compute_engine", block="compute_engine", seed=1, test=test,
                            build_root=BUILDS, out=tmp_path)) == {test}


def test_bench_of_the_engine_sees_who_claimed_a_half(tmp_path: Path) -> None:
    """The decoder empties a half for a block though a command before still reads or writes it."""
    decoder = changed(gemm_decoder, "settled.eq(~self.psum_claimed.bit_select(s, 1))", "settled.eq(1)")["GemmDecoder"]
    unit = changed(compute_engine, "", "", GemmDecoder=decoder)["ComputeEngine"](ENGINE)
    test = "a_streamed_block_belongs_to_its_command"
    assert _failed(run_unit(unit, "tb.tile.engine.test_compute_engine", block="compute_engine", seed=1, test=test,
                            build_root=BUILDS, out=tmp_path)) == {test}


@pytest.mark.parametrize(("old", "new", "test"), [
    # the last column group collects a cycle too early
    ("first=control, then=delayed)\n            control = delayed",
     "first=control, then=delayed)\n            control = delayed if group < p.groups - 2 else control",
     "back_to_back"),
    # sums of before a pause are subtracted
    ("m.d.sync += fresh.eq(1)      # the sums", "m.d.sync += fresh.eq(0)      # the sums", "pauses_of_every_length"),
    # nothing is
    ("tile_fresh.eq(fresh), fresh.eq(0)", "tile_fresh.eq(fresh), fresh.eq(1)", "back_to_back"),
    # the wave of the modes does not reach the last row
    ("pe.add_above.eq(vector[i + group + SUM_DELAY])",
     "pe.add_above.eq(vector[min(i, p.rows - 2) + group + SUM_DELAY])", "back_to_back"),
], ids=["last_group", "pause", "never_fresh", "last_row"])
def test_bench_of_the_array(old: str, new: str, test: str, tmp_path: Path) -> None:
    unit = changed(pe_array, old, new)["PEArray"](ARRAY)
    assert _failed(run_unit(unit, "tb.tile.engine.test_pe_array", block="pe_array", seed=1, test=test,
                            build_root=BUILDS, out=tmp_path)) == {test}
