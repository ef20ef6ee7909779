"""Budgets of area that the Manager's blocks keep on UltraScale+."""

import pytest

from gen.flows.synth import synthesize
from rtl.registry import BLOCKS

#: block to the most it may take; the pool's are those of public CAMs of 512 entries (see docs/synthesis.md)
BUDGETS = {
    "shared_pool": {"lut": 3750, "ff": 1700, "bram": 0, "uram": 0, "dsp": 0},
    "draft_controller": {"lut": 400, "bram": 0, "uram": 0, "dsp": 1},
}


@pytest.mark.parametrize("block", BUDGETS)
def test_area_is_within_the_budget(block: str) -> None:
    figures = synthesize(BLOCKS[block].unit(BLOCKS[block].params()), "xcup")
    over = {name: figures[name] for name, most in BUDGETS[block].items() if figures[name] > most}
    assert not over
    # memory is in LUTs, not forgotten
    assert figures["lutram"] > 0
