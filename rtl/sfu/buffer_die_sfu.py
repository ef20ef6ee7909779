"""The special function unit of the buffer die: softmax, norms, activations and sums of rows of float32 numbers.

::

    i_command -> SfuControl -> o_response
                   | pass, factor, addend
    i_row -----> SfuLane x lanes --------------------------> SfuOutput -> o_row
    i_operands --> |  ^     |  '-> SfuTree -> SfuTotal         to FP16
                   |  |     |        adders    sum, 1 / x, 1 / sqrt
                   v  |     '-> SfuMaximum
                   Ram: the row

A command names the operation; its row comes in beats of ``lanes`` numbers, the last of which has ``last`` and keeps
its lowest lanes alone, or none if the row is empty. ADD takes operands (biases) as well, RMSNORM (weights) and
LAYERNORM (both) only with ``affine``, in as many beats. Every command brings forth one row of results, as long as the
row, and one response, which may come before the results are taken. Commands are worked off one by one.

- COPY: x; RELU: max(x, 0); ADD: x + bias. One pass over the row.
- SILU: x / (1 + e^-x); GELU: x / (1 + e^(-2 sqrt(2/pi) (x + 0.044715 x^3))), the tanh form. One pass.
- RMSNORM: weight x / sqrt(mean of x^2 + scalar). Two passes: squares, division.
- SOFTMAX: e^(scalar x - maximum) / sum; -inf is masked. Three passes: running maximum, powers and sum, division.
- LAYERNORM: weight (x - mean) / sqrt(variance + scalar) + bias. Three passes: mean, variance, division.

Numbers: float32 with round to nearest even, subnormals are zeros, one NaN (COPY and RELU pass codes on as they are);
FP16 results are rounded once more, subnormals included. The order of a sum depends on the row's length and the
number of lanes alone: over the lanes of a beat by pairs, then over every sixth beat, then over those six sums.
LAYERNORM subtracts the first number first, so of a constant row exactly 0 is left. NaN: a row of SOFTMAX or of a norm
that has one is all NaN, and so is SOFTMAX's with +inf and LAYERNORM's with an infinity; the response tells of a NaN
among the results. A divisor of 0 (a row that is all masked, a norm of zeros without epsilon) gives zeros and the flag
``zero``. SILU and GELU of -inf are -0.

Errors against the exact value (u = 2^-24), measured on random rows of up to 4096 numbers:

- SOFTMAX: relative 2^-16.5 for probabilities above 2^-100, 2^-17 for those above 2^-16; never above 1. The sum of a
  row is within (beats / 6 + levels + 5) u of 1.
- RMSNORM: 8 ulp; LAYERNORM: (8 + beats / 64) u times the largest result. Both grow with the sum's rounding.
- SILU: relative 2^-17.9 for results above 2^-24, 2^-17 for smaller ones; GELU: 2^-17.6 and 2^-16. Results below
  2^-119 may be 0. As FP16 both are within 0.503 ulp for every FP16 number. GELU's tanh form is within 4.8e-4 of x
  times the normal distribution.

A fault is answered by an error, no result is right then, and the row of results ends with an empty beat, early for
operations of one pass; what belongs to the command is taken up to its ``last`` and the next command is not touched
by it. Unknown operations take a row, and no operands.

Latency and throughput: see ``sim_models.golden.sfu.buffer_die_sfu.sfu_cycles``; a pass is a beat a cycle, and between
passes lie up to 64 cycles with 4 lanes. With these and 1024 numbers SOFTMAX takes 857 cycles, LAYERNORM 895,
RMSNORM 593, GELU 299, ADD 274. Pauses of any stream delay and change nothing. ``ready`` of the inputs comes from
registers, and with ADD from the other's ``valid``; ``valid`` and payload of the outputs from registers.
Cost with 4 lanes and 2048 numbers (Yosys, xcup): 11,100 LUT, 630 shift registers, 9,000 flip-flops, 57 DSP, 4 block
RAM; a lane more is about 2,400 LUT and 12 DSP. ECP5 with one lane: 68 MHz (nextpnr). Four lanes
take what a pseudo-channel sends, four sums a beat.
No operation takes a row that is longer than ``max_length``, not even those of one pass.
Reference: SADDLE III and IV-C (SFU: maximum, exponentials, adder tree, divider; norms, residuals, activations).
"""

from typing import Any

from amaranth.hdl import Module, Mux
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from rtl.memory.ram import Ram
from rtl.sfu.layouts import sfu_beat, sfu_command, sfu_operands, sfu_response
from rtl.sfu.sfu_control import SfuControl
from rtl.sfu.sfu_lane import SfuLane, delay
from rtl.sfu.sfu_maximum import SfuMaximum
from rtl.sfu.sfu_output import SfuOutput
from rtl.sfu.sfu_total import SfuTotal
from rtl.sfu.sfu_tree import SfuTree
from rtl.unit import Unit
from sim_models.params.sfu.buffer_die_sfu import ONE, BufferDieSfuParams

__all__ = ["BufferDieSfu"]


class BufferDieSfu(Unit):
    """Softmax, norms, activations and sums of rows.

    Members
    -------
    i_command: In(stream of sfu_command)
    i_row: In(stream of sfu_beat)
    i_operands: In(stream of sfu_operands)
    o_row: Out(stream of sfu_beat)
    o_response: Out(stream of sfu_response)
    """

    block = "buffer_die_sfu"

    i_command: Any
    i_row: Any
    i_operands: Any
    o_row: Any
    o_response: Any

    def __init__(self, params: BufferDieSfuParams | None = None) -> None:
        p = params or BufferDieSfuParams()
        self.p = p
        super().__init__(p, {
            "i_command": In(stream.Signature(sfu_command)), "i_row": In(stream.Signature(sfu_beat(p))),
            "i_operands": In(stream.Signature(sfu_operands(p))), "o_row": Out(stream.Signature(sfu_beat(p))),
            "o_response": Out(stream.Signature(sfu_response(p))),
        })

    def body(self, platform: Any) -> Module:
        m = Module()
        p = self.p
        m.submodules.control = control = SfuControl(p)
        m.submodules.ram = ram = Ram(p.ram)
        m.submodules.tree = tree = SfuTree(p)
        m.submodules.maximum = maximum = SfuMaximum(p)
        m.submodules.total = total = SfuTotal(p)
        m.submodules.output = output = SfuOutput(p)
        lanes = [SfuLane(p) for _ in range(p.lanes)]
        enable = output.enable
        m.d.comb += [unit.enable.eq(enable) for unit in (control, tree, maximum, total, *lanes)]

        # streams
        for name in ("command", "row", "operands"):
            inside, outside = getattr(control, f"i_{name}"), getattr(self, f"i_{name}")
            m.d.comb += [inside.valid.eq(outside.valid), inside.payload.eq(outside.payload),
                         outside.ready.eq(inside.ready)]
        for inside, outside in ((control.o_response, self.o_response), (output.o, self.o_row)):
            m.d.comb += [outside.valid.eq(inside.valid), outside.payload.eq(inside.payload),
                         inside.ready.eq(outside.ready)]

        # lanes: what comes, or what is stored
        for k, lane in enumerate(lanes):
            m.submodules[f"lane{k}"] = lane
            operands = self.i_operands.payload
            weight, bias = Mux(control.weighs, operands.weight[k], ONE), Mux(control.biases, operands.bias[k], 0)
            stored = ram.read_data.word_select(k, 32)
            x = delay(m, enable, self.i_row.payload.data[k], 1, f"come{k}")
            m.d.comb += [
                lane.kind.eq(control.kind), lane.factor.eq(control.factor), lane.addend.eq(control.addend),
                lane.x.eq(delay(m, enable, Mux(control.replays, stored, x), 1, f"x{k}")),
                lane.weight.eq(delay(m, enable, weight, 2, f"weight{k}")),
                lane.bias.eq(delay(m, enable, bias, 2, f"bias{k}")),
                lane.row.eq(delay(m, enable, stored, 1, f"row{k}")), lane.sum.eq(tree.sums[k]),
                tree.terms[k].eq(lane.term), tree.addends[k].eq(lane.other),
                ram.write_data.word_select(k, 32).eq(lane.store),
                maximum.values[k].eq(lane.store), output.results[k].eq(lane.result),
            ]
        m.d.comb += [
            ram.write_en.eq(control.write_en), ram.write_addr.eq(control.write_addr),
            ram.read_en.eq(control.read_en), ram.read_addr.eq(control.read_addr),
        ]

        # what is found over the row
        tail = control.tail
        m.d.comb += [
            tree.across.eq(control.across), tree.keep.eq(Mux(control.terms_last, tail, -1)),
            maximum.fresh.eq(control.fresh), maximum.i_valid.eq(control.store), maximum.last.eq(control.store_last),
            maximum.keep.eq(Mux(control.store_last, tail, -1)),
            control.peak_done.eq(maximum.done), control.negated.eq(maximum.negated),
            total.fresh.eq(control.fresh), total.i_valid.eq(control.sum), total.last.eq(control.sum_last),
            total.word.eq(tree.total), total.purpose.eq(control.purpose), total.length.eq(control.length),
            total.epsilon.eq(control.epsilon),
            control.total_done.eq(total.done), control.total.eq(total.result), control.zero.eq(total.zero),
        ]

        # results
        m.d.comb += [
            output.i_valid.eq(control.result), output.last.eq(control.result_last), output.fp16.eq(control.fp16),
            output.keep.eq(Mux(control.result_last, tail, -1)), control.nan.eq(output.nan),
        ]
        return m
