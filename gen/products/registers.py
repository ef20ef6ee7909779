"""A block's registers as SystemRDL, C header and Markdown, all from its table (:mod:`rtl.bus.registers`)."""

from collections.abc import Sequence

from rtl.bus.registers import Field, Register

__all__ = ["c_header", "described", "markdown", "system_rdl"]


def described(field: Field) -> str:
    """What a field means, and which values it can have where those are not all."""
    return f"{field.text} ({field.values})" if field.values else field.text


def system_rdl(table: Sequence[Register], name: str) -> str:
    """SystemRDL 2.0."""
    lines = [f"addrmap {name} {{", "    default regwidth = 32;", "    default accesswidth = 32;"]
    for r in table:
        lines += ["    reg {", f'        desc = "{r.text}";']
        access = "sw = rw; hw = r;" if r.writable else "sw = r; hw = w;"
        for f in r.fields:
            reset = f" = {f.width}'h{f.reset:x}" if r.writable else ""
            # a field may not have the name of a word of the language
            lines.append(f'        field {{ desc = "{described(f)}"; {access} }} \\{f.name}'
                         f"[{f.low + f.width - 1}:{f.low}]{reset};")
        lines.append(f"    }} \\{r.name} @ 0x{r.address:02x};")
    return "\n".join([*lines, "};\n"])


def c_header(table: Sequence[Register], name: str) -> str:
    """Byte offsets of the registers; shift, mask (in place) and reset value of their fields."""
    prefix = name.upper()
    lines = [f"/* Registers of {name}; made by Speculoos. */", f"#ifndef {prefix}_H", f"#define {prefix}_H", ""]
    for r in table:
        register = f"{prefix}_{r.name.upper()}"
        lines += [f"/* {r.text}; {'read and write' if r.writable else 'read only'} */",
                  f"#define {register} 0x{r.address:02x}u"]
        for f in r.fields:
            field = f"{register}_{f.name.upper()}"
            mask = ((1 << f.width) - 1) << f.low
            lines += [f"#define {field}_SHIFT {f.low} /* {described(f)} */", f"#define {field}_MASK 0x{mask:08x}u"]
            if r.writable:
                lines.append(f"#define {field}_RESET 0x{f.reset:x}u")
        lines.append("")
    return "\n".join([*lines, "#endif\n"])


def markdown(table: Sequence[Register]) -> str:
    """A section with a table that has a line for each field."""
    lines = ["## Registers", "",
             "Words of 32 bits on AXI4-Lite; bits that are not named read 0. A write that sets such a bit, or leaves",
             "a value that its field cannot have, is answered with SLVERR and changes nothing.", "",
             "| address | register | bits | field | access | reset | meaning |", "|---|---|---|---|---|---|---|"]
    for r in table:
        for f in r.fields:
            bits = str(f.low) if f.width == 1 else f"{f.low + f.width - 1}:{f.low}"
            access, reset = ("rw", f"0x{f.reset:x}") if r.writable else ("r", "")
            lines.append(f"| 0x{r.address:02x} | {r.name} | {bits} | {f.name} | {access} | {reset} | "
                         f"{described(f)} |")
    return "\n".join(lines) + "\n"
