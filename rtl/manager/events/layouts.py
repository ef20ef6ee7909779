"""Structs that cross the boundary of a block in this folder."""

from amaranth.lib import data

from sim_models.params.manager.manager import ManagerParams
from sim_models.params.manager.pools.pool import H_WIDTH

__all__ = ["event_starts", "manager_events", "text_read", "text_word", "text_write"]

#: the event that begins, one at most
event_starts = data.StructLayout(dict.fromkeys(("migrate", "token", "verdict", "request", "verify", "step"), 1))

#: what is counted in a cycle, each by its counter
manager_events = data.StructLayout(dict.fromkeys((
    "drafted", "stale", "eager", "accepted", "emitted", "completed", "passes", "served", "rows", "refused",
    "illegal"), 1))


def text_word(p: ManagerParams) -> data.StructLayout:
    """An unverified token, as it is kept by request and position."""
    return data.StructLayout({"token": p.token_width, "h": H_WIDTH})


def text_read(p: ManagerParams) -> data.StructLayout:
    """A read of the memory of unverified tokens, of the request at hand; all is 0 without one."""
    return data.StructLayout({"enable": 1, "position": p.draft_width})      # the lowest bits of the position


def text_write(p: ManagerParams) -> data.StructLayout:
    """A write to it."""
    return data.StructLayout({"enable": 1, "position": p.draft_width, "word": text_word(p)})
