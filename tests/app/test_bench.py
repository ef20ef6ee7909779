"""``speculoos bench``: measured cycles, targets, baselines, tables, plots and what is refused."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scripts.performance import PAGES
from sim_models.golden.tile.engine.compute_engine import STATUS, cycles, gap, steps
from sim_models.mapping.gemm import Program
from sim_models.params.tile.engine.compute_engine import ComputeEngineParams
from speculoos import plots
from speculoos.bench.baselines import baseline_engines, weight_reads
from speculoos.cli import main
from speculoos.report import Report
from tb.tile.engine import engine_meter
from tb.tile.engine.engine_meter import EngineMeter, alternate, resident
from tests.designs.run import BUILDS

Capture = pytest.CaptureFixture[str]
Rows = list[dict[str, Any]]

SMALL = ComputeEngineParams(rows=4, cols=4, activation_depth=64, weight_depth=64, psum_depth=64)
MODEL = ("[model]\ndim = 16\nhidden_dim = 24\nn_layers = 2\nn_heads = 2\nn_kv_heads = 1\nvocab_size = 32\n"
         "max_seq_len = 32\n")


@pytest.fixture(autouse=True)
def in_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands run in a folder that holds two designs with a tiny model."""
    monkeypatch.chdir(tmp_path)
    Path("full.toml").write_text(f'name = "full"\nblock = "compute_engine"\n{MODEL}')
    Path("small.toml").write_text(f'name = "shallow"\nblock = "compute_engine"\n[params]\nrows = 4\ncols = 4\n'
                                  f'activation_depth = 64\nweight_depth = 64\npsum_depth = 64\n{MODEL}')


@pytest.fixture(scope="module")
def meter() -> EngineMeter:
    return EngineMeter(SMALL, BUILDS)


def bench(capsys: Capture, *arguments: str) -> tuple[dict[str, Any], str]:
    """JSON document and text of a measurement that succeeds."""
    code = main(["bench", *arguments, "--build-dir", str(BUILDS), "--json", "b.json"])
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    return json.loads(Path("b.json").read_text()), out


def test_the_default_engine_meets_its_targets(capsys: Capture) -> None:
    data, out = bench(capsys, "full.toml", "--mode", "auto")
    assert [t["state"] for t in data["targets"]] == ["met"] * 5
    assert out.count("  met\n") == 5
    page = PAGES["performance"].read_text(encoding="utf-8")
    for line in out.splitlines():
        if line.endswith("  met"):
            assert f"\n{line}\n" in page, "bring docs/performance.md up to date with: python -m scripts.performance"
    rows: Rows = data["rows"]
    square = [r for r in rows if r["section"] == "square"]
    assert [(r["m"], r["k"], r["n"]) for r in square] == [(m, 64, 64) for m in range(1, 65)]
    assert min(r["utilisation_back_to_back"] for r in square) >= 0.95
    assert {(r["k"], r["n"]) for r in rows if r["section"] == "model"} == {
        (16, 16), (16, 8), (16, 24), (24, 16), (16, 32)}
    p = ComputeEngineParams()
    for r in square:
        assert r["cycles"] == cycles(p, r["m"], 64, 64)
        assert r["interval"] == steps(p, r["m"], 64, 64) + gap(p, (r["m"], "auto"), (r["m"], "auto"))
        assert (r["operands"], r["bound"], r["macs"]) == ("resident", "array", r["m"] * 4096)
        assert r["utilisation"] == r["macs"] / r["cycles"] / 64


def test_sizes_and_modes_can_be_chosen(capsys: Capture) -> None:
    data, out = bench(capsys, "engine_small", "--m", "5,1-2", "--k", "9", "--n", "16", "--mode", "systolic,vector")
    rows: Rows = data["rows"]
    assert [(r["m"], r["k"], r["n"], r["mode"]) for r in rows] == [
        (m, 9, 16, mode) for m in (5, 1, 2) for mode in ("systolic", "vector")]
    assert rows[0]["cycles"] == cycles(SMALL, 5, 9, 16, "systolic")
    assert data["compared"] == sum(13 * r["m"] * 16 for r in rows)
    assert f"{data['compared']} values equal" in out
    assert "targets" not in data


def test_small_commands_are_bound_by_their_turnaround(capsys: Capture) -> None:
    data, _ = bench(capsys, "engine_small", "--m", "1,8", "--k", "1,12", "--n", "1,32", "--mode", "auto")
    rows = {(r["m"], r["k"], r["n"]): r for r in data["rows"]}
    assert {shape for shape, r in rows.items() if r["bound"] == "turnaround"} == {
        (1, 1, 1), (1, 1, 32), (8, 1, 1), (8, 1, 32), (1, 12, 1)}
    assert rows[8, 1, 32]["interval"] > 8 * 8           # a beat of results for every step, and what is around it
    assert rows[8, 12, 32]["interval"] == 3 * 8 * 8


def test_a_gemm_of_several_commands_streams_its_operands(capsys: Capture) -> None:
    data, _ = bench(capsys, "engine_small", "--m", "9", "--k", "70", "--n", "40", "--mode", "auto")
    [row] = data["rows"]
    assert (row["operands"], row["commands"]) == ("streamed", len(program(9, 70, 40).commands))
    assert row["commands"] > 1
    assert row["interval"] >= steps(SMALL, 9, 70, 40)


@pytest.mark.parametrize(("design", "modes"), [("engine_systolic", ["systolic"]), ("engine_vector", ["vector"])])
def test_baselines_have_one_mode(capsys: Capture, design: str, modes: list[str]) -> None:
    settings = [f"--set={name}={value}" for name, value in (
        ("rows", 4), ("cols", 4), ("activation_depth", 64), ("weight_depth", 64), ("psum_depth", 64))]
    data, _ = bench(capsys, design, *settings, "--m", "3", "--k", "8", "--n", "8")
    assert [r["mode"] for r in data["rows"]] == modes


def test_whole_passes_on_three_engines(capsys: Capture) -> None:
    data, out = bench(capsys, "small.toml", "--baselines", "--m", "1,3-4", "--plot", "b.png")
    passes = {(r["m"], r["engine"]): r for r in data["passes"]}
    assert set(passes) == {(m, e) for m in (1, 3, 4) for e in ("auto", "systolic-only", "vector-only")}
    engines = baseline_engines(SMALL)
    matrices = {r["matrices"] for r in data["passes"]}
    assert matrices == {2 * 7 + 1}
    for (m, name), r in passes.items():
        work = sum(len(s["matrices"]) * steps(engines[name], m, s["k"], s["n"]) for s in data["rows"]
                   if (s["m"], s["engine"]) == (m, name))
        # A pass can be slower than its array, where operands come late, never faster.
        assert work <= r["cycles"] <= 2 * work
        assert r["busy_cycles"] > work
    for m in (1, 3):
        assert passes[m, "auto"]["cycles"] < passes[m, "systolic-only"]["cycles"]
    assert passes[4, "auto"]["cycles"] == pytest.approx(passes[4, "systolic-only"]["cycles"], rel=0.01)
    assert passes[4, "auto"]["weight_reads"] * 4 == passes[4, "vector-only"]["weight_reads"]
    assert "SPECTRA's Fig. 6" in out
    assert f"{passes[1, 'systolic-only']['cycles'] / passes[1, 'auto']['cycles']:.2f}x" in out
    assert Path("b.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("changes", "m", "reads"), [
    ({}, 9, 2 + 1), ({}, 3, 3), ({"modes": "systolic"}, 9, 3), ({"modes": "vector"}, 9, 9)])
def test_weight_reads(changes: dict[str, str], m: int, reads: int) -> None:
    assert weight_reads(SMALL.replace(**changes), m, 5, 9) == reads * 2 * 3


def program(m: int, k: int, n: int) -> Program:
    rng = np.random.default_rng(1)
    return Program(SMALL, rng.integers(-128, 128, (m, k)), rng.integers(-128, 128, (k, n)))


def test_programs_in_a_row_use_both_halves() -> None:
    two, one = program(1, 64, 32), program(2, 8, 8)
    assert (len(two.weights), len(one.weights)) == (2, 1)
    row = alternate([one, two, one, one])
    assert [half for q in row for half, _ in q.weights] == [0, 1, 0, 1, 0]
    assert [half for q in row for half, _ in q.activations] == [0, 1, 0, 1]
    assert [(c.activation_half, c.weight_half) for q in row for c in q.commands] == [
        (0, 0), (1, 1), (1, 0), (0, 1), (1, 0)]
    assert [half for half, _ in one.weights] == [0]


def test_resident_operands_are_filled_once_and_released_last() -> None:
    row = resident(program(2, 8, 8), 3)
    assert [len(q.weights) for q in row] == [1, 0, 0]
    assert [(c.release_activation, c.release_weight) for q in row for c in q.commands] == [
        (False, False), (False, False), (True, True)]
    with pytest.raises(ValueError, match="of one command was wanted, one of 2 came"):
        resident(program(1, 64, 32), 2)


def test_measured_back_to_back_is_the_distance_of_single_runs(meter: EngineMeter) -> None:
    """The distance that ``measure`` reports, found another way: longer rows take so many cycles more."""
    q = program(5, 12, 20)
    totals = [meter.host.run(resident(q, count))[-1].cycles for count in (6, 16)]
    got = meter.measure(*operands_of(5, 12, 20), "auto")
    assert got.interval == (totals[1] - totals[0]) / 10
    assert got.interval == got.array == steps(SMALL, 5, 12, 20) + 1


def operands_of(m: int, k: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    return rng.integers(-128, 128, (m, k)), rng.integers(-128, 128, (k, n))


def test_a_wrong_value_ends_the_command(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_meter, "_product", lambda x, w: x @ w + (np.arange(w.shape[1]) == 3))
    code = main(["bench", "engine_small", "--m", "2", "--k", "4", "--n", "4", "--build-dir", str(BUILDS),
                 "--json", "b.json"])
    out, err = capsys.readouterr()
    assert (code, out) == (1, "")
    assert err.startswith("speculoos: error: the RTL differs from its model: results of 2 x 4 x 4 auto[0, 3]")
    assert not Path("b.json").exists()


def test_a_wrong_cycle_count_ends_the_command(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_meter, "cycles", lambda *shape: cycles(*shape) + 1)
    code = main(["bench", "engine_small", "--m", "2", "--k", "4", "--n", "4", "--build-dir", str(BUILDS)])
    n = cycles(SMALL, 2, 4, 4)
    assert code == 1
    assert (f"response 0 of 2 x 4 x 4 auto: got ok after {n} cycles, want ok after {n + 1}"
            in capsys.readouterr().err)
    assert STATUS[0] == "ok"


def test_plots_are_the_same_bytes_each_time(capsys: Capture) -> None:
    rows = [{"m": m, "k": k, "n": 8, "mode": mode, "utilisation": 0.5 / m, "utilisation_back_to_back": 1 / m}
            for m in (1, 2, 3) for k in (8, 16) for mode in ("auto", "systolic")]
    made = []
    for name in ("a.png", "b.png", "a.svg", "b.svg"):
        assert plots.utilisation_plot(rows, 64, Path(name), Report()) == 0
        made.append(Path(name).read_bytes())
    assert made[0] == made[1]
    assert made[2] == made[3]
    assert b"K = 16, N = 8" in made[2]
    assert "wrote b.svg" in capsys.readouterr().out


def test_panels_follow_the_size_that_varies_most() -> None:
    rows = [{"m": 1, "k": k, "n": n} for k in (8, 16) for n in (1, 2, 3)]
    over, panels = plots.panels_of(rows)
    assert (over, list(panels)) == ("n", ["M = 1, K = 8", "M = 1, K = 16"])


def test_without_matplotlib_the_rest_still_works(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code = main(["bench", "engine_small", "--m", "2", "--k", "4", "--n", "4", "--plot", "b.png", "--json", "b.json",
                 "--build-dir", str(BUILDS)])
    out, err = capsys.readouterr()
    assert (code, err) == (1, "")
    assert plots.HINT in out
    assert len(json.loads(Path("b.json").read_text())["rows"]) == 3
    assert not Path("b.png").exists()


SIZES = "sizes from 1 to 1048576 were wanted, as 9 or 1-17 or 1,8,64, not"


@pytest.mark.parametrize(("arguments", "message"), [
    (["engine", "--m", "0"], f"argument --m: {SIZES} '0'; see `speculoos bench engine --help`"),
    (["engine", "--k", "9-3"], f"argument --k: {SIZES} '9-3'; see `speculoos bench engine --help`"),
    (["engine", "--n", "1,,2"], f"argument --n: {SIZES} '1,,2'; see `speculoos bench engine --help`"),
    (["engine", "--n", "-1"], f"argument --n: {SIZES} '-1'; see `speculoos bench engine --help`"),
    (["engine", "--mode", "systollic"], "argument --mode: there is no mode 'systollic' (did you mean 'systolic'?), "
                                        "only auto, systolic, vector; see `speculoos bench engine --help`"),
    (["engine", "--k", "140000"], "K must be at most 131071, so that 32 bits cannot overflow, not 140000"),
    (["engine", "--k", "100000", "--n", "1000"], "a GEMM may have at most 16777216 weights, not 100000 x 1000"),
    (["engine", "--m", "100000", "--k", "4096", "--n", "4096", "--mode", "auto"],
     "at most 20000000 array cycles can be measured at once, these sizes take 26214400000"),
    (["engine_systolic", "--mode", "vector"], "mode vector is not built into this engine, only auto and systolic"),
    (["fifo"], "bench measures a compute_engine, manager, saddle_manager or pim_stack, and fifo is a fifo"),
    (["engine", "--plot", "x.gif"], "--plot needs a file that ends in .png, .svg, .pdf, not x.gif"),
    (["engine", "--plot", "none/x.png"], "--plot none/x.png: there is no folder none"),
    (["engine", "--m", "1", "--k", "1-4", "--n", "1-13", "--m", "1-14", "--plot", "x.png"],
     "--plot shows one size over at most 12 pairs of the two others, not 52"),
    (["engine", "--baselines", "--k", "8"], "--k and --baselines exclude each other: the models decide K and N, the "
                                            "engines their modes"),
    (["--m", "9", "engine"], "bench takes the design first, as in `speculoos bench engine --m 9`, not '--m'"),
    (["engine", "--batch", "3"],
     "unknown option '--batch'; see `speculoos bench engine --help`"),
    (["pim", "--m", "3"], "unknown option '--m'; see `speculoos bench pim --help`"),
    (["manager", "--plain"],
     "unknown option '--plain' (did you mean '--machine'?); see `speculoos bench manager --help`"),
    (["engine", "--seed", "x"], "argument --seed: a seed is an integer from 0 to 2147483647, not 'x'; see "
                                "`speculoos bench engine --help`"),
])
def test_wrong_input_is_one_sentence(capsys: Capture, arguments: list[str], message: str) -> None:
    assert main(["bench", *arguments]) == 2
    assert capsys.readouterr() == ("", f"speculoos: error: {message}\n")
