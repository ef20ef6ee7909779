"""Codes of the Manager's settings and streams, and what it counts."""

import enum

__all__ = ["COUNTERS", "DraftPolicy", "Place", "VerifyKind"]


class Place(enum.IntEnum):
    """Where an operator runs.

    Members
    -------
    PIM: Near the banks: for operators that wait for memory.
    TILES: On tiles (SADDLE: the GPU): for operators that compute.
    """

    PIM = 0
    TILES = 1


class DraftPolicy(enum.IntEnum):
    """What makes a request stop drafting, besides the length; another number is as ``CUMULATIVE``.

    Members
    -------
    FIXED: Nothing.
    CUMULATIVE: H, the product of the draft's probabilities, falls below the threshold.
    CONFIDENCE: The token's own probability is below the threshold.
    """

    FIXED = 0
    CUMULATIVE = 1
    CONFIDENCE = 2


class VerifyKind(enum.IntEnum):
    """A beat to the verify engine.

    Members
    -------
    REQUEST: The request takes part in the pass, with a row for its last known token; ``token`` is 0.
    TOKEN: A draft token of a request that takes part, behind the request's tokens before it.
    END: The pass is complete; all else is 0.
    """

    REQUEST = 0
    TOKEN = 1
    END = 2


#: what the Manager counts, and what that is; in the order of their registers
COUNTERS = {
    "cycles": "cycles while a request is live; the following ten count some of them",
    "drafting": "a draft step is under way",
    "verifying": "a verification pass is under way",
    "both": "both are",
    "locked": "no step is under way although a request could draft on: the pool is locked",
    "eager_full": "no step is under way although a request could draft on: its Eager Pool is full",
    "pool_full": "no step is under way although a request could draft on: the Shared Pool is full",
    "idle": "neither a step nor a pass is under way",
    "softmax": "logits are on their way through the softmax unit",
    "deciding": "the Manager or the softmax unit is at work",
    "exposed": "the same while no pass is under way, and no step but one whose logits have come",
    "masked": "logits without a distribution: all masked; the token drafted has probability 0",
    "drafted": "draft tokens that came",
    "stale": "draft tokens that came after their draft was broken",
    "eager": "draft tokens that went to an Eager Pool",
    "accepted": "draft tokens that were emitted",
    "emitted": "tokens that were emitted",
    "completed": "requests that were completed",
    "passes": "verification passes",
    "served": "requests in passes",
    "rows": "rows of passes: requests and draft tokens",
    "refused": "requests that wanted no token; each was answered with an empty beat and counts as completed",
    "illegal": "draft tokens and verdicts that were dropped: of requests that were not asked for, or with more "
               "accepted tokens than were in the pass",
}
