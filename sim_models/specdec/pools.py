"""The Shared Pool and the Eager Pool (SADDLE IV-B): draft tokens that wait for, or are under, verification.

A token of a request never stands before its predecessor, and H never rises along a draft, so taking the highest H
first takes prefixes. Equal H: the lowest request first, then the lowest position.
"""

from typing import NamedTuple

__all__ = ["EagerPool", "Entry", "PoolError", "SharedPool"]


class PoolError(RuntimeError):
    """A pool was asked for what it cannot do; the scheduler never does."""


class Entry(NamedTuple):
    """A draft token.

    Members
    -------
    request, position, token: int
        Position is absolute, prompt included.
    h: int, UQ1.15
    locked: bool
        Under verification.
    """

    request: int
    position: int
    token: int
    h: int
    locked: bool = False


class EagerPool:
    """A queue per request in ``size`` entries.

    Members
    -------
    entries: list of Entry
        In the order of insertion.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.entries: list[Entry] = []

    @property
    def free(self) -> int:
        """Entries that can be inserted."""
        return self.size - len(self.entries)

    def insert(self, entry: Entry) -> None:
        """Add a token behind those of its request.

        Raises
        ------
        PoolError
            The pool is full, or the token does not follow its predecessor.
        """
        if not self.free:
            raise PoolError(f"a pool of {self.size} entries is full")
        before = self.match(entry.request)
        if before and (entry.position != before[-1].position + 1 or entry.h > before[-1].h):
            raise PoolError(f"{entry} cannot stand behind {before[-1]}")
        self.entries.append(entry)

    def match(self, request: int) -> list[Entry]:
        """A request's tokens by position."""
        return [e for e in self.entries if e.request == request]

    def take_first(self, request: int) -> Entry:
        """Remove a request's first token."""
        entry = self.match(request)[0]
        self.entries.remove(entry)
        return entry

    def flush(self, request: int) -> int:
        """Remove all tokens of a request; how many there were."""
        before = len(self.entries)
        self.entries = [e for e in self.entries if e.request != request]
        return before - len(self.entries)


class SharedPool(EagerPool):
    """The tokens that verification chooses from."""

    def pending(self, requests: list[int] | None = None) -> list[Entry]:
        """Tokens that are not locked, of some requests or of all."""
        return [e for e in self.entries if not e.locked and (requests is None or e.request in requests)]

    def select(self, count: int, requests: list[int]) -> dict[int, int]:
        """How many tokens of each request are among the ``count`` pending ones of highest H."""
        ranked = sorted(self.pending(requests), key=lambda e: (-e.h, e.request, e.position))
        chosen = dict.fromkeys(requests, 0)
        for entry in ranked[:count]:
            chosen[entry.request] += 1
        return chosen

    def lock(self, request: int, count: int) -> list[Entry]:
        """Put a request's first ``count`` tokens under verification."""
        chosen = self.match(request)[:count]
        self.entries = [e._replace(locked=True) if e in chosen else e for e in self.entries]
        return self.match(request)[:count]

    def unlock(self, request: int) -> list[Entry]:
        """Remove a request's locked tokens."""
        locked = [e for e in self.match(request) if e.locked]
        self.entries = [e for e in self.entries if e not in locked]
        return locked
