"""Parameters of ``pim_stack``."""

import dataclasses

from sim_models.params.base import ParamError, param
from sim_models.params.pim.bank.sum_rounder import SumRounderParams
from sim_models.params.pim.channel.pseudo_channel import PseudoChannelParams
from sim_models.params.sfu.buffer_die_sfu import BufferDieSfuParams

__all__ = ["PimStackParams"]



@dataclasses.dataclass(frozen=True, kw_only=True)
class PimStackParams(PseudoChannelParams):
    """Parameters of a stack: pseudo-channels, the special function unit, and what lies between them."""

    pseudo_channels: int = param(4, "pseudo-channels; a stack of SADDLE has 64", low=1, high=64, tag="p")
    sfu_length: int = param(2048, "numbers of the longest row of the special function unit, a multiple of 4", low=8,
                            high=1 << 15, tag="m")

    def validate(self) -> None:
        super().validate()
        if self.lanes < 4:
            raise ParamError(f"lanes must be at least 4 in a stack, which has 4 results a beat, not {self.lanes}",
                             "lanes")
        if self.sfu_length % 4:
            raise ParamError(f"sfu_length must be a multiple of 4, not {self.sfu_length}", "sfu_length")

    @property
    def channel(self) -> PseudoChannelParams:
        """Parameters of the pseudo-channels."""
        return PseudoChannelParams(**{f.name: getattr(self, f.name) for f in dataclasses.fields(PseudoChannelParams)})

    @property
    def sfu(self) -> BufferDieSfuParams:
        """Parameters of the special function unit."""
        return BufferDieSfuParams(lanes=4, max_length=self.sfu_length)

    @property
    def rounder(self) -> SumRounderParams:
        """Parameters of the rounders."""
        return SumRounderParams(format=self.format, lanes=self.lanes, terms_width=self.terms_width)
