"""A pseudo-channel runs sixteen banks with processing elements in lockstep, from one stream of commands.

::

    i_command -> decoder -> dispatch -+-> sequencer -> rows, columns -> 4 bank groups -+
                                      |       | step                     ^ words       | sums
                                      +-> global buffer (loader) --------+             v
                                      +-> sum reader <---------------------------------+--> o_sums
    i_data ---> loader, or WRITE to a bank                     responder -> o_response

Commands (:class:`sim_models.spec.channel.PimOp`) take effect in their order and overlap where that cannot be seen;
docs/pseudo_channel.md says where. ``count`` words follow on ``i_data`` for every LOAD and WRITE. A wrong command is
answered by a status, and its words are dropped. Each command has one response, in order.

Limits: at most 2^terms_width - 1 words may go into a sum (all banks together), which is not checked here.
Accumulators have no value before a MAC with ``clear``, and neither buffer nor banks before they are written.
Activations go to all banks at once, so there is no tRRD or tFAW. Banks are models for simulation, the rest is
hardware.

Latency: 4 cycles from a command to its unit; a MAC reads its first word ``rcd`` cycles later, and its sums are
complete ``cl + 1`` cycles and the latency of `bank_pe` after its last word.
Throughput: a word of every bank each ``ccd`` cycles while rows change without a gap (docs/pseudo_channel.md).
Reference: SADDLE III.
"""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from rtl.parts.streams import joined
from rtl.pim.bank.bank_group import BANKS, BankGroup
from rtl.pim.channel.dram_rows import DramRows
from rtl.pim.channel.global_buffer import GlobalBuffer
from rtl.pim.channel.layouts import PimUnit, pim_command, pim_response, sums_beat
from rtl.pim.channel.mac_sequencer import MacSequencer
from rtl.pim.channel.pim_decoder import PimDecoder
from rtl.pim.channel.pim_responder import PimResponder
from rtl.pim.channel.sum_reader import SumReader
from rtl.unit import Unit, in_reset
from sim_models.params.pim.channel.pseudo_channel import PseudoChannelParams
from sim_models.spec.bank import DramError
from sim_models.spec.channel import PimOp, PimStatus

__all__ = ["GROUPS", "PseudoChannel"]

#: bank groups
GROUPS = 4


class PseudoChannel(Unit):
    """Pseudo-channel.

    Members
    -------
    i_command: In(stream of pim_command)
        Commands, which take effect in order.
    o_response: Out(stream of pim_response)
        One response for each command, in order.
    i_data: In(stream of words)
        Words for LOAD and WRITE, in the order of the commands.
    o_sums: Out(stream of sums_beat)
        What READs deliver.
    error: Out(DramError)
        Rule of DRAM that was broken first since reset.
    """

    block = "pseudo_channel"

    i_command: Any
    i_data: Any
    o_sums: Any
    o_response: Any
    error: Any

    def __init__(self, params: PseudoChannelParams | None = None) -> None:
        p = params or PseudoChannelParams()
        self.p = p
        super().__init__(p, {
            "i_command": In(stream.Signature(pim_command)), "i_data": In(stream.Signature(p.word_width)),
            "o_sums": Out(stream.Signature(sums_beat(p))), "o_response": Out(stream.Signature(pim_response)),
            "error": Out(DramError),
        })

    def body(self, platform: Any) -> Module:
        m = Module()
        p = self.p
        m.submodules.decoder = decoder = PimDecoder(p)
        m.submodules.rows = rows = DramRows(p.bank)
        m.submodules.sequencer = sequencer = MacSequencer(p)
        m.submodules.buffer = buffer = GlobalBuffer(p)
        m.submodules.reader = reader = SumReader(p)
        m.submodules.responder = responder = PimResponder(p)
        m.d.comb += joined(self.i_command, decoder.i_command)
        self._dispatch(m, decoder, sequencer, buffer, reader, responder)

        # Row and column side of the DRAM controller, and the data stream, which one of two units takes from.
        for name in ("current_valid", "current", "ahead_valid", "ahead", "read", "write"):
            m.d.comb += getattr(rows, name).eq(getattr(sequencer, name))
        m.d.comb += [
            sequencer.is_open.eq(rows.is_open), sequencer.fresh.eq(rows.fresh),
            sequencer.word_valid.eq(self.i_data.valid & ~in_reset()),
            buffer.word_valid.eq(self.i_data.valid & ~in_reset()), buffer.word.eq(self.i_data.payload),
            self.i_data.ready.eq((sequencer.take_word | buffer.take_word) & ~in_reset()),
            buffer.step.eq(sequencer.step),
        ]

        # The bank groups; data to be written goes with its command.
        write_data = Signal(p.word_width)
        m.d.sync += write_data.eq(self.i_data.payload)
        errors = Signal(GROUPS)
        for g in range(GROUPS):
            m.submodules[f"group_{g}"] = group = BankGroup(p.group)
            m.d.comb += [
                group.row.eq(rows.row), group.column.eq(sequencer.column), group.write_data.eq(write_data),
                group.write_banks.eq(Mux(sequencer.to_group == g, 1 << sequencer.to_bank, 0)),
                group.step.eq(buffer.o_step),
                group.read_en.eq(reader.read_en), group.read_index.eq(reader.read_index),
                group.which.eq(reader.which), reader.sums[g].eq(group.sum),
                errors[g].eq(group.error != DramError.NONE),
            ]
            m.d.comb += [group.words[b].eq(Mux(buffer.by_group, buffer.words[g], buffer.words[b]))
                         for b in range(BANKS)]
            with m.If(errors[g] & ~errors[:g].any()):
                m.d.comb += self.error.eq(group.error)

        for own, unit in ((self.o_sums, reader.o_sums), (self.o_response, responder.o_response)):
            m.d.comb += joined(unit, own)
        m.d.comb += reader.sum_halves.eq(sequencer.sum_halves)
        return m

    def _dispatch(self, m: Module, decoder: PimDecoder, sequencer: MacSequencer, buffer: GlobalBuffer,
                  reader: SumReader, responder: PimResponder) -> None:
        """A job goes to its unit, in order, when nothing that is before it could be disturbed."""
        job = decoder.o_job.payload
        good = job.status == PimStatus.OK
        load, write, mac, read = (good & (job.op == op) for op in (PimOp.LOAD, PimOp.WRITE, PimOp.MAC, PimOp.READ))
        half = job.first[-1]
        # Words of the data stream are for the command that is first; a MAC finds what LOADs before it have written,
        # and a LOAD overwrites nothing that MACs before it are still to read; sums are read before they change.
        free = {
            PimUnit.SEQUENCER: (write & ~buffer.busy) | (mac & ~(buffer.halves & job.buffer_halves).any()
                                                         & ~(reader.halves >> half)[0]),
            PimUnit.LOADER: (job.drop | (load & ~(sequencer.buffer_halves & job.buffer_halves).any()))
            & ~sequencer.writing,
            PimUnit.READER: read,
        }
        inputs = {PimUnit.SEQUENCER: sequencer.i_job, PimUnit.LOADER: buffer.i_job, PimUnit.READER: reader.i_job}
        m.d.comb += responder.status.eq(job.status)
        for unit, condition in free.items():
            port = inputs[unit]
            m.d.comb += [port.payload.eq(job), port.valid.eq(decoder.o_job.valid & responder.room & condition)]
            with m.If(port.valid & port.ready):
                m.d.comb += [responder.dispatch.eq(1), responder.unit.eq(unit)]
        with m.If(decoder.o_job.valid & responder.room & ~good & ~job.drop):
            m.d.comb += [responder.dispatch.eq(1), responder.unit.eq(PimUnit.NONE)]
        m.d.comb += [
            decoder.o_job.ready.eq(responder.dispatch),
            responder.hits.eq(sequencer.hits), responder.misses.eq(sequencer.misses),
        ]
        for name, unit in (("sequencer", sequencer), ("loader", buffer), ("reader", reader)):
            m.d.comb += [getattr(responder, f"{name}_done").eq(unit.done),
                         getattr(responder, f"{name}_cycles").eq(unit.cycles)]
