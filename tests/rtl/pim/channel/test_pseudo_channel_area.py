"""Everything of a pseudo-channel but its banks is hardware, within a budget, and its memories become block RAM."""

import pytest

from gen.flows.synth import synthesize
from rtl.pim.channel.dram_rows import DramRows
from rtl.pim.channel.global_buffer import GlobalBuffer
from rtl.pim.channel.mac_sequencer import MacSequencer
from rtl.pim.channel.pim_decoder import PimDecoder
from rtl.pim.channel.pim_responder import PimResponder
from rtl.pim.channel.sum_reader import SumReader
from rtl.unit import Unit
from sim_models.params.pim.channel.pseudo_channel import PseudoChannelParams

P = PseudoChannelParams(lanes=2, format="int8")


@pytest.mark.parametrize(("unit", "luts", "ffs", "dsps", "blocks"), [
    (PimDecoder(P), 300, 220, 1, 0), (DramRows(P.bank), 280, 90, 0, 0), (MacSequencer(P), 550, 330, 0, 0),
    (GlobalBuffer(P), 550, 560, 0, 4), (SumReader(P), 550, 780, 0, 0), (PimResponder(P), 400, 50, 0, 0),
], ids=["decoder", "rows", "sequencer", "buffer", "reader", "responder"])
def test_budget(unit: Unit, luts: int, ffs: int, dsps: int, blocks: int) -> None:
    figures = synthesize(unit, "ecp5")
    assert figures["lut"] + figures["lutram"] <= luts
    assert figures["ff"] <= ffs
    assert (figures["dsp"], figures["bram"]) == (dsps, blocks)
