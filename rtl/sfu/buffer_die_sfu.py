"""The special function unit computes softmax, norms, activations and sums of rows of float32 numbers.

::

    i_command -> SfuControl -> o_response
                   | pass, factor, addend
    i_row -----> SfuLane x lanes --------------------------> SfuOutput -> o_row
    i_operands --> |  ^     |  '-> SfuTree -> SfuTotal         to FP16
                   |  |     |        adders    sum, 1 / x, 1 / sqrt
                   v  |     '-> SfuMaximum
                   Ram: the row

A command names the operation (:class:`sim_models.spec.sfu.SfuOp`); its row comes in beats of ``lanes`` numbers. Every
command has one row of results and one response. docs/sfu.md has the operations, their arithmetic and their errors.

Latency and throughput: a beat a cycle in each pass over the row;
:func:`sim_models.golden.sfu.buffer_die_sfu.sfu_cycles` is exact. Any stream may pause at any time. ``ready`` of the
inputs comes from registers, and with ADD from the other's ``valid``; the outputs come from registers.
Limits: no row is longer than ``max_length``.
Reference: SADDLE III and IV-C (SFU: maximum, exponentials, adder tree, divider; norms, residuals, activations).
"""

from typing import Any

from amaranth.hdl import Module, Mux
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from rtl.memory.ram import Ram
from rtl.parts.pipeline import delay
from rtl.parts.streams import joined
from rtl.sfu.layouts import sfu_beat, sfu_command, sfu_operands, sfu_response
from rtl.sfu.sfu_control import SfuControl
from rtl.sfu.sfu_lane import SfuLane
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
        Commands, which are carried out in order.
    i_row: In(stream of sfu_beat)
        The row of numbers of each command.
    i_operands: In(stream of sfu_operands)
        Weights and biases of commands that take them.
    o_row: Out(stream of sfu_beat)
        The row of results of each command.
    o_response: Out(stream of sfu_response)
        One response for each command, which may come before the results are taken.
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
            m.d.comb += joined(outside, inside)
        for inside, outside in ((control.o_response, self.o_response), (output.o, self.o_row)):
            m.d.comb += joined(inside, outside)

        # lanes: what comes, or what is stored
        for k, lane in enumerate(lanes):
            m.submodules[f"lane{k}"] = lane
            operands = self.i_operands.payload
            weight, bias = Mux(control.weighs, operands.weight[k], ONE), Mux(control.biases, operands.bias[k], 0)
            stored = ram.read_data.word_select(k, 32)
            x = delay(m, self.i_row.payload.data[k], 1, f"come{k}", enable=enable)
            m.d.comb += [
                lane.kind.eq(control.kind), lane.factor.eq(control.factor), lane.addend.eq(control.addend),
                lane.x.eq(delay(m, Mux(control.replays, stored, x), 1, f"x{k}", enable=enable)),
                lane.weight.eq(delay(m, weight, 2, f"weight{k}", enable=enable)),
                lane.bias.eq(delay(m, bias, 2, f"bias{k}", enable=enable)),
                lane.row.eq(delay(m, stored, 1, f"row{k}", enable=enable)), lane.sum.eq(tree.sums[k]),
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
