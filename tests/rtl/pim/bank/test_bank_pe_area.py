"""The tables of the processing element's area, and its budget."""

import re
from typing import Any

import pytest

from gen.flows.cells import ModuleArea
from gen.flows.synth import synthesize
from rtl.pim.bank.bank_pe import BankPE
from scripts.synthesis_page import ACCUMULATORS, FORMATS, PAGE, comparison, formats, split
from sim_models.params.pim.bank.bank_pe import BankPEParams

TEXT = PAGE.read_text(encoding="utf-8")


def tables() -> list[list[list[str]]]:
    """Cells of the page's tables, without the line below the columns."""
    marked = re.search(r"(?s)<!-- element -->\n.*?<!-- end -->", TEXT)
    assert marked is not None
    blocks = re.findall(r"(?m)(?:^\|.*\n)+", marked[0])
    lines = [[line for k, line in enumerate(block.splitlines()) if k != 1] for block in blocks]
    return [[[cell.strip() for cell in line.removeprefix("|").removesuffix("|").split("|")] for line in block]
            for block in lines]


def test_fp16_element_keeps_its_budget() -> None:
    """At most 250 LUTs and a DSP a lane, with tree, accumulators and their memory; the page says so too."""
    p = BankPEParams(format="fp16")
    figures = synthesize(BankPE(p), "xcup")
    lut = (figures["lut"] + figures["lutram"] + figures["srl"]) / p.lanes
    assert lut <= 250
    assert figures["dsp"] == p.lanes
    columns, row = tables()[0][:2]
    said = dict(zip(columns, row, strict=True))
    assert said["PE, 16 lanes"] == "FP16"
    assert float(said["LUT a lane xcup"]) == round(lut, 1)
    assert int(said["DSP xcup"]) == figures["dsp"]
    assert int(said["FF xcup"]) == figures["ff"]
    assert float(said["MHz ECP5"]) >= 90


def row(**changes: Any) -> dict[str, Any]:
    figures = dict.fromkeys(("lut", "lutram", "srl", "ff", "dsp", "bram", "uram", "carry"), 0)
    return figures | {"fmax_mhz": None, "nand2": 0} | changes


def test_formats_are_lanes_and_sums() -> None:
    """LUTs of every kind are added and divided by the lanes."""
    one = {"xcup": row(lut=1600, lutram=160, srl=16, dsp=16, ff=3), "xc7": row(lut=3200, dsp=32),
           "ecp5": row(lut=4800, dsp=48, fmax_mhz=95.5), "osu018": row(nand2=7, fmax_mhz=100.5)}
    lines = formats({target: [figures] * len(FORMATS) for target, figures in one.items()}).splitlines()
    assert lines[2] == "| FP16 | 16 | 111.0 | 16 | 3 | 200.0 | 32 | 300.0 | 48 | 95.5 | 7 | 100.5 |"
    assert len({line.count("|") for line in lines}) == 1
    assert len(tables()[0]) == len(lines) - 1


def test_split_counts_the_memory_once() -> None:
    areas = {"bank_pe": ModuleArea(1, 1.0, 2.0), "pe_lane_of_fp16": ModuleArea(16, 10.0, 20.0),
             "pe_tree": ModuleArea(1, 100.0, 200.0), "pe_accumulators": ModuleArea(1, 30.0, 40.0),
             "ram_w100_d32": ModuleArea(2, 5.0, 50.0)}
    assert split(areas) == {"multipliers": 480.0, "adders": 370.0, "buffer": 60.0, "control": 3.0}


def test_comparison_is_in_parts_of_the_whole() -> None:
    parts = {"multipliers": 480.0, "adders": 360.0, "buffer": 120.0, "control": 240.0}
    text = comparison({2: (parts, 123.4)})
    for line in ("| arithmetic | 57% | 70.0% |", "| multipliers in it | not given | 40.0% |",
                 "| buffer | 16% | 10.0% |", "| control | 27% | 20.0% |",
                 "| clock | 1 GHz, 28 nm | 123.4 MHz, 180 nm without wires |",
                 "| area | 0.116 mm2, 1z-nm DRAM | 50 NAND2 |"):
        assert line in text.splitlines()


def test_the_page_compares_with_the_paper() -> None:
    columns, *rows = tables()[1]
    assert columns == ["", "SADDLE's PE", *(f"`bank_pe`, {n} accumulators" for n in ACCUMULATORS)]
    for k in range(2, len(columns)):
        shares = [float(r[k].rstrip("%")) for r in rows if r[0] in ("arithmetic", "buffer", "control")]
        assert sum(shares) == pytest.approx(100, abs=0.2)
