"""What the pipelines of this folder have in common: ports, and registers where they are wanted.

A pipeline takes operands in every cycle with ``enable`` and delivers each result ``stages`` such cycles later.
``i_valid`` travels along and comes out as ``o_valid``; nothing else depends on it. Without ``enable`` everything
holds, so a parent stops a whole lane at once; or it leaves ``enable`` alone (it is 1 then) and catches results
in a queue of ``stages`` words. There is no other back-pressure.
"""

from types import SimpleNamespace
from typing import Any

from amaranth.hdl import Module, Signal, Value
from amaranth.lib.wiring import In, Out

__all__ = ["Pipeline", "delay", "pipeline_ports", "wire"]


def pipeline_ports(operands: dict[str, Any], results: dict[str, Any]) -> dict[str, Any]:
    """Members of a pipeline's signature: the shapes of its operands and results, and what moves them.

    Members
    -------
    enable: In(1)
        High: everything moves on by a stage. Low: everything holds.
    i_valid: In(1)
        There are operands in this cycle.
    o_valid: Out(1)
        There is a result in this cycle: ``i_valid`` of ``stages`` cycles with ``enable`` before.
    """
    held: Any = In(1, init=1)                            # pyright: ignore[reportCallIssue]
    return {"enable": held, "i_valid": In(1), **{name: In(shape) for name, shape in operands.items()},
            "o_valid": Out(1), **{name: Out(shape) for name, shape in results.items()}}


def wire(m: Module, value: Any, name: str) -> Signal:
    """A named signal for a value that is used more than once; an expression would be copied for each use."""
    signal = Signal(Value.cast(value).shape(), name=name)
    m.d.comb += signal.eq(value)
    return signal


def delay(m: Module, value: Any, cycles: int, name: str, *, valid: bool = False, enable: Any = None) -> Value:
    """A value as it was some cycles ago, or cycles with ``enable``; a reset clears it only if it is a valid bit."""
    value = Value.cast(value)
    for n in range(cycles):
        later = Signal(value.shape(), name=f"{name}_{n + 1}", reset_less=not valid)
        if enable is None:
            m.d.sync += later.eq(value)
        else:
            with m.If(enable):
                m.d.sync += later.eq(value)
        value = later
    return value


class Pipeline:
    """Registers of a block at its cuts.

    Parameters
    ----------
    m:
        The block's module.
    unit:
        The block, with ``enable``, ``i_valid`` and ``o_valid``.
    cuts:
        Calls of :meth:`cut` that will come.
    stages:
        How many of them are registers; the last one always is.
    """

    def __init__(self, m: Module, unit: Any, cuts: int, stages: int) -> None:
        self._m, self._unit, self._cuts, self._stages = m, unit, cuts, stages
        self._done = 0
        self._valid: Value = unit.i_valid

    def cut(self, **values: Any) -> SimpleNamespace:
        """The values beyond a cut, under the same names; registers if one of the stages falls here."""
        before, self._done = self._done, self._done + 1
        assert self._done <= self._cuts
        m = self._m
        registered = self._done * self._stages // self._cuts > before * self._stages // self._cuts
        beyond = {name: Signal(Value.cast(value).shape(), name=f"{name}_{self._done}", reset_less=registered)
                  for name, value in values.items()}
        moves = [beyond[name].eq(value) for name, value in values.items()]
        if registered:
            valid = Signal(name=f"valid_{self._done}")
            with m.If(self._unit.enable):
                m.d.sync += [*moves, valid.eq(self._valid)]
            self._valid = valid
        else:
            m.d.comb += moves
        if self._done == self._cuts:
            m.d.comb += self._unit.o_valid.eq(self._valid)
        return SimpleNamespace(**beyond)
