"""MULT18X18D, the multiplier of Lattice ECP5, with its registers for both operands and the product.

Reference: Lattice FPGA-TN-02205, sysDSP usage guide.
"""

from typing import Any

from amaranth.hdl import Cat, ClockSignal, Const, Instance, ResetSignal, Signal

from rtl.primitives import sign_extended

__all__ = ["mult18x18d"]


def mult18x18d(a: Any, b: Any, product: Signal) -> Instance:
    """An instance that multiplies two signed numbers.

    Parameters
    ----------
    a, b: signed values of at most 18 bits
    product: Signal
        Gets the product of the operands of two cycles ago.
    """
    connections: dict[str, Any] = {}
    for port, value in (("A", a), ("B", b)):
        connections |= {f"i_{port}{bit}": wire for bit, wire in enumerate(sign_extended(value, 18))}
    beyond = Signal(36 - len(product), name="beyond")
    connections |= {f"i_C{bit}": Const(0, 1) for bit in range(18)}
    connections |= {f"o_P{bit}": wire for bit, wire in enumerate(Cat(product, beyond))}
    # What is left open must stay so: nextpnr finds no route from a constant to the clocks and resets not used.
    return Instance(
        "MULT18X18D", **connections, p_REG_INPUTA_CLK="CLK0", p_REG_INPUTB_CLK="CLK0", p_REG_OUTPUT_CLK="CLK0",
        i_SIGNEDA=Const(1, 1), i_SIGNEDB=Const(1, 1), i_SOURCEA=Const(0, 1), i_SOURCEB=Const(0, 1),
        i_CLK0=ClockSignal(), i_CE0=Const(1, 1), i_RST0=ResetSignal(allow_reset_less=True))
