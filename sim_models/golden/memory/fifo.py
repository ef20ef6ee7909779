"""Golden model of the queue, cycle by cycle."""

import collections

from sim_models.params.memory.fifo import FifoParams

__all__ = ["Fifo"]


class Fifo:
    """First-in first-out queue.

    Parameters
    ----------
    p:
        Parameters of the queue.
    """

    def __init__(self, p: FifoParams) -> None:
        self.p = p
        self._words: collections.deque[int] = collections.deque()

    @property
    def ready(self) -> bool:
        """Whether the input takes a word in this cycle; it does not look at the output."""
        return len(self._words) < self.p.depth

    @property
    def head(self) -> int | None:
        """The word that the output offers in this cycle, None if there is none."""
        return self._words[0] if self._words else None

    def reset(self) -> None:
        """Forget all words."""
        self._words.clear()

    def step(self, *, offered: int | None, taken: bool) -> None:
        """One clock edge: ``offered`` stands at the input (or None), ``taken`` is the output's ready."""
        ready = self.ready
        if taken and self._words:
            self._words.popleft()
        if offered is not None and ready:
            self._words.append(offered)
