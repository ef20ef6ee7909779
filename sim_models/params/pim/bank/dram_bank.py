"""Parameters of DRAM: how long its commands take, and how a bank is laid out."""

import dataclasses

from sim_models.params.base import ParamError, Params, param

__all__ = ["TIMINGS", "DramBankParams", "DramTiming"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class DramTiming(Params):
    """Least cycles between commands to a bank, and how often it wants to be refreshed.

    The defaults are HBM3 at 1 GHz, the clock of SADDLE's processing elements, from the device model of Ramulator 2
    (``HBM3_2Gbps``: nRCD, nRP, nRAS, nCCDL, nCL, nRTPL, nCWL + nBL + nWR, nCWL + nBL + nWTRL, nREFI; nRFC for
    4 Gbit a channel, which is what SADDLE's stacks of 16 GB with 64 pseudo-channels have).
    """

    rcd: int = param(7, "ACTIVATE to READ or WRITE, cycles", low=1, high=64)
    rp: int = param(7, "PRECHARGE to ACTIVATE or REFRESH, cycles", low=1, high=64)
    ras: int = param(17, "ACTIVATE to PRECHARGE, cycles", low=1, high=128)
    ccd: int = param(2, "READ or WRITE to READ or WRITE, cycles", low=1, high=64)
    cl: int = param(7, "READ to its word, cycles", low=3, high=64)
    rtp: int = param(3, "READ to PRECHARGE, cycles", low=1, high=64)
    wr: int = param(14, "WRITE to PRECHARGE, cycles", low=1, high=128)
    wtr: int = param(10, "WRITE to READ, cycles", low=1, high=128)
    rfc: int = param(260, "REFRESH to ACTIVATE or REFRESH, cycles", low=1, high=2048)
    refi: int = param(3900, "a REFRESH becomes due every so many cycles", low=16, high=65535)

    def validate(self) -> None:
        super().validate()
        if self.refi < 2 * self.refresh_cycles:
            raise ParamError(f"refi must be at least {2 * self.refresh_cycles}, twice what a refresh keeps a bank "
                             f"busy with these timings, not {self.refi}", "refi")

    @property
    def refresh_cycles(self) -> int:
        """Most cycles from when a refresh is due to the next READ or WRITE: close, refresh, open."""
        return max(self.ras, self.rtp, self.wr) + self.rp + self.rfc + self.rcd + 4


#: named timings: HBM3, the default, and small numbers with which every rule matters in a short test
TIMINGS: dict[str, dict[str, int]] = {
    "hbm3": {},
    "fast": {"rcd": 3, "rp": 2, "ras": 7, "ccd": 1, "cl": 3, "rtp": 2, "wr": 4, "wtr": 3, "rfc": 6, "refi": 60},
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class DramBankParams(DramTiming):
    """Parameters of a bank."""

    lanes: int = param(16, "FP16 numbers in a word", low=1, high=64, tag="n")
    rows: int = param(128, "rows, a power of two; a bank of SADDLE has 16384", low=2, high=32768)
    columns: int = param(32, "words of a row, a power of two", low=2, high=128)
    open_rows: int = param(2, "rows that are open independently: 1 for a plain bank, 2 for two subarrays with a row "
                              "buffer each, even rows in one and odd rows in the other", low=1, high=2, tag="open")

    def validate(self) -> None:
        super().validate()
        for name in ("rows", "columns"):
            value = getattr(self, name)
            if value & (value - 1):
                raise ParamError(f"{name} must be a power of two, not {value}", name)

    @property
    def word_width(self) -> int:
        """Bits of a word."""
        return 16 * self.lanes

    @property
    def words(self) -> int:
        """Words of a bank; word ``row * columns + column`` is in that row and column."""
        return self.rows * self.columns
