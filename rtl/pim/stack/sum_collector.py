"""Brings the sums of all pseudo-channels into the order of the results, and adds over pseudo-channels.

A beat of four sums is taken from all pseudo-channels that take part in the same cycle, so that they stay in step; the
beats leave by pseudo-channel, or as one that is their sum, still exact (``across``). Values beyond those that count
are dropped. The end of a row whose last READ was refused is an empty beat.

Latency: 2 cycles, and one more for each pseudo-channel before. Throughput: a beat of a pseudo-channel a cycle, and 2
cycles between READs. Cost: one adder of ``acc_width`` bits for each of the four sums, and registers for a beat of
every pseudo-channel.
"""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from rtl.pim.channel.layouts import sums_beat
from rtl.pim.stack.layouts import collect_job, collected_beat
from rtl.unit import Unit
from sim_models.params.pim.stack.pim_stack import PimStackParams
from sim_models.spec.channel import PimReduce

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

        # Beats are taken together.
        there, take, last_beat, final_beat = Signal(), Signal(), Signal(), Signal()
        moved, final_channel, ending = Signal(), Signal(), Signal()
        m.d.comb += [
            there.eq((~job.channels | Cat(source.valid for source in inputs)).all()),
            take.eq(busy & ~job.ends & (outputs != 0) & there & ((rest == 0) | (moved & final_channel))),
            last_beat.eq((outputs == 1) & ((job.reduce != PimReduce.NONE) | (quarter == 3))),
        ]
        held = [Signal(sums_beat(p), name=f"held_{i}") for i in range(p.pseudo_channels)]
        for i, source in enumerate(inputs):
            m.d.comb += source.ready.eq(take & job.channels[i])
            with m.If(take):
                m.d.sync += held[i].eq(source.payload)
        with m.If(take):
            m.d.sync += [final_beat.eq(last_beat), quarter.eq(quarter + (job.reduce == PimReduce.NONE)),
                         outputs.eq(outputs - ((job.reduce != PimReduce.NONE) | (quarter == 3)))]

        # One after the other they go on.
        current, beat = Signal(p.pseudo_channels), Signal(sums_beat(p))
        emits, final = Signal(), Signal()
        m.d.comb += [
            current.eq(rest & -rest), final_channel.eq((rest & ~current) == 0), emits.eq(~job.across | final_channel),
            moved.eq((rest != 0) & (~emits | ~full | self.o.ready)), final.eq(final_channel & final_beat),
            ending.eq(busy & job.ends & (~full | self.o.ready)), self.i_job.ready.eq((moved & final) | ending),
        ]
        for i in range(p.pseudo_channels):
            with m.If(current[i]):
                m.d.comb += beat.eq(held[i])
        with m.If(take):
            m.d.sync += rest.eq(job.channels)
        with m.Elif(moved):
            m.d.sync += rest.eq(rest & ~current)
        with m.If(~busy):
            m.d.sync += [busy.eq(self.i_job.valid), quarter.eq(0), outputs.eq(job.outputs), values.eq(job.values),
                         ended.eq(~job.last)]
        with m.Elif((moved & final) | ending):
            m.d.sync += busy.eq(0)

        total = self._add(m, beat, moved, emits)
        self._emit(m, total, full, ended, values, emitted=moved & emits, final=final, ending=ending)
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
              final: Any, ending: Any) -> None:
        """The register behind the adders, and which of its lanes count."""
        job, out = self.i_job.payload, self.o.payload
        single = job.reduce == PimReduce.ALL
        step, ends = Signal(3), Signal()
        m.d.comb += [step.eq(Mux(single, 1, 4)), self.o.valid.eq(full), ends.eq(~ended & ((values <= step) | final))]
        with m.If(~full | self.o.ready):
            m.d.sync += full.eq((emitted & ((values != 0) | ends)) | ending)
            m.d.sync += [out.value.eq(total.value), *(out[flag].eq(total[flag]) for flag in _FLAGS),
                         *(out.keep[i].eq((values > i) & (~single if i else 1) & ~ending) for i in range(4)),
                         out.last.eq(ends | ending), out.format.eq(job.format), out.to_sfu.eq(job.to_sfu)]
        with m.If(emitted):
            m.d.sync += [values.eq(Mux(values > step, values - step, 0)), ended.eq(ended | ends)]
