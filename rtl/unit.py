"""The base of every block: an Amaranth component that knows its Verilog module name.

A composite writes ``m.submodules.pe = PE(params)`` and nothing else. During Verilog emission
(:mod:`gen.emit.emit` is the platform) the child becomes an instance of its own module, so 64 equal PEs are one
module; without a platform (simulation in Python, formal) the same classes elaborate in place.
"""

from collections.abc import Iterator
from typing import Any

from amaranth.hdl import Module, ResetSignal
from amaranth.lib import wiring

from rtl.bus.registers import Register
from sim_models.params.base import Params

__all__ = ["Unit", "in_reset", "is_emitting"]


class Unit(wiring.Component):
    """A block of the accelerator.

    Parameters
    ----------
    params:
        Frozen, validated parameters. They alone decide the hardware and the module's name.
    signature:
        Members of the component's signature, as for :class:`amaranth.lib.wiring.Component`.

    Subclasses set :attr:`block`, the name in the registry, and write :meth:`body` where an ordinary
    component has ``elaborate``.
    """

    #: name of the block in the registry and stem of its Verilog modules
    block: str

    def __init__(self, params: Params, signature: dict[str, Any]) -> None:
        self.params = params
        super().__init__(signature)

    @property
    def unit_name(self) -> str:
        """Verilog module name; unique per block and parameters."""
        return self.params.unit_name(self.block)

    def register_table(self) -> tuple[Register, ...]:
        """Registers that the block has on its bus; a block with registers overrides this."""
        return ()

    def answers(self) -> tuple[tuple[str, str, int], ...]:
        """Ports that follow others after a fixed number of cycles, for the drawings in the block's page.

        Each is an input (or what stands for one), an output, and the cycles from the one to the other.
        """
        return ()

    def flat_members(self) -> Iterator[tuple[str, tuple[str | int, ...], wiring.Member, Any]]:
        """Port name, path, member and value of everything in the signature that is a port.

        The parts of a path are joined by two underscores; by one within a signature that says so with an attribute
        ``separator``, as a bus does whose pins have standard names.
        """
        for path, member, value in self.signature.flatten(self):
            yield _port_name(self.signature, path), path, member, value

    def body(self, platform: Any) -> Module:
        """The hardware itself; every subclass overrides this."""
        raise TypeError(f"{type(self).__name__} has no body(): a block describes its hardware there")

    def elaborate(self, platform: Any) -> Any:
        """Elaborate in place, or as an instance when the platform is emitting Verilog."""
        if is_emitting(platform) and platform.current is not self:
            return platform.instance_of(self)
        return self.body(platform)


def _port_name(signature: Any, path: tuple[str | int, ...]) -> str:
    name, separator = "", ""
    for part in path:
        name += f"{separator}{part}"
        if isinstance(part, str):
            member = signature.members[part]
            separator = "__"
            if member.is_signature:
                signature = member.signature
                separator = getattr(signature, "separator", separator)
    return name


def is_emitting(platform: Any) -> bool:
    """Whether a unit is elaborated for Verilog, and not in place for a simulation in Python or a proof."""
    return hasattr(platform, "instance_of")


def in_reset() -> Any:
    """Whether the block is held in reset; no stream may take a beat then, for it would be lost."""
    return ResetSignal("sync", allow_reset_less=True)
