"""Timing constraints of a design: the clocks, and the false paths of the resets.

The clock frequency is what the tool is asked for, not what was reached.
"""

from gen.config.schema import CLOCK_MHZ
from gen.emit.emit import Design
from gen.errors import UserError

__all__ = ["constraint_files"]

_RESET = ("A reset reaches its registers within a cycle or not: hold it for several, and offer nothing to a stream "
          "in the first cycle after it.")


def constraint_files(design: Design, clock_mhz: float = CLOCK_MHZ) -> dict[str, str]:
    """Constraint files for Vivado, Quartus and nextpnr, by file name.

    Raises
    ------
    UserError
        The frequency is not above 0, or is above 10 GHz.
    """
    if not 0 < clock_mhz <= 10_000:
        raise UserError(f"a clock has more than 0 and at most 10000 MHz, not {clock_mhz:g}")
    top, ports = design.top, design.ports[design.top]
    clocks = [port.name for port in ports if port.role == "clock"]
    resets = [port.name for port in ports if port.role == "reset"]
    sdc = "".join(f"create_clock -name {c} -period {1000 / clock_mhz:.3f} [get_ports {{{c}}}]\n" for c in clocks)
    false = "".join(f"set_false_path -from [get_ports {{{r}}}]\n" for r in resets)
    note = f"# {_RESET}\n" if resets else ""
    groups = "".join(f" -group [get_clocks {c}]" for c in clocks)
    apart = f"set_clock_groups -asynchronous{groups}\n" if len(clocks) > 1 else ""
    head = f"{top} at {clock_mhz:g} MHz; made by Speculoos"
    return {
        f"{top}.xdc": f"# Constraints for Vivado: {head}.\n{sdc}{apart}{note}{false}",
        f"{top}.sdc": f"# Constraints for Quartus: {head}.\n{sdc}{apart}"
                      + ("derive_clock_uncertainty\n" if clocks else "") + f"{note}{false}",
        f"{top}.lpf": f"# Constraints for nextpnr-ecp5 (--lpf): {head}.\n"
                      + "".join(f'FREQUENCY PORT "{c}" {clock_mhz:g} MHZ;\n' for c in clocks)
                      + "# There are no false paths here: a reset is timed as any other input is.\n" * bool(resets),
        f"{top}.pcf": f"# Constraints for nextpnr-ice40 (--pcf): {head}.\n"
                      + "".join(f"set_frequency {c} {clock_mhz:g}\n" for c in clocks),
    }
