"""Parameters of ``pseudo_channel``."""

import dataclasses

from sim_models.params.base import ParamError, param
from sim_models.params.pim.bank.bank_group import BankGroupParams

__all__ = ["PseudoChannelParams"]



@dataclasses.dataclass(frozen=True, kw_only=True)
class PseudoChannelParams(BankGroupParams):
    """Parameters of a pseudo-channel: four bank groups in lockstep, the global buffer and what steers them."""

    buffer_words: int = param(512, "words of the global buffer, a power of two", low=8, high=4096, tag="gb")

    def validate(self) -> None:
        super().validate()
        if self.buffer_words & (self.buffer_words - 1):
            raise ParamError(f"buffer_words must be a power of two, not {self.buffer_words}", "buffer_words")
        if self.accumulators < 4:
            raise ParamError(f"accumulators must be at least 4 in a pseudo-channel, for two halves, "
                             f"not {self.accumulators}", "accumulators")

    @property
    def half(self) -> int:
        """Accumulators in half a processing element's."""
        return self.accumulators // 2

    @property
    def group(self) -> BankGroupParams:
        """Parameters of the bank groups."""
        return BankGroupParams(**{f.name: getattr(self, f.name) for f in dataclasses.fields(BankGroupParams)})
