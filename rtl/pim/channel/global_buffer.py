"""The global buffer of a pseudo-channel: filled by LOAD, and read beside the banks by MAC.

Four interleaved memories: word a is in memory a % 4, so that four consecutive words can be read at once and each go
to its bank or group (see :class:`rtl.pim.channel.layouts.PimSpread`).

LOAD takes a word a cycle off the data stream; a refused LOAD or WRITE takes its words too, and drops them.

Latency: ``cl`` cycles from ``step`` to ``words``, as in the banks. Throughput: a word in and four out a cycle.
"""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from rtl.memory.ram import Ram
from rtl.pim.bank.layouts import group_step
from rtl.pim.channel.layouts import mac_step, pim_job
from rtl.unit import Unit
from sim_models.params.memory.ram import RamParams
from sim_models.params.pim.channel.pseudo_channel import PseudoChannelParams
from sim_models.spec.channel import PimSpread

__all__ = ["GlobalBuffer"]

#: memories, as many as groups and as banks of a group
MEMORIES = 4


class GlobalBuffer(Unit):
    """Interleaved buffer with its loader.

    Members
    -------
    i_job: In(stream of pim_job)
        LOAD, and refused commands with words.
    word_valid: In(1), take_word: Out(1), word: In(word)
        The data stream.
    step: In(mac_step)
        In the cycle in which the banks are read.
    o_step: Out(group_step), words: Out(4 words), by_group: Out(1)
        ``cl`` cycles later: word i is for bank i of each group, or for group i, ``by_group``.
    busy: Out(1), halves: Out(2)
        A job is at work, and writes these halves.
    done: Out(1), cycles: Out(32)
    """

    block = "global_buffer"

    i_job: Any
    word_valid: Signal
    take_word: Signal
    word: Signal
    step: Any
    o_step: Any
    words: Any
    by_group: Signal
    busy: Signal
    halves: Signal
    done: Signal
    cycles: Signal

    def __init__(self, params: PseudoChannelParams | None = None) -> None:
        p = params or PseudoChannelParams()
        self.p = p
        super().__init__(p, {
            "i_job": In(stream.Signature(pim_job(p))), "word_valid": In(1), "take_word": Out(1),
            "word": In(p.word_width), "step": In(mac_step(p)), "o_step": Out(group_step(p.group)),
            "words": Out(data.ArrayLayout(p.word_width, MEMORIES)), "by_group": Out(1),
            "busy": Out(1), "halves": Out(2), "done": Out(1), "cycles": Out(32),
        })

    def body(self, platform: Any) -> Module:
        m = Module()
        p = self.p
        memories = [Ram(RamParams(width=p.word_width, depth=p.buffer_words // MEMORIES)) for _ in range(MEMORIES)]
        for i, memory in enumerate(memories):
            m.submodules[f"memory_{i}"] = memory
        self._load(m, memories)

        # The step travels beside the word from the bank; the memories are read three cycles before it arrives.
        steps: list[Any] = [self.step]
        for age in range(1, p.cl + 1):
            step = Signal(mac_step(p), name=f"step_{age}")
            m.d.sync += step.eq(steps[-1])
            steps.append(step)
        asked, came, gone = steps[p.cl - 3], steps[p.cl - 1], steps[p.cl]
        read = Signal(data.ArrayLayout(p.word_width, MEMORIES))
        for i, memory in enumerate(memories):
            m.d.comb += [memory.read_en.eq(1), memory.read_addr.eq(asked.address[2:])]
            m.d.sync += read[i].eq(memory.read_data)
        one = Signal(p.word_width)
        m.d.comb += one.eq(read[came.address[:2]])
        for i in range(MEMORIES):
            m.d.sync += self.words[i].eq(Mux(came.spread == PimSpread.ALL, one, read[i]))
        m.d.comb += [self.o_step[name].eq(gone[name]) for name in ("valid", "first", "index", "int8")]
        m.d.comb += self.by_group.eq(gone.spread == PimSpread.GROUP)
        return m

    def _load(self, m: Module, memories: list[Ram]) -> None:
        """Words of the data stream into the memories, or nowhere."""
        p = self.p
        job = Signal(pim_job(p))
        left, address = Signal(16), Signal(range(p.buffer_words))
        before = Signal(32)
        m.d.comb += [
            self.i_job.ready.eq(~self.busy), self.take_word.eq(self.busy),
            self.halves.eq(Mux(self.busy & ~job.drop, job.buffer_halves, 0)),
            self.done.eq(self.busy & self.word_valid & (left == 1)), self.cycles.eq(before + 1),
        ]
        with m.If(self.i_job.valid & ~self.busy):
            m.d.sync += [self.busy.eq(1), job.eq(self.i_job.payload), left.eq(self.i_job.payload.count),
                         address.eq(self.i_job.payload.base), before.eq(0)]
        with m.Elif(self.busy):
            m.d.sync += before.eq(self.cycles)
            with m.If(self.word_valid):
                m.d.sync += [left.eq(left - 1), address.eq(address + 1), self.busy.eq(left != 1)]
        for i, memory in enumerate(memories):
            m.d.comb += [
                memory.write_en.eq(self.busy & self.word_valid & ~job.drop & (address[:2] == i)),
                memory.write_addr.eq(address[2:]), memory.write_data.eq(self.word),
            ]
