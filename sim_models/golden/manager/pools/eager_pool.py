"""Golden model of a slice of the Eager Pool, cycle by cycle: a queue of tokens a request."""

import dataclasses

from sim_models.golden.manager.pools.shared_pool import Token
from sim_models.params.manager.pools.eager_pool import EagerPoolParams

__all__ = ["EagerPool", "Inputs", "Outputs"]


@dataclasses.dataclass(frozen=True)
class Inputs:
    """What stands at the inputs in a cycle; None where nothing does.

    Members
    -------
    command: (request, drop_first) or None
        Else all of the request's tokens are dropped.
    move: int or None
        The request whose tokens are to move.
    """

    insert: Token | None = None
    command: tuple[int, bool] | None = None
    move: int | None = None
    moved_ready: bool = True
    look: int = 0


@dataclasses.dataclass(frozen=True)
class Outputs:
    """What the outputs show before the edge that ends a cycle; ``token`` is None where undefined."""

    insert_ready: bool
    command_ready: bool
    moving: bool
    moved: Token | None
    count: int
    token: int | None
    used: int


class EagerPool:
    """The pool.

    Parameters
    ----------
    p:
        Parameters of the pool.
    """

    def __init__(self, p: EagerPoolParams) -> None:
        self.p = p
        self.reset()

    def reset(self) -> None:
        """Forget everything; nothing is taken for a cycle a request."""
        self.queues: list[list[Token]] = [[] for _ in range(self.p.requests)]
        self.waking = self.p.requests
        self.moved: Token | None = None
        self.seen: tuple[int, int | None] = (0, None)

    @property
    def used(self) -> int:
        """Tokens in the pool."""
        return sum(map(len, self.queues))

    def step(self, i: Inputs) -> Outputs:
        """One cycle: what the outputs show with these inputs; then the edge."""
        awake = not self.waking
        insert_ready = awake and self.used < self.p.entries and i.command is None
        busy = not awake or i.command is not None or (insert_ready and i.insert is not None)
        moving = (not busy and i.move is not None and bool(self.queues[i.move])
                  and (self.moved is None or i.moved_ready))
        outputs = Outputs(insert_ready, awake, moving, self.moved, *self.seen, self.used)
        queue = self.queues[i.look]
        self.seen = (len(queue), queue[0].token if queue else None)
        if i.moved_ready:
            self.moved = None
        if not awake:
            self.waking -= 1
        elif i.command is not None:
            request, first = i.command
            self.queues[request] = self.queues[request][1:] if first else []
        elif insert_ready and i.insert is not None:
            self.queues[i.insert.request].append(i.insert)
        elif moving:
            assert i.move is not None
            self.moved = self.queues[i.move].pop(0)
        return outputs
