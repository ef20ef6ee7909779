"""How much the tests draw: little and always the same in ``make test``, much and from a seed in ``make soak``."""

import dataclasses

import numpy as np
import pytest

__all__ = ["Extent"]


@dataclasses.dataclass(frozen=True)
class Extent:
    """What a test that has a long form asks for. A test that takes it is a part of ``make soak``.

    Members
    -------
    seed: int or None
        Of the long form; None in the short one.
    """

    seed: int | None

    def count(self, few: int, many: int) -> int:
        """How much to draw, in the short form and in the long one."""
        return few if self.seed is None else many

    def generator(self, *key: int) -> np.random.Generator:
        """A generator of this test's own; without a seed it gives the same on every run."""
        return np.random.default_rng([*key] if self.seed is None else [*key, self.seed])

    def seeds(self, first: int, many: int) -> list[int]:
        """Seeds for what takes one: ``first`` alone, or many others."""
        return [first] if self.seed is None else [1000 * self.seed + n for n in range(many)]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--soak", type=int, metavar="SEED", help="only the tests that have a long form, in that form")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With a seed, tests without a long form are left out."""
    if config.getoption("--soak") is None:
        return
    short = [item for item in items if "extent" not in getattr(item, "fixturenames", ())]
    config.hook.pytest_deselected(items=short)
    items[:] = [item for item in items if item not in short]


@pytest.fixture(scope="session")
def extent(request: pytest.FixtureRequest) -> Extent:
    """The form that was asked for."""
    return Extent(request.config.getoption("--soak"))
