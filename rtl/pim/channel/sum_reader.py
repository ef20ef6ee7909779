"""Reads accumulators of all processing elements, and adds them up over banks and groups as a READ demands.

::

    four groups' sums, bank by bank -> take -> over banks -> over groups (pairs, all) -> beat -> queue -> o_sums

One bank of each group a cycle: four cycles per accumulator, for which READ never needs more than four adders over
banks and three over groups. It waits until no MAC is to change the half any more; later MACs that change the other
half go on meanwhile. Sums are added without rounding.

Latency: 7 cycles from the first read to the first beat that needs one read (`PimReduce.NONE`), 10 to one that needs
four. Throughput: an accumulator in four cycles.
"""

import itertools
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from rtl.memory.fifo import Fifo
from rtl.pim.bank.layouts import exact_sum
from rtl.pim.channel.layouts import pim_job, sums_beat
from rtl.unit import Unit
from sim_models.params.memory.fifo import FifoParams
from sim_models.params.pim.channel.pseudo_channel import PseudoChannelParams
from sim_models.spec.channel import PimReduce

__all__ = ["SumReader"]

#: lanes of a beat: groups, and banks of a group
LANES = 4
#: beats of room behind the adders: more than there are cycles from a read to its beat's acceptance
ROOM = 16


class SumReader(Unit):
    """READ unit.

    Members
    -------
    i_job: In(stream of pim_job)
    sum_halves: In(2)
        Halves that MACs before the job are still to change.
    read_en: Out(1), read_index: Out(range(accumulators)), which: Out(range(4))
        To the bank groups; ``which`` goes with the answer.
    sums: In(4 exact sums)
        The answer of each group.
    o_sums: Out(stream of sums_beat)
    halves: Out(2)
        The half that is still to be read.
    done: Out(1), cycles: Out(32)
        The last read is issued.
    """

    block = "sum_reader"

    i_job: Any
    sum_halves: Signal
    read_en: Signal
    read_index: Signal
    which: Signal
    sums: Any
    o_sums: Any
    halves: Signal
    done: Signal
    cycles: Signal

    def __init__(self, params: PseudoChannelParams | None = None) -> None:
        p = params or PseudoChannelParams()
        self.p = p
        super().__init__(p, {
            "i_job": In(stream.Signature(pim_job(p))), "sum_halves": In(2),
            "read_en": Out(1), "read_index": Out(range(p.accumulators)), "which": Out(range(LANES)),
            "sums": In(data.ArrayLayout(exact_sum(p), LANES)), "o_sums": Out(stream.Signature(sums_beat(p))),
            "halves": Out(2), "done": Out(1), "cycles": Out(32),
        })

    def body(self, platform: Any) -> Module:
        m = Module()
        p = self.p
        # What goes with a read through the stages.
        mark_layout = data.StructLayout({"bank": range(LANES), "reduce": PimReduce, "beat": 1, "last": 1, "int8": 1})
        marks = [Signal(mark_layout, name=f"mark_{age}") for age in range(p.pe.read_latency + 5)]
        for before, after in itertools.pairwise(marks):
            m.d.sync += after.eq(before)
        room = Signal(range(ROOM + 1), init=ROOM)
        self._issue(m, marks[0], room)

        age = p.pe.read_latency
        m.d.comb += self.which.eq(marks[age].bank)
        taken = self._stage(m, "taken", self.sums)

        # Over the banks: a running sum of each group.
        alone = (marks[age + 1].bank == 0) | ~_over_banks(marks[age + 1].reduce)
        running = Signal(data.ArrayLayout(exact_sum(p), LANES))
        for lane in range(LANES):
            m.d.sync += running[lane].eq(Mux(alone, taken[lane], _added(p, running[lane], taken[lane])))

        # Over the groups.
        passed = self._stage(m, "passed", running)
        pairs = self._stage(m, "pairs", [_added(p, running[2 * k], running[2 * k + 1]) for k in range(2)])
        total = Signal(exact_sum(p))
        m.d.comb += total.eq(_added(p, pairs[0], pairs[1]))
        mark = marks[age + 3]
        lanes = Signal(data.ArrayLayout(exact_sum(p), LANES))
        with m.Switch(mark.reduce):
            with m.Case(PimReduce.GROUP):
                for lane in range(LANES):
                    with m.If(mark.bank == lane):
                        m.d.sync += lanes[lane].eq(total)
            with m.Case(PimReduce.ALL):
                m.d.sync += [lanes.eq(0), lanes[0].eq(total)]
            with m.Default():
                m.d.sync += lanes.eq(passed)

        self._queue(m, lanes, marks[age + 4], room)
        return m

    def _issue(self, m: Module, mark: Any, room: Signal) -> None:
        """One bank of an accumulator a cycle, if there is room for what may become a beat."""
        p = self.p
        job, busy = Signal(pim_job(p)), Signal()
        bank, output = Signal(range(LANES)), Signal(range(p.half + 1))
        before, issue = Signal(32), Signal()
        half = job.first[-1]
        m.d.comb += [
            self.i_job.ready.eq(~busy), self.halves.eq(Mux(busy, 1 << half, 0)),
            issue.eq(busy & ~(self.sum_halves >> half)[0] & (room != 0)),
            self.done.eq(issue & (bank == LANES - 1) & (output == job.outputs - 1)), self.cycles.eq(before + 1),
            # a processing element shows the sum of its last read until the next one
            self.read_en.eq(issue & (bank == 0)), self.read_index.eq(job.first + output),
            mark.bank.eq(bank), mark.reduce.eq(job.reduce), mark.int8.eq(job.int8), mark.last.eq(self.done),
            mark.beat.eq(issue & ((bank == LANES - 1) | (job.reduce == PimReduce.NONE))),
        ]
        with m.If(~busy):
            m.d.sync += [busy.eq(self.i_job.valid), job.eq(self.i_job.payload), bank.eq(0), output.eq(0),
                         before.eq(0)]
        with m.Else():
            m.d.sync += [before.eq(self.cycles), busy.eq(~self.done)]
            with m.If(issue):
                m.d.sync += [bank.eq(bank + 1), output.eq(output + (bank == LANES - 1))]
        m.d.sync += room.eq(room - mark.beat + (self.o_sums.valid & self.o_sums.ready))

    def _stage(self, m: Module, name: str, sums: Any) -> Any:
        """Sums, a cycle later."""
        sums = list(sums)
        register = Signal(data.ArrayLayout(exact_sum(self.p), len(sums)), name=name)
        m.d.sync += [register[k].eq(value) for k, value in enumerate(sums)]
        return register

    def _queue(self, m: Module, lanes: Any, mark: Any, room: Signal) -> None:
        """The beats; a queue of its own for each lane, since all of a beat is wider than a queue may be."""
        p, beat = self.p, self.o_sums.payload
        for lane in range(LANES):
            m.submodules[f"queue_{lane}"] = queue = Fifo(FifoParams(width=exact_sum(p).size, depth=ROOM))
            head = Signal(exact_sum(p), name=f"head_{lane}")
            m.d.comb += [
                queue.i.valid.eq(mark.beat), queue.i.payload.eq(lanes[lane]), head.eq(queue.o.payload),
                queue.o.ready.eq(self.o_sums.ready), beat.value[lane].eq(head.value),
                beat.positive[lane].eq(head.positive), beat.negative[lane].eq(head.negative),
                beat.nan[lane].eq(head.nan),
            ]
        m.submodules.flags = flags = Fifo(FifoParams(width=2, depth=ROOM))
        m.d.comb += [
            flags.i.valid.eq(mark.beat), flags.i.payload.eq(Cat(mark.int8, mark.last)),
            flags.o.ready.eq(self.o_sums.ready), self.o_sums.valid.eq(flags.o.valid),
            beat.int8.eq(flags.o.payload[0]), beat.last.eq(flags.o.payload[1]),
        ]


def _over_banks(reduce: Any) -> Any:
    return (reduce == PimReduce.BANK) | (reduce == PimReduce.ALL)


def _added(p: PseudoChannelParams, a: Any, b: Any) -> Any:
    """Sum of two exact sums; there is room for it by the promise of ``terms_width``."""
    return Cat((a.value + b.value)[:p.acc_width], a.positive | b.positive, a.negative | b.negative, a.nan | b.nan)
