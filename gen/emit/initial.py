"""Verilog without initial values, for tools that refuse them and devices that lack them."""

import dataclasses
import re

from gen.emit.emit import Design

__all__ = ["without_initial_values"]

_REGISTER = re.compile(r"(?m)^(  reg (?:signed )?(?:\[\d+:\d+\] )?\w+) = \d+'[bdho][0-9a-fxz]+;$")
_READ = re.compile(r"(?m)^  initial \w+ = \d+'[bdho][0-9a-fxz]+;$")


def without_initial_values(design: Design) -> Design:
    """The same design, whose registers are unknown until the reset.

    The word that a memory shows before its first read has a value in simulations alone: an idle PE multiplies it by
    zero, which is zero in hardware and unknown to a four-state simulator. Tables of memories that are only read stay.
    """
    return dataclasses.replace(design, modules={
        name: _READ.sub(lambda m: f"`ifndef SYNTHESIS\n{m[0]}\n`endif", _REGISTER.sub(r"\1;", text))
        for name, text in design.modules.items()})
