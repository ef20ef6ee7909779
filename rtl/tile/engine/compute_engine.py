"""The compute engine: the dual-mode array with its feeders and four double-buffered local memories (SPECTRA 2.2).

::

    i_activation --> fill --> activation feeder ---+
                                                   v
    i_weight ------> fill --> weight feeder ---> array ---> result path ---> output memory --> o_result
                                   ^                          ^     |
    i_command --> decoder --> sequencer                       |     v
                     |                        i_psum ----> partial-sum memory
                     +--> o_response

GEMM(M, K, N, mode, accumulate): results = activations x weights (+ partial sums), exact in ``psum_width`` bits, for
any M, K, N from 1 to what half a memory holds, K at most ``k_max``, up to which no sum can overflow. AUTO splits
M = rows * q + r into q systolic passes and r vector-lane rows, so all PEs are busy for every M. Results go to the
next half of the output memory, which drains by itself, or stay in a partial-sum half (``keep``) for a later command.
A wrong command is refused with a status (:class:`rtl.tile.engine.layouts.EngineStatus`).

Order alone decides which block a command takes, whether it is refused or not: docs/compute_engine.md has the rules.
Activations and weights are filled ahead of their command; a block of partial sums is taken when its command is next.

Latency: ``steps + rows + groups + 3`` cycles from first operand to last result; steps are given by
:func:`sim_models.golden.tile.engine.compute_engine.steps`. Throughput: commands follow each other without a gap where
they take longer than the decoder; one idle cycle before a systolic pass that follows a vector-lane row.
"""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from rtl.memory.fifo import Fifo
from rtl.parts.logic import in_half
from rtl.parts.streams import joined
from rtl.tile.engine.activation_feeder import ActivationFeeder
from rtl.tile.engine.fill_control import FillControl
from rtl.tile.engine.gemm_decoder import GemmDecoder
from rtl.tile.engine.gemm_sequencer import GemmSequencer
from rtl.tile.engine.layouts import (
    EngineStatus,
    activation_beat,
    gemm_command,
    gemm_response,
    psum_beat,
    result_beat,
    weight_beat,
)
from rtl.tile.engine.output_reader import OutputReader
from rtl.tile.engine.pe_array import PEArray
from rtl.tile.engine.result_path import ResultPath, result_job
from rtl.tile.engine.weight_feeder import WeightFeeder
from rtl.unit import Unit
from sim_models.params.memory.fifo import FifoParams
from sim_models.params.tile.engine.compute_engine import ComputeEngineParams
from sim_models.params.tile.engine.fill_control import FillControlParams

__all__ = ["ComputeEngine"]

#: commands between sequencer and response; a power of two
IN_FLIGHT = 4


class ComputeEngine(Unit):
    """Matrix engine with local memories.

    Members
    -------
    i_command: In(stream of gemm_command)
        Commands, which are carried out in order.
    o_response: Out(stream of gemm_response)
        One response per command, in order.
    i_activation: In(stream of activation_beat)
        Blocks of activations. Ready depends on the half that a beat names.
    i_weight: In(stream of weight_beat)
        Blocks of weights. Ready depends on the half that a beat names.
    i_psum: In(stream of psum_beat)
        Blocks of partial sums.
    o_result: Out(stream of result_beat)
        Output blocks, in the order of their commands.
    """

    block = "compute_engine"

    i_command: Any
    o_response: Any
    i_activation: Any
    i_weight: Any
    i_psum: Any
    o_result: Any

    def __init__(self, params: ComputeEngineParams | None = None) -> None:
        p = params or ComputeEngineParams()
        self.p = p
        super().__init__(p, {
            "i_command": In(stream.Signature(gemm_command)), "o_response": Out(stream.Signature(gemm_response)),
            "i_activation": In(stream.Signature(activation_beat(p))),
            "i_weight": In(stream.Signature(weight_beat(p))), "i_psum": In(stream.Signature(psum_beat(p))),
            "o_result": Out(stream.Signature(result_beat(p))),
        })

    def body(self, platform: Any) -> Module:
        m = Module()
        p = self.p
        m.submodules.decoder = decoder = GemmDecoder(p)
        m.submodules.sequencer = sequencer = GemmSequencer(p)
        m.submodules.activation_feeder = activations = ActivationFeeder(p)
        m.submodules.weight_feeder = weights = WeightFeeder(p)
        m.submodules.array = array = PEArray(p.array)
        m.submodules.result_path = results = ResultPath(p)
        m.submodules.output_reader = reader = OutputReader(p)

        # Fill side of the three memories that streams fill.
        fills: dict[str, FillControl] = {}
        for name, port, depth in (("activation", self.i_activation, p.activation_depth),
                                  ("weight", self.i_weight, p.weight_depth), ("psum", self.i_psum, p.psum_depth)):
            m.submodules[f"{name}_fill"] = fills[name] = fill = FillControl(FillControlParams(depth=depth))
            half = decoder.psum_half if name == "psum" else port.payload.half
            m.d.comb += [fill.valid.eq(port.valid), fill.half.eq(half), fill.last.eq(port.payload.last),
                         port.ready.eq(fill.ready),
                         getattr(decoder, f"{name}_available").eq(fill.available),
                         getattr(decoder, f"{name}_size").eq(fill.size)]
        m.d.comb += [
            decoder.psum_claimed.eq(fills["psum"].claimed),
            activations.write_en.eq(fills["activation"].write_en),
            activations.write_addr.eq(fills["activation"].write_addr),
            activations.write_data.eq(self.i_activation.payload.data),
            weights.write_en.eq(fills["weight"].write_en), weights.write_addr.eq(fills["weight"].write_addr),
            weights.write_data.eq(self.i_weight.payload.data),
            results.fill_en.eq(fills["psum"].write_en), results.fill_addr.eq(fills["psum"].write_addr),
            results.fill_data.eq(self.i_psum.payload.data),
        ]

        # Commands: decoder -> sequencer; the array sees a step two cycles after the sequencer shows it.
        m.d.comb += [
            *joined(self.i_command, decoder.i_command), *joined(decoder.o_job, sequencer.i_job),
            activations.step.eq(sequencer.step), weights.step.eq(sequencer.step),
            array.activation.eq(activations.activation), array.weight.eq(weights.weight),
            results.next_result.eq(array.next_result), results.result.eq(array.result),
            results.i_tile.valid.eq(sequencer.tile_valid), results.i_tile.payload.eq(sequencer.tile),
        ]
        flags = [name for name in ("valid", "systolic", "first", "last") if hasattr(array, name)]
        flag_delay: Any = Cat(sequencer.step[name] for name in flags)
        for delay in (1, 2):
            delayed = Signal(len(flags), name=f"step_flags_{delay}")
            m.d.sync += delayed.eq(flag_delay)
            flag_delay = delayed
        m.d.comb += [getattr(array, name).eq(flag_delay[n]) for n, name in enumerate(flags)]

        self._book_keeping(m, decoder, sequencer, results, reader, fills)
        return m

    def _book_keeping(self, m: Module, decoder: GemmDecoder, sequencer: GemmSequencer, results: ResultPath,
                      reader: OutputReader, fills: dict[str, FillControl]) -> None:
        """Who owns which half, how many commands are on their way, and their responses."""
        p = self.p
        job, done = decoder.o_job.payload, results.i_job.payload
        taken = Signal()
        now = Signal(32)
        in_flight = Signal(range(IN_FLIGHT + 1))
        # A command that keeps its results counts until the last column group has stored them.
        keeping = Signal(range(IN_FLIGHT + p.groups + 1))
        m.d.comb += taken.eq(sequencer.i_job.valid & sequencer.i_job.ready)
        m.d.sync += now.eq(now + 1)

        # What the result path will need, in the order of the commands.
        layout = result_job(p)
        m.submodules.jobs = jobs = Fifo(FifoParams(width=layout.size, depth=IN_FLIGHT))
        entry = Signal(layout)
        m.d.comb += [entry[name].eq(job[name]) for name in dict(layout) if name not in (
            "output_half", "started")]
        m.d.comb += [
            entry.output_half.eq(reader.half), entry.started.eq(now),
            jobs.i.valid.eq(taken), jobs.i.payload.eq(entry.as_value()),
            *joined(jobs.o, results.i_job), results.now.eq(now),
        ]

        # What a command has done with is passed on when its last column group is through with it.
        ended = Signal(data.StructLayout({"output": 2, "activation": 2, "weight": 2, "psum": 2, "kept": 1}))
        m.d.comb += [
            ended.output.eq(in_half(results.done & ~done.keep, done.output_half)),
            ended.activation.eq(in_half(results.done & done.release_activation, done.activation_half)),
            ended.weight.eq(in_half(results.done & done.release_weight, done.weight_half)),
            ended.psum.eq(in_half(results.done & done.accumulate & ~done.keep, done.psum_half)),
            ended.kept.eq(results.done & done.keep),
        ]
        passing = Signal(p.groups)
        for group in range(p.groups):
            later = Signal.like(ended, name=f"ended_{group}")
            m.d.sync += later.eq(ended)
            m.d.comb += passing[group].eq(later.as_value().any())
            ended = later

        m.d.comb += [
            reader.reserve.eq(taken & ~job.keep), reader.block_shape.size.eq(job.size),
            reader.block_shape.n_tiles.eq(job.n_tiles), reader.block_shape.n_tail.eq(job.n_tail),
            reader.written.eq(ended.output),
            results.read_en.eq(reader.read_en), results.read_addr.eq(reader.read_addr),
            reader.read_data.eq(results.read_data),
            *joined(reader.o_result, self.o_result),
        ]

        # The halves of the other memories.
        for name in ("activation", "weight"):
            m.d.comb += fills[name].claim.eq(in_half(taken & job[f"release_{name}"], job[f"{name}_half"]))
        for name, fill in fills.items():
            m.d.comb += fill.free.eq(ended[name] | getattr(decoder, f"release_{name}"))
        m.d.sync += keeping.eq(keeping + (taken & job.keep) - ended.kept)
        m.d.comb += [
            fills["psum"].claim.eq(in_half(taken & (job.accumulate | job.keep), job.psum_half)),
            fills["psum"].store.eq(in_half(results.done & done.keep, done.psum_half)),
            fills["psum"].store_size.eq(done.size),
            fills["psum"].blocked.eq(~decoder.psum_open | (keeping != 0)),
        ]

        # Responses: room for one is reserved when a command is taken, so the array never has to wait.
        m.submodules.responses = responses = Fifo(FifoParams(width=gemm_response.size, depth=IN_FLIGHT))
        response = Signal(gemm_response)
        answered = Signal()
        m.d.comb += [
            response.status.eq(Mux(decoder.refused, decoder.status, EngineStatus.OK)),
            response.cycles.eq(Mux(decoder.refused, 0, results.cycles)),
            responses.i.valid.eq(results.done | decoder.refused), responses.i.payload.eq(response.as_value()),
            *joined(responses.o, self.o_response), answered.eq(responses.o.valid & self.o_response.ready),
            decoder.idle.eq((in_flight == 0) & ~passing.any()),
            sequencer.go.eq((in_flight != IN_FLIGHT) & (job.keep | reader.room)),
        ]
        m.d.sync += in_flight.eq(in_flight + (taken | decoder.refused) - answered)
