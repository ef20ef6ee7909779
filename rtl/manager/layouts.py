"""Shapes of what crosses block boundaries in ``rtl/manager``."""

from rtl.manager.registers import registers
from rtl.manager.softmax.layouts import logits_beat
from rtl.parts.meanings import Fields, Struct, struct
from sim_models.params.manager.draft_controller import TAU_ENTRIES, DraftControllerParams
from sim_models.params.manager.manager import ManagerParams
from sim_models.params.manager.pools.pool import H_WIDTH
from sim_models.params.manager.saddle_manager import SaddleManagerParams
from sim_models.spec.manager import COUNTERS, DraftPolicy, Place, VerifyKind

__all__ = ["draft_beat", "draft_decision", "draft_token", "draft_update",
           "drafted", "emitted", "manager_counters", "manager_settings", "new_request", "request_logits",
           "request_verdict", "verify_beat"]


@struct
def new_request(p: ManagerParams) -> Fields:
    """A request to be decoded.

    Members
    -------
    request: Number of the request.
    position: Tokens of the prompt, which is the position of the first token that is emitted.
    stop: Position from which no token is wanted any more.
    token: The prompt's last token.
    """
    return {
        "request": p.request_width,
        "position": p.position_width,
        "stop": p.position_width,
        "token": p.token_width,
    }


@struct
def draft_beat(p: ManagerParams) -> Fields:
    """A request that takes part in a draft step, or the end of the step's list.

    Members
    -------
    request: Number of the request.
    position: Position of the token that is wanted.
    token: The token before it.
    end: No request: all of the step were named, and the rest is 0.
    """
    return {
        "request": p.request_width,
        "position": p.position_width,
        "token": p.token_width,
        "end": 1,
    }


@struct
def drafted(p: ManagerParams) -> Fields:
    """A draft token.

    Members
    -------
    request: Number of the request.
    token: The draft token.
    probability: Probability of the token in its distribution, UQ1.15, at most 1.0.
    """
    return {
        "request": p.request_width, "token": p.token_width,
        "probability": H_WIDTH,
    }


@struct
def verify_beat(p: ManagerParams) -> Fields:
    """A part of a verification pass.

    Members
    -------
    request: Number of the request.
    position: Position of the token or, of a request, of its last known one.
    token: The draft token; 0 for a request.
    kind: Whether it is a request, a token or the end of the pass.
    """
    return {
        "request": p.request_width, "position": p.position_width, "token": p.token_width, "kind": VerifyKind}


@struct
def request_verdict(p: ManagerParams) -> Fields:
    """What the verify engine says about a request of its pass.

    Members
    -------
    request: Number of the request.
    accepted: Tokens of the request in the pass that were accepted.
    token: The token behind them, correction or bonus.
    bonus: It is a bonus that a drafted token may be, see `manager`.
    """
    return {
        "request": p.request_width,
        "accepted": p.length_width,
        "token": p.token_width,
        "bonus": 1,
    }


@struct
def emitted(p: ManagerParams) -> Fields:
    """A token of a request's text, or the answer to a request that wants none.

    Members
    -------
    request: Number of the request.
    position: Position of the token; with ``empty`` that of the request.
    token: The token; 0 with ``empty``.
    last: The request is complete.
    empty: No token, since none was wanted.
    """
    return {
        "request": p.request_width, "position": p.position_width, "token": p.token_width,
        "last": 1, "empty": 1,
    }


def manager_settings(p: ManagerParams) -> Struct:
    """Run-time switches; their meanings are those of the registers that hold them."""
    s = p.scheduler
    texts = {field.name: field.text for register in registers(p) for field in register.fields}
    members: Fields = {
        "policy": DraftPolicy, "tabled": 1, "shared": 1, "eager": 1, "dynamic": 1,
        "initial_dlm_fc": Place, "initial_tlm_attention": Place,
        "stop_at_end": 1, "end_token": p.token_width,
        "max_draft": p.length_width, "tau": H_WIDTH, **{f"tau_{n}": H_WIDTH for n in range(TAU_ENTRIES)},
        "capacity": p.rows_width, "start": p.count_width, "engines": p.lane_width + 1,
        "dlm_fc_low": s.requests_width, "dlm_fc_high": s.requests_width,
        "tlm_attention_low": s.threshold_width, "tlm_attention_high": s.threshold_width,
    }
    return Struct("manager_settings", "Run-time switches.", members, {name: texts[name] for name in members})


def manager_counters() -> Struct:
    """Counters of 32 bits that wrap round; their meanings are those of :data:`sim_models.spec.manager.COUNTERS`."""
    return Struct("manager_counters", "Counters of 32 bits that wrap round.", dict.fromkeys(COUNTERS, 32), COUNTERS)


@struct
def draft_token(p: DraftControllerParams) -> Fields:
    """A token that the draft model has chosen.

    Members
    -------
    position: Position of the token.
    token: The token.
    p: Its probability, UQ1.15; above 1.0 counts as 1.0.
    final: The request's text ends here, at its length limit.
    """
    return {
        "position": p.position_width, "token": p.token_width,
        "p": H_WIDTH,
        "final": 1,
    }


@struct
def draft_update(p: DraftControllerParams) -> Fields:
    """What a verdict means for a request's draft.

    Members
    -------
    restart: The draft is over, the next begins with H = 1.0.
    gone: Without ``restart``: tokens of the draft that are verified and emitted.
    """
    return {
        "restart": 1,
        "gone": p.length_width,
    }


@struct
def draft_decision(p: DraftControllerParams) -> Fields:
    """What follows from a draft token.

    Members
    -------
    request: Number of the request.
    stop: No token is drafted behind it for now; any of the following.
    threshold: It is below the threshold.
    length: The draft has its largest length, or the text its last position.
    end: It is the end token.
    """
    return {
        "request": p.request_width,
        "stop": 1,
        "threshold": 1, "length": 1, "end": 1,
    }


@struct
def request_logits(p: SaddleManagerParams) -> Fields:
    """A beat of the logits from which a request's draft token comes; all of a vector before those of the next.

    Members
    -------
    request: Number of the request.
    beat: A beat of its vector.
    """
    return {"request": p.request_width, "beat": logits_beat(p.softmax)}
