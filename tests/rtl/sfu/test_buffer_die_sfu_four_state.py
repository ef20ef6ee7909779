"""The special function unit in Icarus, a four-state simulator: only lanes that do not count may be unknown."""

import subprocess
from pathlib import Path

import numpy as np
import pytest

from gen.emit.emit import emit
from rtl.sfu.buffer_die_sfu import BufferDieSfu
from rtl.sfu.layouts import sfu_beat, sfu_response
from sim_models.params.sfu.buffer_die_sfu import BufferDieSfuParams
from tb.common.packing import codec
from tb.sfu.sfu_traffic import FAULTS, check, pack, random_job
from tests.rtl.tile.engine.test_compute_engine_four_state import SINK, SOURCE

P = BufferDieSfuParams(lanes=2, max_length=8)


def _texts(rows: np.ndarray, width: int) -> list[str]:
    return [f"{int.from_bytes(bytes(row), 'little'):0{width}b}" for row in rows]


def _unknown_lanes(text: str, keep: np.ndarray) -> str:
    """A beat of the row without the numbers that are not kept; the lowest lane is the last in the text."""
    for lane, kept in enumerate(keep):
        if not kept:
            end = len(text) - 32 * lane
            text = text[:end - 32] + "x" * 32 + text[end:]
    return text


@pytest.mark.parametrize("rate", [256, 60])
def test_everything_that_counts_is_known(rate: int, tmp_path: Path) -> None:
    gen = np.random.default_rng(rate)
    jobs = [random_job(P, gen, int(gen.integers(0, 9)), fault=str(gen.choice(FAULTS)) if gen.random() < 0.2 else None)
            for _ in range(60)]
    answers, packed = [j.answer(P) for j in jobs], pack(P, jobs)
    wanted = {"o_row": sum(len(a.data) for a in answers), "o_response": len(jobs)}
    design = emit(BufferDieSfu(P))
    widths = {q.name: q.width for q in design.ports[design.top]}
    keeps = np.concatenate([j.row.keep for j in jobs])
    beats = {f"i_{name}": _texts(getattr(packed, name), widths[f"i_{name}__payload"])
             for name in ("command", "row", "operands")}
    beats["i_row"] = [_unknown_lanes(text, keep) for text, keep in zip(beats["i_row"], keeps, strict=True)]

    text = "`timescale 1ns/1ps\nmodule bench;\n  reg clk = 0, rst = 1; always #5 clk = ~clk;\n"
    pins = [".clk(clk)", ".rst(rst)"]
    for s in (*beats, *wanted):
        count, width = len(beats.get(s, ())), widths[f"{s}__payload"]
        text += (SOURCE if s in beats else SINK).format(s=s, high=width - 1, words=max(count, 1) - 1, beats=count,
                                                        rate=rate)
        payload = f"v_{s} ? mem_{s}[at_{s}] : {{{width}{{1'bx}}}}" if s in beats else f"d_{s}"
        pins += [f".{s}__valid(v_{s})", f".{s}__ready(r_{s})", f".{s}__payload({payload})"]
        (tmp_path / f"{s}.mem").write_text("\n".join(beats.get(s, [])) + "\n")
    text += f"""
  {design.top} dut({', '.join(pins)});
  initial begin
    repeat (3) @(posedge clk); #1 rst = 0;
    repeat (50000) if (n_o_response < {wanted['o_response']} || n_o_row < {wanted['o_row']}) @(posedge clk);
    repeat (20) @(posedge clk);
    $finish;
  end
endmodule
"""
    (tmp_path / "design.v").write_text(design.verilog)
    (tmp_path / "bench.v").write_text(text)
    subprocess.run(["iverilog", "-g2005", "-o", "sim", "-s", "bench", "bench.v", "design.v"], cwd=tmp_path,
                   check=True)
    done = subprocess.run(["vvp", "-n", "sim"], cwd=tmp_path, check=True, capture_output=True, text=True, timeout=120)
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith(("unknown", "o_"))]
    assert not [line for line in lines if line[0] == "unknown" or "x" in line[1]]
    got = {s: [list(int(bits, 2).to_bytes(-(-len(bits) // 8), "little")) for name, bits in lines if name == s]
           for s in wanted}
    assert {s: len(rows) for s, rows in got.items()} == wanted
    check(P, answers, codec(sfu_beat(P)).unpack(np.array(got["o_row"], np.uint8)),
          codec(sfu_response(P)).unpack(np.array(got["o_response"], np.uint8)), "four states")
