"""The instantiation template of a design, in Verilog-2005."""

from gen.emit.emit import Design
from gen.products.interface import Member, interface, leaves

__all__ = ["template"]


def template(design: Design) -> str:
    """Declarations of a wire for each port, and an instance that is connected to them."""
    ports, members = design.ports[design.top], {m.port: m for m in interface(design)}
    lines = [f"// Instance of {design.top}, to be pasted; made by Speculoos. See {design.top}.md."]
    width = max((len(_range(port.width)) for port in ports), default=0)
    for port in ports:
        member = members.get(port.name)
        if member:
            lines += ["", *_describe(member)]
        lines.append(f"wire {'signed ' * port.signed}{_range(port.width):{width}} {port.name};  // {port.direction}")
    pins = ",\n".join(f"  .{port.name}({port.name})" for port in ports)
    return "\n".join([*lines, "", f"{design.top} {design.top}_inst (", pins, ");", ""])


def _describe(member: Member) -> list[str]:
    lines = [f"// {'stream ' * member.stream}{member.name}: {member.meaning}".rstrip(": ")]
    return lines + [f"//   {bits(leaf.low, leaf.width)} {leaf.path}" for leaf in leaves(member.shape)]


def bits(low: int, width: int) -> str:
    """Bit positions as Verilog writes them."""
    return f"[{low + width - 1}:{low}]" if width > 1 else f"[{low}]"


def _range(width: int) -> str:
    return f"[{width - 1}:0]" if width > 1 else ""
