"""Shapes of what crosses block boundaries in ``rtl/manager/pools``."""


from rtl.parts.meanings import Fields, struct
from sim_models.params.manager.pools.pool import H_WIDTH, PoolParams
from sim_models.params.manager.pools.shared_pool import SharedPoolParams

__all__ = ["pool_entry", "selected_beat", "verdict"]


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
