"""Golden model of the AXI4-Lite slave, cycle by cycle."""

import dataclasses

from sim_models.params.bus.axi_lite import AxiLiteParams

__all__ = ["OKAY", "SLVERR", "AxiLite", "Inputs", "Outputs"]

OKAY, SLVERR = 0, 2


@dataclasses.dataclass(frozen=True)
class Inputs:
    """What stands at the inputs in a cycle; None where a channel offers nothing.

    Members
    -------
    aw, ar: int or None
        Byte address.
    w: (data, strobe) or None
    b_ready, r_ready: bool
    write_good, read_good: bool
        Whether what is behind the port knows the address.
    read_data: int
    """

    aw: int | None = None
    w: tuple[int, int] | None = None
    ar: int | None = None
    b_ready: bool = False
    r_ready: bool = False
    write_good: bool = True
    read_good: bool = True
    read_data: int = 0


@dataclasses.dataclass(frozen=True)
class Outputs:
    """What the outputs show before the edge that ends a cycle.

    Members
    -------
    b: int or None
        Response to a write.
    r: (data, response) or None
    write: (word address, data, strobe) or None
    read: int or None
        Word address.
    """

    b: int | None
    r: tuple[int, int] | None
    write: tuple[int, int, int] | None
    read: int | None

    @property
    def aw_ready(self) -> bool:
        """An address and its data are taken together."""
        return self.write is not None

    w_ready = aw_ready

    @property
    def ar_ready(self) -> bool:
        """The address of a read is taken."""
        return self.read is not None


class AxiLite:
    """The slave: an answer of each kind may wait.

    Parameters
    ----------
    p:
        Parameters of the slave.
    """

    def __init__(self, p: AxiLiteParams) -> None:
        self.p = p
        self.reset()

    def reset(self) -> None:
        """No answer waits."""
        self.b: int | None = None
        self.r: tuple[int, int] | None = None

    def step(self, i: Inputs) -> Outputs:
        """One cycle: what the outputs show with these inputs; then the edge."""
        write = read = None
        if i.aw is not None and i.w is not None and (self.b is None or i.b_ready):
            write = (i.aw >> 2, *i.w)
        if i.ar is not None and (self.r is None or i.r_ready):
            read = i.ar >> 2
        outputs = Outputs(self.b, self.r, write, read)
        if self.b is not None and i.b_ready:
            self.b = None
        if self.r is not None and i.r_ready:
            self.r = None
        if write is not None:
            self.b = OKAY if i.write_good else SLVERR
        if read is not None:
            self.r = (i.read_data, OKAY) if i.read_good else (0, SLVERR)
        return outputs
