"""The pseudo-channel in Icarus, a four-state simulator: nothing that was never written reaches control or sums."""

import subprocess
from pathlib import Path

import numpy as np
import pytest

from gen.emit.emit import emit
from rtl.pim.channel.pseudo_channel import PseudoChannel
from sim_models.golden.pim.channel import pseudo_channel
from sim_models.params.pim.bank.dram_bank import TIMINGS
from sim_models.params.pim.channel.pseudo_channel import PseudoChannelParams
from tb.pim.channel.channel_host import ChannelCodecs, compare_responses
from tb.pim.channel.channel_sessions import SessionMaker, fill
from tests.rtl.tile.engine.test_compute_engine_four_state import SINK, SOURCE

P = PseudoChannelParams(**TIMINGS["fast"], lanes=1, rows=4, columns=2, buffer_words=16, accumulators=4)


@pytest.mark.parametrize("rate", [256, 60])
def test_everything_that_counts_is_known(rate: int, tmp_path: Path) -> None:
    """A random session, right and wrong; payloads are unknown while a stream has no beat."""
    gen = np.random.default_rng(rate)
    codecs, maker = ChannelCodecs(P), SessionMaker(P, gen, wrong=0.2, longest=20)
    sessions = [fill(P, gen), *(maker.make(12) for _ in range(8))]
    commands = [c for session in sessions for c in session.commands]
    data = np.concatenate([session.data for session in sessions])
    outcome = pseudo_channel.PseudoChannel(P).run(commands, data)
    wanted = {"o_response": len(commands), "o_sums": len(outcome.beats)}
    design = emit(PseudoChannel(P))
    widths = {q.name: q.width for q in design.ports[design.top]}
    beats = {"i_command": codecs.commands(commands), "i_data": codecs.data(data)}

    text = "`timescale 1ns/1ps\nmodule bench;\n  reg clk = 0, rst = 1; always #5 clk = ~clk; wire [3:0] error;\n"
    pins = [".clk(clk)", ".rst(rst)", ".error(error)"]
    for s in (*beats, *wanted):
        rows, width = beats.get(s, ()), widths[f"{s}__payload"]
        text += (SOURCE if s in beats else SINK).format(s=s, high=width - 1, words=max(len(rows), 1) - 1,
                                                        beats=len(rows), rate=rate)
        payload = f"v_{s} ? mem_{s}[at_{s}] : {{{width}{{1'bx}}}}" if s in beats else f"d_{s}"
        pins += [f".{s}__valid(v_{s})", f".{s}__ready(r_{s})", f".{s}__payload({payload})"]
        lines = [f"{int.from_bytes(bytes(row), 'little'):0{width}b}\n" for row in rows]
        (tmp_path / f"{s}.mem").write_text("".join(lines))
    text += f"""
  {design.top} dut({', '.join(pins)});
  initial begin
    repeat (3) @(posedge clk); #1 rst = 0;
    repeat (50000) if (n_o_response < {wanted['o_response']} || n_o_sums < {wanted['o_sums']}) @(posedge clk);
    repeat (20) @(posedge clk);
    $display("error %b", error);
    $finish;
  end
endmodule
"""
    (tmp_path / "design.v").write_text(design.verilog)
    (tmp_path / "bench.v").write_text(text)
    subprocess.run(["iverilog", "-g2005", "-o", "sim", "-s", "bench", "bench.v", "design.v"], cwd=tmp_path,
                   check=True)
    done = subprocess.run(["vvp", "-n", "sim"], cwd=tmp_path, check=True, capture_output=True, text=True, timeout=120)
    found = [line.split() for line in done.stdout.splitlines() if line.startswith(("unknown", "o_", "error"))]
    assert not [line for line in found if line[0] == "unknown" or "x" in line[1]]
    assert [line for line in found if line[0] == "error"] == [["error", "0000"]]
    got = {s: np.array([list(int(bits, 2).to_bytes(-(-len(bits) // 8), "little"))
                        for name, bits in found if name == s], np.uint8) for s in wanted}
    assert {s: len(rows) for s, rows in got.items()} == wanted
    compare_responses(commands, codecs.responses(got["o_response"]), outcome.responses, "four states", exact=False)
    assert len(outcome.beats) > 10
    assert (got["o_sums"] == codecs.beats(outcome)).all()
