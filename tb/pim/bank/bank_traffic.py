"""Commands for a DRAM bank: random ones, mostly legal, and the sequences at whose end each rule is just kept."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from rtl.pim.bank.layouts import dram_column, dram_row
from sim_models.golden.pim.bank.dram_bank import COLUMN_OPS, ERRORS, ROW_OPS, BankInputs, DramBank
from sim_models.params.pim.bank.dram_bank import DramBankParams
from tb.common.packing import Codec

__all__ = ["OUTPUTS", "BankCodecs", "expected", "limits", "packed", "random_inputs",
           "timed"]

#: outputs that are compared in each cycle; ``read_data`` only where the model knows it
OUTPUTS = ("read_valid", "read_data", "error", "errors", "hits", "misses")


class BankCodecs:
    """Packs inputs for the ports of a bank."""

    def __init__(self, p: DramBankParams) -> None:
        self.p = p
        self.row, self.column = Codec(dram_row(p)), Codec(dram_column(p))

    def ports(self, inputs: Sequence[BankInputs]) -> dict[str, np.ndarray]:
        """Rows of bytes for each port, a row a cycle."""
        blank = np.zeros(self.p.lanes, np.uint16)
        words = np.array([blank if i.word is None else i.word for i in inputs], "<u2")
        return {
            "row": self.row.pack(op=[ROW_OPS.index(i.row_op) for i in inputs], row=[i.row for i in inputs]),
            "column": self.column.pack(op=[COLUMN_OPS.index(i.column_op) for i in inputs],
                                       row=[i.column_row for i in inputs], column=[i.column for i in inputs]),
            "write_data": np.ascontiguousarray(words).view(np.uint8).reshape(len(inputs), -1),
        }


def expected(model: DramBank, i: BankInputs) -> tuple[int | None, ...]:
    """The outputs of the cycle with these inputs, None where they mean nothing, and a step of the model."""
    word = model.read_data
    seen = (int(model.read_valid), None if word is None else int.from_bytes(word.astype("<u2").tobytes(), "little"),
            ERRORS.index(model.error), model.errors, model.hits, model.misses)
    model.step(i)
    return seen


def random_inputs(models: Sequence[DramBank], gen: np.random.Generator, count: int,
                  honesty: float) -> Iterator[BankInputs]:
    """Random commands; one that breaks a rule in some bank is sent with probability ``1 - honesty``.

    The caller steps the models with each of them before it asks for the next one.
    """
    p = models[0].p
    # few words, so that one that is read was written
    places, columns = sorted({0, 1, 2, p.rows - 1}), (0, p.columns - 1)
    work, rows = True, gen.choice(places, 3)
    for number in range(count):
        if number % 40 == 39:
            # a while of work, or of closing rows and refreshing
            work, rows = gen.random() < 0.9, gen.choice(places, 3)
        i = BankInputs(
            row_op=str(gen.choice(ROW_OPS, p=(0.35, 0.45, 0.2, 0) if work else (0.3, 0, 0.4, 0.3))),
            row=int(gen.choice(rows)), column_op=str(gen.choice(COLUMN_OPS, p=(0.4, 0.3, 0.3))),
            column_row=int(gen.choice(rows)), column=int(gen.choice(columns)),
            word=gen.integers(0, 1 << 16, p.lanes).astype(np.uint16))
        if any(model.fault(i)[1] != "none" for model in models) and gen.random() < honesty:
            i = dataclasses.replace(i, column_op="none")
        if any(model.fault(i)[0] != "none" for model in models) and gen.random() < honesty:
            i = dataclasses.replace(i, row_op="none")
        yield i


def timed(commands: dict[int, BankInputs], cycles: int) -> list[BankInputs]:
    """Commands by cycle, nothing in between."""
    return [commands.get(t, BankInputs()) for t in range(cycles)]


def limits(p: DramBankParams) -> dict[str, tuple[dict[int, BankInputs], BankInputs, int]]:
    """For each timing rule: what comes before, the command that it is about, and the first cycle that it allows."""
    word = np.arange(1, p.lanes + 1, dtype=np.uint16)

    def act(row: int = 0) -> BankInputs:
        return BankInputs(row_op="activate", row=row)

    def access(op: str) -> BankInputs:
        return BankInputs(column_op=op, word=word)
    close, refresh = BankInputs(row_op="precharge"), BankInputs(row_op="refresh")
    late = max(p.ras, p.rcd)
    found: dict[str, tuple[dict[int, BankInputs], BankInputs, int]] = {
        "rcd": ({0: act()}, access("write"), p.rcd),
        "ras": ({0: act()}, close, p.ras),
        "rp": ({0: act(), p.ras: close}, act(), p.ras + p.rp),
        "rp before refresh": ({0: act(), p.ras: close}, refresh, p.ras + p.rp),
        "rtp": ({0: act(), late: access("read")}, close, late + p.rtp),
        "wr": ({0: act(), late: access("write")}, close, late + p.wr),
        "wtr": ({0: act(), p.rcd: access("write")}, access("read"), p.rcd + p.wtr),
        "rfc": ({0: refresh}, act(), p.rfc),
        "rfc before refresh": ({0: refresh}, refresh, p.rfc),
    }
    if p.ccd > 1:       # of two commands in one cycle there is but one
        found["ccd"] = ({0: act(), p.rcd: access("write")}, access("write"), p.rcd + p.ccd)
    return found


def packed(value: Any) -> int:
    """Bytes of a row as a port's value."""
    return int.from_bytes(bytes(value), "little")
