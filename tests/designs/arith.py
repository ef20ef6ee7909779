"""All arithmetic pipelines side by side, always enabled: one model to compile for a million operands."""

from typing import Any

from amaranth.hdl import Module, Value
from amaranth.lib.wiring import In, Out

from rtl.registry import BLOCKS
from rtl.unit import Unit
from sim_models.params.base import Params
from tb.common.runner import unit_ports

__all__ = ["PIPELINES", "AllArith", "pipelines"]

#: pipelines by name: block and the parameters that are not the default
PIPELINES: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, {}) for name, block in BLOCKS.items() if block.folder == "arith"},
    "bf16_product": ("exact_product", {"format": "bf16"}),
    "float_to_bf16": ("float_to_half", {"format": "bf16"}),
    "bf16_to_float": ("half_to_float", {"format": "bf16"}),
    "float_to_int32": ("float_to_int", {"width": 32}),
    "int8_to_float": ("int_to_float", {"width": 8}),
    "exp2_fp16": ("exp2", {"format": "fp16"}),
}


def pipelines() -> dict[str, Unit]:
    """New units, by the names of :data:`PIPELINES`."""
    return {name: BLOCKS[block].unit(BLOCKS[block].params(**values))
            for name, (block, values) in PIPELINES.items()}


class AllArith(Unit):
    """Each port of each pipeline is a port here, behind the pipeline's name; ``enable`` is left alone."""

    block = "all_arith"

    def __init__(self) -> None:
        self.units = pipelines()
        super().__init__(Params(), {
            f"{name}_{port.name}": (In if port.direction == "in" else Out)(port.width)
            for name, unit in self.units.items() for port in unit_ports(unit) if port.name != "enable"})

    def body(self, platform: Any) -> Module:
        m = Module()
        for name, unit in self.units.items():
            m.submodules[name] = unit
            for port in unit_ports(unit):
                if port.name != "enable":
                    inner, outer = Value.cast(getattr(unit, port.name)), getattr(self, f"{name}_{port.name}")
                    m.d.comb += inner.eq(outer) if port.direction == "in" else outer.eq(inner)
        return m
