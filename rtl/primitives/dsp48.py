"""DSP48E1 and DSP48E2, the multiply-accumulate blocks of AMD 7 series and UltraScale(+).

::

    a --[A]--+
             +--(pre-adder)--(x)--[M]--(+)--[P]-- p
    d --[D]--+                |         |
    b --[B]-------------------+    P, or c

Every register is cleared by the reset. Latency: 3 cycles from ``a``, ``b``, ``d`` and ``inmode`` to ``p``, 1 cycle
from ``c`` and ``opmode``.
References: AMD UG479 (DSP48E1) and UG579 (DSP48E2).
"""

from typing import Any

from amaranth.hdl import Cat, ClockSignal, Const, Instance, ResetSignal, Signal

from rtl.primitives import sign_extended

__all__ = ["ADD_C", "ADD_P", "A_ALONE", "D_ALONE", "dsp48"]

#: INMODE: which operand the pre-adder passes to the multiplier
A_ALONE, D_ALONE = Const(0b00000, 5), Const(0b00110, 5)
#: OPMODE: what is added to the product; X and Y (01 each) take the product, Z takes P (010) or C (011)
ADD_P, ADD_C = Const(0b010_01_01, 7), Const(0b011_01_01, 7)

_NAMES = {"xc7": "DSP48E1", "xcup": "DSP48E2"}
#: bits of ports that differ
_D, _OPMODE = {"xc7": 25, "xcup": 27}, {"xc7": 7, "xcup": 9}
_WITH_D = {"xc7": {"USE_DPORT": "TRUE"}, "xcup": {"AMULTSEL": "AD"}}
_REGISTERED = ("AREG", "ACASCREG", "BREG", "BCASCREG", "DREG", "INMODEREG", "MREG", "PREG")
_DIRECT = ("ADREG", "ALUMODEREG", "CARRYINREG", "CARRYINSELREG", "CREG", "OPMODEREG")
_ENABLED = ("CEA1", "CEA2", "CEB1", "CEB2", "CED", "CEINMODE", "CEM", "CEP")
_RESET = ("RSTA", "RSTB", "RSTD", "RSTINMODE", "RSTM", "RSTP")
#: bits of inputs that are not used
_UNUSED = {"ACIN": 30, "ALUMODE": 4, "BCIN": 18, "CARRYCASCIN": 1, "CARRYIN": 1, "CARRYINSEL": 3, "MULTSIGNIN": 1,
           "PCIN": 48, "CEAD": 1, "CEALUMODE": 1, "CEC": 1, "CECARRYIN": 1, "CECTRL": 1, "RSTALLCARRYIN": 1,
           "RSTALUMODE": 1, "RSTC": 1, "RSTCTRL": 1}


def dsp48(family: str, *, a: Any, b: Any, opmode: Any, p: Signal, c: Any = None, d: Any = None,
          inmode: Any = A_ALONE) -> Instance:
    """An instance that multiplies signed numbers and adds the products up.

    Parameters
    ----------
    family: str
        ``xc7`` for a DSP48E1, ``xcup`` for a DSP48E2.
    a, b: signed values of at most 25 and 18 bits
    d: signed value of at most 25 bits, optional
        The other value for the multiplier.
    inmode:
        A_ALONE or D_ALONE: which of the two is multiplied.
    c: signed value of at most 48 bits, optional
    opmode:
        ADD_P or ADD_C: what the product is added to.
    p: Signal of at most 48 bits
        Gets the low bits of the sum.
    """
    beyond = Signal(48 - len(p), name="beyond")
    operands = {"A": (a, 30), "B": (b, 18), "C": (c, 48), "D": (d, _D[family])}
    return Instance(
        _NAMES[family],
        *(("p", name, 1) for name in _REGISTERED), *(("p", name, 0) for name in _DIRECT),
        *(("p", name, value) for name, value in _WITH_D[family].items() if d is not None),
        *(("i", port, Const(0, width) if value is None else sign_extended(value, width))
          for port, (value, width) in operands.items()),
        ("i", "INMODE", inmode), ("i", "OPMODE", Cat(opmode, Const(0, 2))[:_OPMODE[family]]),
        ("o", "P", Cat(p, beyond)),
        ("i", "CLK", ClockSignal()), *(("i", name, ResetSignal(allow_reset_less=True)) for name in _RESET),
        *(("i", name, Const(1, 1)) for name in _ENABLED), *(("i", name, Const(0, n)) for name, n in _UNUSED.items()))
