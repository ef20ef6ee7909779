"""Models, policies and pool rules that the tests of speculative decoding share."""

from collections.abc import Callable

import numpy as np

from sim_models.specdec.models import TableModel
from sim_models.specdec.policies import (
    Confidence,
    Cumulative,
    Entropy,
    Fixed,
    Goodput,
    LoadTau,
    Oracle,
    Policy,
)
from sim_models.specdec.scheduler import Settings

#: a new policy each time, since one may remember
POLICIES: dict[str, Callable[[], Policy]] = {
    "fixed0": lambda: Fixed(0),
    "fixed1": lambda: Fixed(1),
    "fixed3": lambda: Fixed(3),
    "tau0": lambda: Cumulative(0),
    "tau0.05": lambda: Cumulative(0.05),
    "tau0.4": lambda: Cumulative(0.4),
    "tau1": lambda: Cumulative(1),
    "confidence": lambda: Confidence(0.4, 4),
    "entropy": lambda: Entropy(0.57),
    "load": lambda: LoadTau((0.2, 0.4, 0.5, 0.5, 0.6, 0.7, 0.8, 0.9)),
    "goodput": lambda: Goodput(1, 4, 1, 4),
    "oracle": lambda: Oracle(),
}

#: the paper's variants, and sizes at which tokens wait, stall or spill
POOLS: dict[str, Settings] = {
    "alone": Settings(shared=False, eager=False),
    "alone-3-rows": Settings(shared=False, eager=False, capacity=3),
    "shared": Settings(eager=False),
    "shared-3-rows": Settings(eager=False, capacity=3),
    "shared-1-entry": Settings(eager=False, entries=1),
    "eager": Settings(),
    "eager-late": Settings(start=3),
    "eager-3-rows": Settings(start=3, capacity=3),
    "eager-1-row": Settings(capacity=1, entries=2, eager_entries=2),
    "eager-1-entry": Settings(entries=1, eager_entries=1),
    "eager-alone": Settings(shared=False),
}


def random_table(rng: np.random.Generator, vocab: int, like: TableModel | None = None) -> TableModel:
    """Random distributions, half way to those of another model if one is given."""
    table = rng.dirichlet([0.8] * vocab, vocab)
    return TableModel(table if like is None else (table + like.table) / 2)


def random_pair(seed: int, vocab: int) -> tuple[TableModel, TableModel]:
    """A draft and a target that agree about as often as not."""
    rng = np.random.default_rng(seed)
    target = random_table(rng, vocab)
    return random_table(rng, vocab, target), target
