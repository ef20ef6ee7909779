"""Parameters of ``intensity_scheduler``."""

import dataclasses

from sim_models.params.base import Params, param
from sim_models.params.manager.pools.token_lists import _request_width

__all__ = ["IntensitySchedulerParams"]



@dataclasses.dataclass(frozen=True, kw_only=True)
class IntensitySchedulerParams(Params):
    """Parameters of the operator scheduler."""

    request_width: int = _request_width()
    count_width: int = param(10, "bits of a number of draft tokens", low=1, high=13, tag="c")
    whole_width: int = param(8, "bits before the point of a threshold in tokens per request", low=1, high=13, tag="w")
    fraction_width: int = param(4, "bits behind the point of a threshold in tokens per request", low=0, high=8,
                                tag="f")

    @property
    def requests_width(self) -> int:
        """Bits of a number of requests."""
        return self.request_width + 1

    @property
    def threshold_width(self) -> int:
        """Bits of a threshold in tokens per request."""
        return self.whole_width + self.fraction_width
