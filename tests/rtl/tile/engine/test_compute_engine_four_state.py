"""The engine in Icarus, a four-state simulator: nothing that was never written reaches control or results.

Hardware and Verilator have no unknown values, so a shift of 0 by an unknown amount is 0 there; here it is unknown,
and a register that takes it stays so for ever. The Verilog has no initial values, so every register is unknown until
a reset of three cycles.
"""

import subprocess
from pathlib import Path

import numpy as np
import pytest

from gen.emit.emit import Design, emit
from gen.emit.initial import without_initial_values
from rtl.tile.engine.compute_engine import ComputeEngine
from sim_models.params.tile.engine.compute_engine import ComputeEngineParams
from tb.tile.engine.engine_sessions import Session, SessionMaker, check_results

P = ComputeEngineParams
ENGINES = {
    "4x2": P(rows=4, cols=2, columns_per_hop=1, activation_depth=16, weight_depth=16, psum_depth=16),
    "2x1": P(rows=2, cols=1, operand_width=2, acc_width=4, psum_width=8, activation_depth=2, weight_depth=2,
             psum_depth=2),
}
#: a stream's source; while it has no beat to offer its payload is unknown, but for the half that steers ready
SOURCE = """
  reg [{high}:0] mem_{s} [0:{words}]; integer at_{s} = 0, next_{s} = 0; reg v_{s} = 0; wire r_{s};
  initial $readmemb("{s}.mem", mem_{s});
  always @(negedge clk) begin
    if (v_{s} && r_{s} === 1'bx) $display("unknown {s} ready");
    if (v_{s} && r_{s}) begin next_{s} = at_{s} + 1; offer_{s} = 0; end else offer_{s} = v_{s};
    if (!rst && !offer_{s}) offer_{s} = next_{s} < {beats} && ($random & 255) < {rate};
  end
  reg offer_{s} = 0;
  always @(posedge clk) #1 begin at_{s} = next_{s}; v_{s} = offer_{s}; end
"""
SINK = """
  wire v_{s}; reg r_{s} = 0; wire [{high}:0] d_{s}; integer n_{s} = 0;
  always @(posedge clk) #1 r_{s} = ($random & 255) < {rate};
  always @(negedge clk) if (!rst) begin
    if (v_{s} === 1'bx) $display("unknown {s} valid");
    if (v_{s} && r_{s}) begin $display("{s} %b", d_{s}); n_{s} = n_{s} + 1; end
  end
"""


def _bench(p: ComputeEngineParams, session: Session, beats: dict[str, np.ndarray], design: Design, rate: int) -> str:
    widths = {q.name: q.width for q in design.ports[design.top]}
    text = "`timescale 1ns/1ps\nmodule bench;\n  reg clk = 0, rst = 1; always #5 clk = ~clk;\n"
    pins = [".clk(clk)", ".rst(rst)"]
    for s in (*beats, "o_response", "o_result"):
        width = widths[f"{s}__payload"]
        part = SOURCE if s in beats else SINK
        count = len(beats.get(s, ()))
        text += part.format(s=s, high=width - 1, words=max(count, 1) - 1, beats=count, rate=rate)
        idle = f"v_{s} ? mem_{s}[at_{s}] : {{{width}{{1'bx}}}}" if s == "i_command" else f"mem_{s}[at_{s}]"
        pins += [f".{s}__valid(v_{s})", f".{s}__ready(r_{s})",
                 f".{s}__payload({idle if s in beats else f'd_{s}'})"]
    responses, results = session.counts(p).values()
    return text + f"""
  {design.top} dut({', '.join(pins)});
  initial begin
    repeat (3) @(posedge clk); #1 rst = 0;
    repeat (50000) if (n_o_response < {responses} || n_o_result < {results}) @(posedge clk);
    repeat (20) @(posedge clk);
    $finish;
  end
endmodule
"""


@pytest.mark.parametrize("rate", [256, 40])
@pytest.mark.parametrize("engine", ENGINES)
def test_everything_that_counts_is_known(engine: str, rate: int, tmp_path: Path) -> None:
    """A random session: every command is answered as the model says, every result beat comes."""
    p = ENGINES[engine]
    maker = SessionMaker(p, np.random.default_rng(rate))
    session = next(s for s in (maker.make(30) for _ in range(20)) if len(s.outputs) > 3)
    beats = {s: np.concatenate(blocks) for s, blocks in session.beats.items() if blocks}
    beats = {s: beats.get(s, np.zeros((0, 1), np.uint8)) for s in session.beats}
    beats["i_command"] = maker.codecs.commands(session.commands)
    design = without_initial_values(emit(ComputeEngine(p)))
    widths = {q.name: q.width for q in design.ports[design.top]}
    for s, rows in beats.items():
        words = [f"{int.from_bytes(bytes(row), 'little'):0{widths[f'{s}__payload']}b}" for row in rows]
        (tmp_path / f"{s}.mem").write_text("\n".join(words or ["0"]) + "\n")
    (tmp_path / "design.v").write_text(design.simulation)
    (tmp_path / "bench.v").write_text(_bench(p, session, beats, design, rate))
    subprocess.run(["iverilog", "-g2005", "-o", "sim", "-s", "bench", "bench.v", "design.v"], cwd=tmp_path,
                   check=True)
    done = subprocess.run(["vvp", "-n", "sim"], cwd=tmp_path, check=True, capture_output=True, text=True, timeout=120)
    lines = done.stdout.splitlines()
    assert not [line for line in lines if line.startswith("unknown")]
    answers = [line.split()[1] for line in lines if line.startswith("o_response ")]
    payloads = np.array([list(int(a, 2).to_bytes(-(-len(a) // 8), "little")) for a in answers], np.uint8)
    assert maker.codecs.responses(payloads) == session.responses
    results = [line.split()[1] for line in lines if line.startswith("o_result ")]
    payloads = np.array([list(int(r.replace("x", "0"), 2).to_bytes(-(-len(r) // 8), "little")) for r in results],
                        np.uint8)
    check_results(maker.codecs, payloads, session.outputs, "results in four states")
    # lanes that are kept are known to the last bit: lanes beyond N may be anything
    for text, keep in zip(results, maker.codecs.result.unpack(payloads)["keep"], strict=True):
        lanes = [text[len(text) - (j + 1) * p.psum_width:len(text) - j * p.psum_width] for j in range(p.cols)]
        assert not [lane for j, lane in enumerate(lanes) if int(keep) >> j & 1 and "x" in lane], text
