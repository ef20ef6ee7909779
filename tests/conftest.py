"""How much the tests draw: little and always the same in ``make test``, much and from a seed in ``make soak``."""

import dataclasses
from pathlib import Path

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


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "long: takes too long for `make test`, and is a part of `make soak`")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With a seed, tests without a long form are left out; without one, those that have no short form.

    What takes longest comes first, so that no worker is left with it at the end. Tests of a file under tests/rtl stay
    with one worker: they share builds, and another would wait for them.
    """
    soak = config.getoption("--soak") is not None

    def is_wanted(item: pytest.Item) -> bool:
        is_long = item.get_closest_marker("long") is not None
        return is_long or "extent" in getattr(item, "fixturenames", ()) if soak else not is_long

    left_out = [item for item in items if not is_wanted(item)]
    config.hook.pytest_deselected(items=left_out)
    order = {"tb": 0, "rtl": 1}
    items[:] = sorted((item for item in items if is_wanted(item)), key=lambda item: order.get(_folder(item), 2))
    for item in items:
        if _folder(item) == "rtl":
            item.add_marker(pytest.mark.xdist_group(item.path.stem))


def _folder(item: pytest.Item) -> str:
    """The folder of tests that a test is in."""
    return item.path.relative_to(Path(__file__).parent).parts[0]


@pytest.fixture(scope="session")
def extent(request: pytest.FixtureRequest) -> Extent:
    """The form that was asked for."""
    return Extent(request.config.getoption("--soak"))
