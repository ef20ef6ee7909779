"""The shipped pair's real tokens and probabilities through the Manager's RTL, in cocotb."""

from pathlib import Path

from rtl.manager.manager import Manager
from tb.common.runner import run_unit
from tb.manager import test_manager_pair
from tests.designs.run import BUILDS


def test_texts_are_those_of_the_real_target(tmp_path: Path) -> None:
    result = run_unit(Manager(test_manager_pair.PARAMS), test_manager_pair.__name__, block="manager", seed=1,
                      build_root=BUILDS, out=tmp_path)
    assert result.ok, result.failures
    assert result.tests == 1
    # every token of every variant, and every cycle
    tokens = len(test_manager_pair.SWITCHES) * test_manager_pair.PARAMS.requests * test_manager_pair.TOKENS
    assert result.comparisons > tokens + result.cycles
