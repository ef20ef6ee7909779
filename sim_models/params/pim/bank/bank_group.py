"""Parameters of ``bank_group``."""

import dataclasses

from sim_models.params.pim.bank.bank_pe import BankPEParams
from sim_models.params.pim.bank.dram_bank import DramBankParams

__all__ = ["BankGroupParams"]



@dataclasses.dataclass(frozen=True, kw_only=True)
class BankGroupParams(BankPEParams, DramBankParams):
    """Parameters of a bank group: four banks, each with its processing element."""

    def validate(self) -> None:
        BankPEParams.validate(self)
        DramBankParams.validate(self)

    @property
    def bank(self) -> DramBankParams:
        """Parameters of the banks."""
        return DramBankParams(**{f.name: getattr(self, f.name) for f in dataclasses.fields(DramBankParams)})

    @property
    def pe(self) -> BankPEParams:
        """Parameters of the processing elements."""
        return BankPEParams(**{f.name: getattr(self, f.name) for f in dataclasses.fields(BankPEParams)})
