"""Brings the sums of all pseudo-channels into the order of the results, and adds over pseudo-channels.

An output of a READ is a beat of four sums from each pseudo-channel, or four such beats (``NONE``). They come by
pseudo-channel and then by beat; with ``across``, by beat, and each is the sum over the pseudo-channels, still exact.
Values beyond those that count are dropped.

Latency: 1 cycle. Throughput: a beat of a pseudo-channel a cycle, and a cycle between READs. Cost: one adder of
``acc_width`` bits for each of the four sums.
"""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from rtl.pim_layouts import PimReduce, collect_job, collected_beat, sums_beat
from rtl.unit import Unit
from sim_models.params.pim import PimStackParams

__all__ = ["SumCollector"]

_FLAGS = ("positive", "negative", "nan")


class SumCollector(Unit):
    """Collector.

    Members
    -------
    i_job: In(stream of collect_job)
    i_0, ...: In(stream of sums_beat)
        From each pseudo-channel.
    o: Out(stream of collected_beat)
        The row's ``last`` comes with its last value, or with the READ's last beat where ``values`` are more than that
        has (or none).
    """

    block = "sum_collector"

    i_job: Any
    o: Any

    def __init__(self, params: PimStackParams | None = None) -> None:
        p = params or PimStackParams()
        self.p = p
        super().__init__(p, {
            "i_job": In(stream.Signature(collect_job(p))), "o": Out(stream.Signature(collected_beat(p))),
            **{f"i_{i}": In(stream.Signature(sums_beat(p))) for i in range(p.pseudo_channels)}})

    def body(self, platform: Any) -> Module:
        m = Module()
        p, job = self.p, self.i_job.payload
        inputs = [getattr(self, f"i_{i}") for i in range(p.pseudo_channels)]
        busy, full, ended = Signal(), Signal(), Signal()
        rest, quarter = Signal(p.pseudo_channels), Signal(2)
        outputs, values = Signal(8), Signal(16)

        # Whose turn it is.
        current, beat = Signal(p.pseudo_channels), Signal(sums_beat(p))
        available, moved, emits = Signal(), Signal(), Signal()
        final_channel, final_quarter, final = Signal(), Signal(), Signal()
        m.d.comb += [
            current.eq(rest & -rest), final_channel.eq((rest & ~current) == 0),
            final_quarter.eq((job.reduce != PimReduce.NONE) | (quarter == 3)),
            final.eq(final_channel & final_quarter & (outputs == 1)),
            emits.eq(~job.across | final_channel), moved.eq(available & (~emits | ~full | self.o.ready)),
        ]
        for i, source in enumerate(inputs):
            m.d.comb += source.ready.eq(busy & current[i] & (~emits | ~full | self.o.ready))
            with m.If(current[i]):
                m.d.comb += [beat.eq(source.payload), available.eq(busy & source.valid)]
        with m.If(moved):
            with m.If(job.across | final_quarter):
                m.d.sync += rest.eq(Mux(final_channel, job.channels, rest & ~current))
            with m.If((~job.across | final_channel) & (job.reduce == PimReduce.NONE)):
                m.d.sync += quarter.eq(quarter + 1)
            with m.If(final_channel & final_quarter):
                m.d.sync += outputs.eq(outputs - 1)
        m.d.comb += self.i_job.ready.eq(moved & final)
        with m.If(~busy):
            m.d.sync += [busy.eq(self.i_job.valid), rest.eq(job.channels), quarter.eq(0), outputs.eq(job.outputs),
                         values.eq(job.values), ended.eq(~job.last)]
        with m.Elif(moved & final):
            m.d.sync += busy.eq(0)

        total = self._add(m, beat, moved, emits)
        self._emit(m, total, full, ended, values, emitted=moved & emits, final=final)
        return m

    def _add(self, m: Module, beat: Any, moved: Signal, emits: Signal) -> Any:
        """The beat, or the sum over the pseudo-channels so far."""
        so_far, total = Signal(sums_beat(self.p)), Signal(sums_beat(self.p))
        first = Signal(init=1)
        with m.If(moved):
            m.d.sync += [first.eq(emits), so_far.eq(total)]
        m.d.comb += [total.value[i].eq(beat.value[i] + Mux(first, 0, so_far.value[i])) for i in range(4)]
        m.d.comb += [total[flag].eq(beat[flag] | Mux(first, 0, so_far[flag])) for flag in _FLAGS]
        return total

    def _emit(self, m: Module, total: Any, full: Signal, ended: Signal, values: Signal, *, emitted: Any,
              final: Any) -> None:
        """The register behind the adders, and which of its lanes count."""
        job, out = self.i_job.payload, self.o.payload
        single = job.reduce == PimReduce.ALL
        step, ends = Signal(3), Signal()
        m.d.comb += [step.eq(Mux(single, 1, 4)), self.o.valid.eq(full), ends.eq(~ended & ((values <= step) | final))]
        with m.If(~full | self.o.ready):
            m.d.sync += full.eq(emitted & ((values != 0) | ends))
            m.d.sync += [out.value.eq(total.value), *(out[flag].eq(total[flag]) for flag in _FLAGS),
                         *(out.keep[i].eq((values > i) & (~single if i else 1)) for i in range(4)),
                         out.last.eq(ends), out.format.eq(job.format), out.to_sfu.eq(job.to_sfu)]
        with m.If(emitted):
            m.d.sync += [values.eq(Mux(values > step, values - step, 0)), ended.eq(ended | ends)]
