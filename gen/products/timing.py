"""Timing drawings as plain text: what a port does, cycle by cycle."""

from collections.abc import Sequence

from gen.products.interface import Member

__all__ = ["answer", "axi_lite", "pipeline", "stream"]

#: characters of a cycle
_CYCLE = 4
#: a cycle of the clock
_CLOCK = "/~\\_"
#: a level (0 or 1) of a wire in each cycle, or the value of a bus (None: of no meaning)
_Row = tuple[str, Sequence[int] | Sequence[str | None]]


def stream(name: str) -> str:
    """Three beats, two of which wait for ready."""
    return _drawing([
        (f"{name}__payload", [None, "A", "A", "B", "C", "C", None]),
        (f"{name}__valid", [0, 1, 1, 1, 1, 1, 0]),
        (f"{name}__ready", [0, 0, 1, 1, 0, 1, 0]),
        ("taken", [None, None, "A", "B", None, "C", None]),
    ])


def pipeline(stages: int, members: Sequence[Member]) -> str:
    """Two sets of operands on their way through ``stages`` registers that hold once."""
    length = stages + 5
    enable = [int(cycle != 2) for cycle in range(length)]
    operands = ["A", "B", *[None] * (length - 2)]
    chain: list[str | None] = [None] * stages
    results = []
    for on, operand in zip(enable, operands, strict=True):
        results.append(chain[-1])
        if on:
            chain = [operand, *chain[:-1]]
    data = {"input": operands, "output": results}
    rows: list[_Row] = [("enable", enable)]
    for member in members:
        values = data[member.direction]
        if member.name in ("i_valid", "o_valid"):
            rows.append((member.name, [int(value is not None) for value in values]))
        elif member.name != "enable":
            rows.append((member.name, values))
    return _drawing(rows)


def answer(question: str, reply: str, cycles: int) -> str:
    """Two values in a row, and what follows from them so many cycles later."""
    length = cycles + 4
    asked = [None, "A", "B", *[None] * (length - 3)]
    return _drawing([(question, asked), (reply, [*[None] * cycles, *asked][:length])])


def axi_lite(prefix: str) -> str:
    """A write and a read, each with a cycle in which its answer waits."""
    offered, taken = [0, 1, 0, 0, 0, 0], [1, 1, 0, 1, 1, 1]
    wait, late = [0, 0, 0, 1, 1, 0], [0, 0, 0, 0, 1, 0]
    value = [None, "A", None, None, None, None]
    reply = [None, None, None, "R", "R", None]
    write: list[_Row] = [("awaddr", value), ("awvalid", offered), ("awready", taken), ("wdata", value),
                         ("wvalid", offered), ("wready", taken), ("bresp", reply), ("bvalid", wait), ("bready", late)]
    read: list[_Row] = [("araddr", value), ("arvalid", offered), ("arready", taken), ("rdata", reply),
                        ("rvalid", wait), ("rready", late)]
    return "\n".join(_drawing([(f"{prefix}{name}", row) for name, row in rows]) for rows in (write, read))


def _drawing(rows: Sequence[_Row]) -> str:
    width = max(len(name) for name, _ in rows)
    length = len(rows[0][1])
    head = "".join(f"{cycle:<{_CYCLE}}" for cycle in range(length))
    lines = [f"{'cycle':{width}}  {head}", f"{'clk':{width}}  {_CLOCK * length}"]
    lines += [f"{name:{width}}  {_wave(row)}" for name, row in rows]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _wave(row: Sequence[int] | Sequence[str | None]) -> str:
    text, before = "", None
    for value in row:
        if isinstance(value, int):
            level = "~" if value else "_"
            edge = level if before in (None, value) else "/" if value else "\\"
            text += edge + level * (_CYCLE - 1)
        elif value is None:
            text += "-" * _CYCLE
        else:
            text += "=" * _CYCLE if value == before else f"[{value}".ljust(_CYCLE, "=")
        before = value
    return text
