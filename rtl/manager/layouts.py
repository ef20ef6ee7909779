"""Shapes of what crosses block boundaries in ``rtl/manager``."""

from amaranth.lib import data, enum

from rtl.manager.registers import COUNTERS
from rtl.manager.softmax.layouts import logits_beat
from sim_models.params.manager.draft_controller import TAU_ENTRIES, DraftControllerParams
from sim_models.params.manager.manager import ManagerParams
from sim_models.params.manager.pools.pool import H_WIDTH
from sim_models.params.manager.saddle_manager import SaddleManagerParams

__all__ = ["DraftPolicy", "Place", "VerifyKind", "draft_beat", "draft_decision", "draft_token", "draft_update",
           "drafted", "emitted", "manager_counters", "manager_settings", "new_request", "request_logits",
           "request_verdict", "verify_beat"]



class Place(enum.Enum, shape=1):
    """Where an operator runs."""

    #: near the banks: for operators that wait for memory
    PIM = 0
    #: on tiles (SADDLE: the GPU): for operators that compute
    TILES = 1


class DraftPolicy(enum.Enum, shape=2):
    """What makes a request stop drafting, besides the length; another number is as ``CUMULATIVE``."""

    #: nothing
    FIXED = 0
    #: H, the product of the draft's probabilities, falls below the threshold
    CUMULATIVE = 1
    #: the token's own probability is below the threshold
    CONFIDENCE = 2


class VerifyKind(enum.Enum, shape=2):
    """A beat to the verify engine."""

    #: the request takes part in the pass, with a row for its last known token; ``token`` is 0
    REQUEST = 0
    #: a draft token of a request that takes part, behind the request's tokens before it
    TOKEN = 1
    #: the pass is complete; all else is 0
    END = 2


def new_request(p: ManagerParams) -> data.StructLayout:
    """A request to be decoded."""
    return data.StructLayout({
        "request": p.request_width,
        "position": p.position_width,   # tokens of the prompt: where the first one that is emitted will stand
        "stop": p.position_width,       # where none is wanted any more
        "token": p.token_width,         # the prompt's last
    })


def draft_beat(p: ManagerParams) -> data.StructLayout:
    """A request that takes part in a draft step, or the end of the step's list."""
    return data.StructLayout({
        "request": p.request_width,
        "position": p.position_width,   # of the token wanted
        "token": p.token_width,         # the one before it
        "end": 1,                       # no request: all were named, and the rest is 0
    })


def drafted(p: ManagerParams) -> data.StructLayout:
    """A draft token."""
    return data.StructLayout({
        "request": p.request_width, "token": p.token_width,
        "probability": H_WIDTH,         # of this token in its distribution, UQ1.15, at most 1.0
    })


def verify_beat(p: ManagerParams) -> data.StructLayout:
    """A part of a verification pass."""
    return data.StructLayout({
        "request": p.request_width, "position": p.position_width, "token": p.token_width, "kind": VerifyKind})


def request_verdict(p: ManagerParams) -> data.StructLayout:
    """What the verify engine says about a request of its pass."""
    return data.StructLayout({
        "request": p.request_width,
        "accepted": p.length_width,     # of its tokens in the pass
        "token": p.token_width,         # the one behind them: correction or bonus
        "bonus": 1,                     # it is a bonus that a drafted token may be, see `manager`
    })


def emitted(p: ManagerParams) -> data.StructLayout:
    """A token of a request's text."""
    return data.StructLayout({
        "request": p.request_width, "position": p.position_width, "token": p.token_width,
        "last": 1,                      # the request is complete
    })


def manager_settings(p: ManagerParams) -> data.StructLayout:
    """Run-time switches; see `rtl/manager/registers.py` for each."""
    s = p.scheduler
    return data.StructLayout({
        "policy": DraftPolicy, "tabled": 1, "shared": 1, "eager": 1, "dynamic": 1,
        "initial_dlm_fc": Place, "initial_tlm_attention": Place,
        "stop_at_end": 1, "end_token": p.token_width,
        "max_draft": p.length_width, "tau": H_WIDTH, **{f"tau_{n}": H_WIDTH for n in range(TAU_ENTRIES)},
        "capacity": p.rows_width, "start": p.count_width, "engines": p.lane_width + 1,
        "dlm_fc_low": s.requests_width, "dlm_fc_high": s.requests_width,
        "tlm_attention_low": s.threshold_width, "tlm_attention_high": s.threshold_width,
    })


def manager_counters() -> data.StructLayout:
    """Counters of 32 bits that wrap round; see `rtl/manager/registers.py` for each."""
    return data.StructLayout(dict.fromkeys(COUNTERS, 32))


def draft_token(p: DraftControllerParams) -> data.StructLayout:
    """A token that the draft model has chosen."""
    return data.StructLayout({
        "request": p.request_width, "position": p.position_width, "token": p.token_width,
        "p": H_WIDTH,               # its probability, UQ1.15; above 1.0 counts as 1.0
        "final": 1,                 # the last to be drafted: the token behind it is the text's last, and the target's
    })


def draft_update(p: DraftControllerParams) -> data.StructLayout:
    """What a verdict means for a request's draft."""
    return data.StructLayout({
        "request": p.request_width,
        "restart": 1,               # the draft is over, the next begins with H = 1.0
        "gone": p.length_width,     # otherwise: tokens of the draft that are verified and emitted
    })


def draft_decision(p: DraftControllerParams) -> data.StructLayout:
    """What follows from a draft token."""
    return data.StructLayout({
        "request": p.request_width,
        "stop": 1,                  # any of the following: no token is drafted behind it for now
        "threshold": 1, "length": 1, "end": 1,
    })


def request_logits(p: SaddleManagerParams) -> data.StructLayout:
    """A beat of the logits from which a request's draft token comes; all of a vector before those of the next."""
    return data.StructLayout({"request": p.request_width, "beat": logits_beat(p.softmax)})
