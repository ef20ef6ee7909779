"""Parameters of ``manager``."""

import dataclasses

from sim_models.params.base import ParamError, param
from sim_models.params.manager.draft_controller import DraftControllerParams
from sim_models.params.manager.intensity_scheduler import IntensitySchedulerParams
from sim_models.params.manager.pools.pool import PoolParams
from sim_models.params.manager.pools.shared_pool import SharedPoolParams

__all__ = ["ManagerParams"]



@dataclasses.dataclass(frozen=True, kw_only=True)
class ManagerParams(PoolParams):
    """Parameters of the Manager; ``entries`` is the size of the Shared Pool."""

    lane_width: int = param(2, "bits of a micro-batch's number; a request's are its lowest", low=0, high=4, tag="l")
    eager_entries: int = param(128, "entries of each micro-batch's Eager Pool", low=1, high=4096, tag="ee")
    draft_width: int = param(4, "unverified tokens of a request are at most 2 to this power", low=1, high=6, tag="d")

    def validate(self) -> None:
        """A micro-batch must have a request; positions must tell the tokens of a draft apart."""
        if self.lane_width > self.request_width:
            raise ParamError(f"lane_width must be at most request_width = {self.request_width}, not "
                             f"{self.lane_width}", "lane_width")
        if self.draft_width >= self.position_width:
            raise ParamError(f"draft_width must be below position_width = {self.position_width}, not "
                             f"{self.draft_width}", "draft_width")

    @property
    def lanes(self) -> int:
        """Micro-batches."""
        return 1 << self.lane_width

    @property
    def length_width(self) -> int:
        """Bits of a draft's length."""
        return self.draft_width + 1

    @property
    def rows_width(self) -> int:
        """Bits of a number of rows: a token each and a row for every request."""
        return (self.entries + self.requests).bit_length()

    @property
    def text_depth(self) -> int:
        """Words of the memory of unverified tokens."""
        return self.requests << self.draft_width

    @property
    def shared_pool(self) -> SharedPoolParams:
        """Parameters of the Shared Pool."""
        return SharedPoolParams(entries=self.entries, request_width=self.request_width, aging_width=0,
                                token_width=self.token_width, position_width=self.position_width)

    @property
    def controller(self) -> "DraftControllerParams":
        """Parameters of the draft controller."""
        return DraftControllerParams(request_width=self.request_width, token_width=self.token_width,
                                     position_width=self.position_width, length_width=self.length_width)

    @property
    def scheduler(self) -> IntensitySchedulerParams:
        """Parameters of the operator scheduler."""
        return IntensitySchedulerParams(request_width=self.request_width, count_width=self.entries.bit_length())
