"""The regression: every registered block's cocotb bench, two simulators at a time.

``speculoos sim BLOCK --seed N`` repeats one of them with another seed.
"""

import importlib
import inspect

import pytest

from rtl.registry import BLOCKS
from sim_models.params.base import Params
from tb.common.runner import regress, variants
from tests.conftest import Extent
from tests.designs.run import BUILDS

SEED = 1


@pytest.mark.parametrize("block", BLOCKS)
def test_bench(block: str, extent: Extent) -> None:
    """The first and last variant pass, in the long form all.

    Each of them ran every test of the bench and compared something.
    """
    named = variants(block)
    different = {BLOCKS[block].params(**values) for values in named.values()}
    assert len(different) == len(named), "two variants are the same"
    if extent.seed is None:
        named = {name: named[name] for name in (next(iter(named)), next(reversed(named)))}
    params = [BLOCKS[block].params(**values) for values in named.values()]
    for seed in extent.seeds(SEED, 4):
        _run(block, named, params, seed)


def _run(block: str, named: dict[str, dict[str, object]], params: list[Params], seed: int) -> None:
    results = regress([(block, p) for p in params], jobs=2, build_root=BUILDS, seed=seed)
    bad = [f"{name}: {f.test} {f.message}\n  {r.repeat}"
           for name, r in zip(named, results, strict=True) for f in r.failures]
    assert not bad, "\n".join(bad)
    # a parametrized test counts once for each of its cases
    least = len({name for name, value in inspect.getmembers(importlib.import_module(BLOCKS[block].bench))
                 if type(value).__module__.startswith("cocotb")})
    for name, result in zip(named, results, strict=True):
        assert result.ok
        assert result.comparisons > 0, name
        assert result.cycles > 0, name
        assert result.tests >= max(1, least), name
