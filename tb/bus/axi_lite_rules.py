"""The rules of AXI4-Lite on a slave of this project, checked in every cycle.

Each channel is a stream, with the rules of :mod:`tb.common.rules`: what is offered stands until it is taken, valid
does not depend on ready, nothing is offered in reset and right after it. Beyond that (AMBA AXI4, A3.3 and B1.1):

- an answer to a write comes behind the handshakes of its address and of its data, one to a read behind its
  address, and there are as many answers as accesses;
- no output follows an input within the cycle (A3.1.1);
- one access waits behind an answer that is not taken, and no more (a choice of this slave);
- answers are OKAY or SLVERR, and SLVERR comes with data of 0 (this slave's choice too);
- ready is low in reset, from its second cycle on, and in the cycle after it.
"""

from typing import Any

from cocotb.triggers import FallingEdge, Timer

from sim_models.golden.bus.axi_lite import OKAY, SLVERR
from tb.bus.axi_lite_master import INPUTS
from tb.common.rules import RuleViolation, StreamRules

__all__ = ["AxiLiteRules"]

#: channel to its payload, and whether the slave offers it
_CHANNELS = {"aw": (("awaddr", "awprot"), False), "w": (("wdata", "wstrb"), False), "b": (("bresp",), True),
             "ar": (("araddr", "arprot"), False), "r": (("rdata", "rresp"), True)}


class AxiLiteRules:
    """Watches a slave; give it to the engine's agents.

    Parameters
    ----------
    dut:
        The slave, with ports ``s_axil_*``.

    Members
    -------
    taken: dict[str, int]
        Transfers of each channel since the last reset.
    """

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        self.rules = {name: StreamRules(f"s_axil_{name}") for name in _CHANNELS}
        self.cycle = 0
        self._was_reset = False
        self.flush()

    def flush(self) -> None:
        """A reset begins: nothing is owed any more."""
        self.taken = dict.fromkeys(_CHANNELS, 0)

    def update(self, in_reset: bool) -> None:
        """Check what an edge samples."""
        self.cycle += 1
        moved = {name: self._channel(name, in_reset) for name in _CHANNELS}
        was_reset, self._was_reset = self._was_reset, in_reset
        if was_reset:
            self._must(not any(self._pin(f"{n}ready") for n in ("aw", "w", "ar")), "ready is high in or behind reset")
        if in_reset:
            self.flush()
            return
        # an answer of this cycle is to an access of an earlier one
        for answer, halves in (("b", ("aw", "w")), ("r", ("ar",))):
            whole = min(self.taken[name] for name in halves)
            self._must(not self._pin(f"{answer}valid") or self.taken[answer] < whole,
                       f"{answer} answers what nobody asked")
            self._must(all(self.taken[name] - self.taken[answer] <= 2 for name in halves),
                       f"an answer on {answer} is missing")
        for name in _CHANNELS:
            self.taken[name] += moved[name]
        for name in ("b", "r"):
            if self._pin(f"{name}valid"):
                self._must(self._pin(f"{name}resp") in (OKAY, SLVERR), f"{name}resp is neither OKAY nor SLVERR")
        if self._pin("rvalid") and self._pin("rresp") == SLVERR:
            self._must(self._pin("rdata") == 0, "data come with an error")

    async def probe(self) -> None:
        """Turn every input round in the middle of every cycle: no output of the bus must follow. Never ends."""
        fall, settle = FallingEdge(self.dut.clk), Timer(1, "ns")
        inputs = [getattr(self.dut, name) for name in ("rst", *(f"s_axil_{name}" for name in INPUTS))]
        outputs = [f"s_axil_{name}" for name in ("awready", "wready", "bvalid", "bresp", "arready", "rvalid", "rresp",
                                                 "rdata")]
        while True:
            await fall
            shown = [int(pin.value) for pin in inputs]
            before = {name: int(getattr(self.dut, name).value) for name in outputs}
            for pin, value in zip(inputs, shown, strict=True):
                pin.value = value ^ ((1 << len(pin)) - 1)
            await settle
            after = {name: int(getattr(self.dut, name).value) for name in outputs}
            for pin, value in zip(inputs, shown, strict=True):
                pin.value = value
            await settle
            for name, value in before.items():
                self._must(after[name] == value, f"{name} follows an input within the cycle")

    def _channel(self, name: str, in_reset: bool) -> bool:
        valid, payload = self._state(name)
        offers = _CHANNELS[name][1]
        # a master may offer whatever it likes while the slave is in reset
        if not offers and in_reset:
            self.rules[name] = StreamRules(f"s_axil_{name}")
            return False
        return self.rules[name].step(self.cycle, valid, self._pin(f"{name}ready"), payload, in_reset)

    def _state(self, name: str) -> tuple[int, int]:
        payload = 0
        for member in _CHANNELS[name][0]:
            pin = getattr(self.dut, f"s_axil_{member}")
            payload = payload << len(pin) | int(pin.value)
        return self._pin(f"{name}valid"), payload

    def _pin(self, name: str) -> int:
        return int(getattr(self.dut, f"s_axil_{name}").value)

    def _must(self, held: bool, text: str) -> None:
        if not held:
            raise RuleViolation(f"s_axil, cycle {self.cycle}: {text}")
