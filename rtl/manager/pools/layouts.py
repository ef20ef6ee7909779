"""Shapes of what crosses block boundaries in ``rtl/manager/pools``."""

from amaranth.lib import data, enum

from sim_models.params.manager.pools.pool import H_WIDTH, PoolParams
from sim_models.params.manager.pools.shared_pool import SharedPoolParams

__all__ = ["EagerAction", "eager_command", "pool_entry", "selected_beat", "verdict"]



class EagerAction(enum.Enum, shape=1):
    """What a command to the Eager Pool does to a request's tokens."""

    #: all leave
    FLUSH = 0
    #: the first leaves: it equalled the bonus token
    DROP_FIRST = 1


def pool_entry(p: PoolParams) -> data.StructLayout:
    """A draft token."""
    return data.StructLayout({
        "request": p.request_width, "position": p.position_width, "token": p.token_width,
        "h": H_WIDTH,               # cumulative probability, UQ1.15; not above that of the token before
    })


def selected_beat(p: SharedPoolParams) -> data.StructLayout:
    """A token that was chosen for verification, or the end of the round."""
    return data.StructLayout({
        "entry": pool_entry(p),
        "end": 1,                   # no token: the round is complete, and `entry` means nothing
    })


def verdict(p: SharedPoolParams) -> data.StructLayout:
    """What verification says about a request's locked tokens."""
    return data.StructLayout({
        "request": p.request_width,
        "accepted": p.count_width,  # of the tokens that were locked
        "bonus": 1,                 # all were accepted, and the token behind them is the target's too
    })


def eager_command(p: PoolParams) -> data.StructLayout:
    """Tokens of a request are to leave the Eager Pool."""
    return data.StructLayout({"request": p.request_width, "action": EagerAction})
