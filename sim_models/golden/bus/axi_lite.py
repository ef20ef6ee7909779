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
        Whether what is behind the port knows the address that the outputs show.
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
    """What the outputs show in a cycle, whatever stands at the inputs.

    Members
    -------
    aw_ready, w_ready, ar_ready: bool
    b: int or None
        Response to a write.
    r: (data, response) or None
    write: (word address, data, strobe) or None
    read: int or None
        Word address of the read that is answered next.
    """

    aw_ready: bool
    w_ready: bool
    ar_ready: bool
    b: int | None
    r: tuple[int, int] | None
    write: tuple[int, int, int] | None
    read: int | None


class AxiLite:
    """The slave: one access of each kind may wait to be done, another for its answer to be taken.

    Parameters
    ----------
    p:
        Parameters of the slave.
    """

    def __init__(self, p: AxiLiteParams) -> None:
        self.p = p
        self.reset()

    def reset(self) -> None:
        """Nothing waits; the channels open one cycle later."""
        self.open = False
        self.address: int | None = None
        self.data: tuple[int, int] | None = None
        self.read_address: int | None = None
        self.b: int | None = None
        self.r: tuple[int, int] | None = None

    @property
    def outputs(self) -> Outputs:
        """What the outputs show now."""
        write = read = None
        if self.address is not None and self.data is not None and self.b is None:
            write = (self.address >> 2, *self.data)
        if self.read_address is not None and self.r is None:
            read = self.read_address >> 2
        return Outputs(self.open and self.address is None, self.open and self.data is None,
                       self.open and self.read_address is None, self.b, self.r, write, read)

    def step(self, i: Inputs) -> None:
        """The edge that ends a cycle with these inputs."""
        o = self.outputs
        if i.b_ready:
            self.b = None
        if i.r_ready:
            self.r = None
        if o.write is not None:
            self.address = self.data = None
            self.b = OKAY if i.write_good else SLVERR
        if o.read is not None:
            self.read_address = None
            self.r = (i.read_data, OKAY) if i.read_good else (0, SLVERR)
        if o.aw_ready:
            self.address = i.aw
        if o.w_ready:
            self.data = i.w
        if o.ar_ready:
            self.read_address = i.ar
        self.open = True
