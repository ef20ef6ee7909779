"""Units with a mistake put into their source, for tests that something notices it."""

from types import ModuleType
from typing import Any

__all__ = ["changed"]


def changed(module: ModuleType, old: str, new: str, **others: Any) -> dict[str, Any]:
    """What a module defines when ``old``, which stands in its source once, is ``new``; empty to leave it as it is.

    Parameters
    ----------
    others:
        Names that the module imports and that are to be something else.
    """
    assert module.__file__
    with open(module.__file__, encoding="utf-8") as file:
        text = file.read()
    assert not old or text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {module.__file__}"
    space: dict[str, Any] = {"__name__": module.__name__}
    exec(compile(text.replace(old, new), module.__file__, "exec"), space)
    space.update(others)
    return space
