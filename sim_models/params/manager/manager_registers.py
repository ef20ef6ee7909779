"""Parameters of ``manager_registers``."""

import dataclasses

from sim_models.params.manager.manager import ManagerParams

__all__ = ["ManagerRegistersParams"]



@dataclasses.dataclass(frozen=True, kw_only=True)
class ManagerRegistersParams(ManagerParams):
    """Parameters of the Manager whose registers they are."""
