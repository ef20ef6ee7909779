"""The Manager's registers on AXI4-Lite::

    s_axil --> AXI4-Lite slave --> words of `registers` --> settings
                                          ^ '-- acknowledged? --> irq
                                          '--- counters, status

Bytes without a strobe keep their value, bits without a field are 0. A write is answered with SLVERR and changes
nothing where there is no writable register, where it sets a bit without a field, and where it leaves a value that is
not among those of its field; so is a read where there is no register. After reset the settings are those of the
table: SADDLE in full.

The interrupt is level-sensitive and loses nothing: if enabled, it is high while ``count_completed`` is not what was
written to ``acknowledge``, or ``count_illegal`` not what was written to ``acknowledge_errors``. Read the counter,
serve the requests that are complete, write back what was read.

Latency and throughput: as of ``axi_lite``; settings change with the answer to a write, ``irq`` 1 cycle later.
"""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.bus.axi_lite import AxiLite, AxiLiteSignature
from rtl.bus.registers import Field, Register
from rtl.manager.layouts import manager_counters, manager_settings
from rtl.manager.registers import registers
from rtl.unit import Unit
from sim_models.params.bus.axi_lite import AxiLiteParams
from sim_models.params.manager.manager_registers import ManagerRegistersParams
from sim_models.spec.manager import Place

__all__ = ["ManagerRegisters"]


class ManagerRegisters(Unit):
    """Register file.

    Members
    -------
    s_axil: In(AxiLiteSignature)
        Bus of the registers, 8 bits of address.
    settings: Out(manager_settings)
        The Manager's settings.
    counters: In(manager_counters)
        The Manager's counters.
    busy: In(1)
        The Manager decides something.
    dlm_fc: In(Place)
        Where the draft's FC layers run.
    tlm_attention: In(Place)
        Where the target's attention runs.
    irq: Out(1)
        Interrupt, level-sensitive: high while completed requests are not acknowledged.
    """

    block = "manager_registers"

    s_axil: Any
    settings: Any
    counters: Any
    busy: Signal
    dlm_fc: Any
    tlm_attention: Any
    irq: Signal

    def __init__(self, params: ManagerRegistersParams | None = None) -> None:
        p = params or ManagerRegistersParams()
        self.p = p
        super().__init__(p, {
            "s_axil": In(AxiLiteSignature(AxiLiteParams().address_width)), "settings": Out(manager_settings(p)),
            "counters": In(manager_counters()), "busy": In(1), "dlm_fc": In(Place), "tlm_attention": In(Place),
            "irq": Out(1),
        })

    def register_table(self) -> tuple[Register, ...]:
        return registers(self.p)

    def body(self, platform: Any) -> Module:
        m = Module()
        m.submodules.bus = bus = AxiLite()
        connect(m, flipped(self.s_axil), bus.s_axil)
        table = self.register_table()
        words = {field.name: Signal(field.width, init=field.reset, name=field.name)
                 for register in table if register.writable for field in register.fields}
        m.d.comb += [self.settings[str(name)].eq(words[str(name)]) for name, _ in manager_settings(self.p)]
        complete = self.counters.completed != words["acknowledged"]
        wrong, error = self.counters.illegal != words["errors_acknowledged"], Signal()
        m.d.sync += [self.irq.eq((words["interrupt"] & complete) | (words["error_interrupt"] & wrong)),
                     error.eq(wrong)]
        shown = words | {name: getattr(self, name) for name in ("busy", "dlm_fc", "tlm_attention")} | {"error": error}
        with m.Switch(bus.write_address):
            for register in table:
                if register.writable:
                    with m.Case(register.address // 4):
                        self._write(m, register, words, bus)
        with m.Switch(bus.read_address):
            for register in table:
                with m.Case(register.address // 4):
                    m.d.comb += [bus.read_good.eq(1), bus.read_data.eq(self._word(register, shown))]
        return m

    def _write(self, m: Module, register: Register, words: dict[str, Signal], bus: AxiLite) -> None:
        """Write a register, unless a value would not be among those of its field."""
        strobes = Cat(bit.replicate(8) for bit in bus.write_strobe)
        new, good = {}, []
        for field in register.fields:
            bits, value = slice(field.low, field.low + field.width), words[field.name]
            new[field.name] = wanted = Signal(field.width, name=f"new_{field.name}")
            m.d.comb += wanted.eq((bus.write_data[bits] & strobes[bits]) | (value & ~strobes[bits]))
            if field.highest is not None:
                good.append(wanted < field.highest + 1)
            if field.lowest:
                good.append(wanted >= field.lowest)
            if field.not_below:
                good.append(wanted >= new[field.not_below])
        named = sum(((1 << field.width) - 1) << field.low for field in register.fields)
        good.append((bus.write_data & strobes & ~named) == 0)
        m.d.comb += bus.write_good.eq(Cat(good).all())
        with m.If(bus.write & bus.write_good):
            m.d.sync += [words[name].eq(value) for name, value in new.items()]

    def _word(self, register: Register, shown: dict[str, Any]) -> Any:
        """What reading a register gives."""
        parts, at = [], 0
        for field in register.fields:
            parts += [Const(0, field.low - at), self._value(register, field, shown)]
            at = field.low + field.width
        return Cat(*parts)

    def _value(self, register: Register, field: Field, shown: dict[str, Any]) -> Any:
        if register.name == "sizes":
            return Const(field.reset, field.width)
        of_counter = not register.writable and register.name != "status"
        return self.counters[field.name] if of_counter else shown[field.name]
