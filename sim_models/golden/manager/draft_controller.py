"""Golden model of the draft controller, cycle by cycle."""

import dataclasses

from sim_models.golden.manager.pools.shared_pool import Token
from sim_models.params.manager.draft_controller import DraftControllerParams
from sim_models.spec.manager import DraftPolicy
from sim_models.specdec.fixed import ONE, multiply
from sim_models.specdec.policies import load_index

__all__ = ["CONFIDENCE", "CUMULATIVE", "FIXED", "Decision", "DraftController", "Drafted", "Inputs", "Outputs",
           "Settings", "Update"]

FIXED, CUMULATIVE, CONFIDENCE = DraftPolicy


@dataclasses.dataclass(frozen=True)
class Drafted:
    """A draft token; p in units of 2^-15."""

    position: int
    token: int
    p: int
    final: bool = False


@dataclasses.dataclass(frozen=True)
class Update:
    """What a verdict means for a draft."""

    restart: bool = True
    gone: int = 0


@dataclasses.dataclass(frozen=True)
class Decision:
    """What follows from a token, and its H."""

    request: int
    stop: bool
    threshold: bool
    length: bool
    end: bool
    h: int


@dataclasses.dataclass(frozen=True)
class Settings:
    """Registers; thresholds in units of 2^-15."""

    policy: int = CUMULATIVE
    tabled: bool = False
    tau: int = 0
    taus: tuple[int, ...] = (0,) * 8
    load: int = 1
    max_draft: int = 16
    stop_at_end: bool = True
    end_token: int = 0


@dataclasses.dataclass(frozen=True)
class Inputs:
    """What stands at the inputs in a cycle; None where a stream offers nothing.

    Members
    -------
    request: int
        Whose token and update it is; the same as in the cycle before where one is offered.
    verifying, behind: bool
        For the token that was taken in the cycle before.
    """

    request: int = 0
    drafted: Drafted | None = None
    update: Update | None = None
    settings: Settings = Settings()
    verifying: bool = False
    behind: bool = False
    shared_room: bool = True
    shared_ready: bool = True
    eager_ready: bool = True


@dataclasses.dataclass(frozen=True)
class Outputs:
    """What the outputs show before the edge that ends a cycle.

    Members
    -------
    decision: Decision or None
    length, may_draft:
        For the request of the cycle before, as it was then.
    """

    drafted_ready: bool
    update_ready: bool
    shared: Token | None
    eager: Token | None
    decision: Decision | None
    length: int
    may_draft: bool


@dataclasses.dataclass
class _Draft:
    h: int = ONE
    length: int = 0
    stopped: bool = False


class DraftController:
    """The controller.

    Parameters
    ----------
    p:
        Parameters of the block.
    """

    def __init__(self, p: DraftControllerParams) -> None:
        self.p = p
        self.reset()

    def reset(self) -> None:
        """Forget everything; nothing is taken for a cycle a request and one."""
        self.drafts = [_Draft() for _ in range(self.p.requests)]
        self.waking = self.p.requests + 1
        self.taken: tuple[int, Drafted, Settings] | None = None
        #: the draft that was looked at in the cycle before; an update was taken then
        self.seen, self.updated = _Draft(), False
        self.shared: Token | None = None
        self.eager: Token | None = None
        self.decision: Decision | None = None

    def step(self, i: Inputs) -> Outputs:
        """One cycle: what the outputs show with these inputs; then the edge."""
        idle = not (self.waking or self.updated or self.taken or self.shared or self.eager)
        drafted_ready = idle and i.update is None
        takes = drafted_ready and i.drafted is not None
        outputs = Outputs(drafted_ready, idle, self.shared, self.eager, self.decision, self.seen.length,
                          _wants(self.seen, i.settings))
        self.seen = dataclasses.replace(self.drafts[i.request])
        self.updated = idle and i.update is not None
        self.waking = max(self.waking - 1, 0)
        self.decision = None
        if i.shared_ready:
            self.shared = None
        if i.eager_ready:
            self.eager = None
        if self.taken is not None:
            self._decide(i, *self.taken)
            self.taken = None
        elif idle and i.update is not None:
            self._update(i.request, i.update)
        elif takes and i.drafted is not None:
            self.taken = i.request, i.drafted, i.settings
        return outputs

    def _update(self, request: int, update: Update) -> None:
        if update.restart:
            self.drafts[request] = _Draft()
        else:
            self.drafts[request].length -= update.gone

    def _decide(self, i: Inputs, request: int, drafted: Drafted, s: Settings) -> None:
        """Settings count as of the cycle in which the token was taken, the policy as of this one."""
        draft = self.drafts[request]
        p = min(drafted.p, ONE)
        draft.h = multiply(draft.h, p)
        draft.length += 1
        tau = s.taus[load_index(max(s.load, 1))] if s.tabled else s.tau
        values: dict[int, int | None] = {FIXED: None, CUMULATIVE: draft.h, CONFIDENCE: p}
        value = values[i.settings.policy]
        threshold = value is not None and value < tau
        length = draft.length >= s.max_draft
        end = drafted.final or (s.stop_at_end and drafted.token == s.end_token)
        stop = draft.stopped or threshold or length or end
        draft.stopped |= threshold or end
        self.decision = Decision(request, stop, threshold, length, end, draft.h)
        token = Token(request, drafted.position, drafted.token, draft.h)
        if i.shared_room and not i.verifying and not i.behind:
            self.shared = token
        else:
            self.eager = token


def _wants(draft: _Draft, s: Settings) -> bool:
    """Whether a request may draft a token."""
    return not draft.stopped and draft.length < s.max_draft
