"""Commands of a pseudo-channel as its golden models see them, and which of them are wrong."""

import dataclasses

from sim_models.params.pim.channel.pseudo_channel import PseudoChannelParams
from sim_models.spec.channel import PimOp, PimReduce, PimSpread, PimStatus

__all__ = ["BANKS", "GROUPS", "OPS", "REDUCES", "SPREADS", "STATUSES", "Command", "status", "words"]

GROUPS = 4
#: banks of a group
BANKS = 4

#: names by the numbers that stand in a command or response; a spread of 3 means nothing
OPS, REDUCES, STATUSES = (tuple(c.name.lower() for c in codes) for codes in (PimOp, PimReduce, PimStatus))
SPREADS = (*(c.name.lower() for c in PimSpread), "invalid")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Command:
    """A command, field by field as in ``rtl.pim.channel.layouts.pim_command``."""

    op: str
    address: int = 0
    count: int = 0
    base: int = 0
    first: int = 0
    outputs: int = 0
    spread: str = "all"
    clear: bool = False
    int8: bool = False
    group: int = 0
    bank: int = 0
    reduce: str = "none"


def words(c: Command) -> int:
    """Words that the command takes off the data stream, right or wrong."""
    return c.count if c.op in ("load", "write") else 0


def status(p: PseudoChannelParams, c: Command) -> str:
    """Outcome of a command; it depends on nothing but the command."""
    load, write, mac, read = (c.op == op for op in OPS)
    if (c.count == 0 and not read) or (c.outputs == 0 and (mac or read)):
        return "count"
    if (mac or read) and not (p.int8 if c.int8 else p.fp16):
        return "format"
    if mac and c.spread == "invalid":
        return "format"
    if (write or mac) and c.address + c.count * (c.outputs if mac else 1) > p.words:
        return "address"
    if load and c.base + c.count > p.buffer_words:
        return "buffer"
    if mac:
        stride = 1 if c.spread == "all" else 4
        if c.base % stride or c.base + c.count * stride > p.buffer_words:
            return "buffer"
    if (mac or read) and (c.first >= p.accumulators or c.first % p.half + c.outputs > p.half):
        return "accumulator"
    return "ok"
