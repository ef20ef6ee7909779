"""Shapes of what crosses block boundaries in ``rtl/manager/pools``."""

from amaranth.lib import enum

from rtl.parts.meanings import Fields, struct
from sim_models.params.manager.pools.pool import H_WIDTH, PoolParams
from sim_models.params.manager.pools.shared_pool import SharedPoolParams

__all__ = ["EagerAction", "eager_command", "pool_entry", "selected_beat", "verdict"]


class EagerAction(enum.Enum, shape=1):
    """What a command to the Eager Pool does to a request's tokens.

    Members
    -------
    FLUSH: All leave.
    DROP_FIRST: The first leaves: it equalled the bonus token.
    """

    FLUSH = 0
    DROP_FIRST = 1


@struct
def pool_entry(p: PoolParams) -> Fields:
    """A draft token.

    Members
    -------
    request: Number of the request.
    position: Position of the token in the text.
    token: The token.
    h: Cumulative probability, UQ1.15; not above that of the token before.
    """
    return {
        "request": p.request_width, "position": p.position_width, "token": p.token_width,
        "h": H_WIDTH,
    }


@struct
def selected_beat(p: SharedPoolParams) -> Fields:
    """A token that was chosen for verification, or the end of the round.

    Members
    -------
    entry: The token; it means nothing with ``end``.
    end: No token: the round is complete.
    """
    return {
        "entry": pool_entry(p),
        "end": 1,
    }


@struct
def verdict(p: SharedPoolParams) -> Fields:
    """What verification says about a request's locked tokens.

    Members
    -------
    request: Number of the request.
    accepted: Tokens that were accepted, of those that were locked.
    bonus: All were accepted, and the token behind them is the target's too.
    """
    return {
        "request": p.request_width,
        "accepted": p.count_width,
        "bonus": 1,
    }


@struct
def eager_command(p: PoolParams) -> Fields:
    """Tokens of a request are to leave the Eager Pool.

    Members
    -------
    request: Number of the request.
    action: Which of its tokens leave.
    """
    return {"request": p.request_width, "action": EagerAction}
