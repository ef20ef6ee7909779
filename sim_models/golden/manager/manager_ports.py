"""Settings, inputs and outputs of the Manager's golden model."""

import dataclasses

from sim_models.golden.manager import draft_controller
from sim_models.golden.manager.draft_controller import CONFIDENCE, CUMULATIVE, FIXED
from sim_models.params.manager.manager import ManagerParams
from sim_models.spec.manager import COUNTERS, VerifyKind
from sim_models.specdec.fixed import ONE
from sim_models.specdec.policies import Confidence, Cumulative, LoadTau, Policy
from sim_models.specdec.scheduler import Settings

__all__ = ["COUNTERS", "END", "REQUEST", "TOKEN", "Inputs", "Outputs", "Switches"]

REQUEST, TOKEN, END = VerifyKind


@dataclasses.dataclass(frozen=True, kw_only=True)
class Switches:
    """Settings of the Manager; thresholds in units of 2^-15, ``end_token`` None for no end token.

    With ``taus`` the threshold is that for the number of live requests. The default is SADDLE in full.
    """

    policy: int = CUMULATIVE
    shared: bool = True
    eager: bool = True
    dynamic: bool = True
    initial: tuple[int, int] = (0, 0)
    end_token: int | None = None
    max_draft: int = 8
    tau: int = ONE // 10
    taus: tuple[int, ...] | None = None
    capacity: int = 64
    start: int = 1
    engines: int = 1
    dlm_fc: tuple[int, int] = (9, 9)
    tlm_attention: tuple[int, int] = (9 << 4, 9 << 4)

    def settings(self, p: ManagerParams) -> Settings:
        """As the scheduler of :mod:`sim_models.specdec` has them."""
        return Settings(lanes=p.lanes, capacity=self.capacity, entries=p.entries, eager_entries=p.eager_entries,
                        max_draft=self.max_draft, start=self.start, shared=self.shared,
                        eager=self.shared and self.eager)

    def fitted(self, p: ManagerParams) -> "Switches":
        """With numbers as high as a Manager with these parameters can hold at most."""
        low, high = (min(n, 2 * p.requests - 1) for n in self.dlm_fc)
        return dataclasses.replace(
            self, max_draft=min(self.max_draft, 1 << p.draft_width), start=min(self.start, p.entries),
            capacity=min(self.capacity, p.entries + p.requests), engines=min(self.engines, p.lanes),
            dlm_fc=(low, high))

    @property
    def stopping(self) -> Policy:
        """When a draft stops, but for its length."""
        if self.policy == FIXED:
            return Policy()
        confidence = self.policy == CONFIDENCE
        if self.taus is not None:
            return LoadTau(tuple(tau / ONE for tau in self.taus), confidence)
        return Confidence(self.tau / ONE, 1 << 30) if confidence else Cumulative(self.tau / ONE)

    def controller(self, load: int) -> draft_controller.Settings:
        """As the draft controller has them."""
        return draft_controller.Settings(
            policy=self.policy, tabled=self.taus is not None, tau=self.tau, taus=self.taus or (0,) * 8, load=load,
            max_draft=self.max_draft, stop_at_end=self.end_token is not None, end_token=self.end_token or 0)


@dataclasses.dataclass(frozen=True)
class Inputs:
    """What stands at the inputs in a cycle; None where a stream offers nothing.

    Members
    -------
    requests: (request, position, stop, token) or None
    drafted: (request, token, probability) or None
    verdicts: (request, accepted, token, bonus) or None
    softmax_busy, masked: bool
        What the softmax unit in front does.
    """

    requests: tuple[int, int, int, int] | None = None
    drafted: tuple[int, int, int] | None = None
    verdicts: tuple[int, int, int, bool] | None = None
    draft_ready: bool = True
    verify_ready: bool = True
    emitted_ready: bool = True
    softmax_busy: bool = False
    masked: bool = False


@dataclasses.dataclass(frozen=True)
class Outputs:
    """What the outputs show before the edge that ends a cycle.

    Members
    -------
    draft: (request, position, token, end) or None
    verify: (request, position, token, kind) or None
    emitted: (request, position, token, last, empty) or None
    mapping: (dlm_fc, tlm_attention)
    """

    requests_ready: bool
    drafted_ready: bool
    verdicts_ready: bool
    draft: tuple[int, int, int, int] | None
    verify: tuple[int, int, int, int] | None
    emitted: tuple[int, int, int, int, int] | None
    busy: bool
    mapping: tuple[int, int]
