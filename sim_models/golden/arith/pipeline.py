"""What the golden models of the pipelines in ``rtl/arith`` share: values of many at once, and the delay."""

import collections
from typing import Any, Protocol

import numpy as np

__all__ = ["PipelineModel"]


class _Staged(Protocol):
    @property
    def stages(self) -> int:
        """Latency in cycles."""
        ...


class PipelineModel:
    """A pipeline of ``p.stages`` registers around a function of the operands.

    Parameters
    ----------
    p:
        Parameters of the block.
    """

    def __init__(self, p: _Staged) -> None:
        self.p = p
        self._inside: collections.deque[dict[str, Any] | None] = collections.deque([None] * p.stages)

    def results(self, *args: Any, **operands: Any) -> dict[str, np.ndarray]:
        """Codes of the results for arrays of operand codes, by port; subclasses name their operands."""
        raise TypeError(f"{type(self).__name__} does not say what its results are")

    @property
    def output(self) -> dict[str, Any] | None:
        """The results that stand at the output, or None while ``o_valid`` is 0."""
        return self._inside[0]

    def reset(self) -> None:
        """Forget what is inside."""
        self._inside = collections.deque([None] * self.p.stages)

    def step(self, *, enable: int, valid: int, operands: dict[str, Any]) -> None:
        """One clock edge with these inputs."""
        if enable:
            self._inside.popleft()
            self._inside.append(self.results(**operands) if valid else None)
