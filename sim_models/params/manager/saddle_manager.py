"""Parameters of ``saddle_manager``."""

import dataclasses

from sim_models.params.base import ParamError, param
from sim_models.params.manager.manager import ManagerParams
from sim_models.params.manager.manager_registers import ManagerRegistersParams
from sim_models.params.manager.softmax.softmax_unit import SoftmaxUnitParams
from sim_models.params.memory.fifo import FifoParams

__all__ = ["SaddleManagerParams"]



@dataclasses.dataclass(frozen=True, kw_only=True)
class SaddleManagerParams(ManagerParams):
    """Parameters of the Manager with softmax unit and registers."""

    logit_lanes: int = param(8, "logits a cycle, a power of two", low=1, high=64, tag="n")

    def validate(self) -> None:
        """Those of the softmax unit too."""
        super().validate()
        if not 5 <= self.token_width <= 20:
            raise ParamError(f"token_width must be from 5 to 20 with a softmax unit, not {self.token_width}",
                             "token_width")
        if self.logit_lanes & (self.logit_lanes - 1):
            raise ParamError(f"logit_lanes must be a power of two, not {self.logit_lanes}", "logit_lanes")
        if self.logit_lanes >= 1 << self.token_width:
            raise ParamError(f"logit_lanes must be fewer than the {1 << self.token_width} tokens of "
                             f"{self.token_width} bits, not {self.logit_lanes}", "logit_lanes")

    @property
    def manager(self) -> ManagerParams:
        """Parameters of the Manager inside."""
        return ManagerParams(**self._common)

    @property
    def registers(self) -> ManagerRegistersParams:
        """Parameters of the registers."""
        return ManagerRegistersParams(**self._common)

    @property
    def softmax(self) -> SoftmaxUnitParams:
        """Parameters of the softmax unit."""
        return SoftmaxUnitParams(lanes=self.logit_lanes, token_width=self.token_width)

    @property
    def tags(self) -> FifoParams:
        """Parameters of the queue of requests whose logits are complete."""
        return FifoParams(width=self.request_width, depth=self.softmax.results)

    @property
    def _common(self) -> dict[str, int]:
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(ManagerParams)}
