"""Random programs for a stack: commands right and wrong, for any pseudo-channels, with everything they take."""

import dataclasses

import numpy as np

from sim_models.golden.pim.stack.pim_stack import Command, Work
from sim_models.params.pim.stack.pim_stack import PimStackParams

__all__ = ["Maker"]

_ELEMENTWISE = ("copy", "relu", "add", "silu", "gelu", "softmax", "rmsnorm", "layernorm")


class Maker:
    """Draws programs.

    Parameters
    ----------
    p:
        The stack.
    gen:
        Source of randomness.
    used:
        Words of each bank that are filled and read.
    """

    def __init__(self, p: PimStackParams, gen: np.random.Generator, used: int = 12) -> None:
        self.p, self.gen, self.used = p, gen, used
        self.everybody = (1 << p.pseudo_channels) - 1

    def _int(self, low: int, high: int) -> int:
        return int(self.gen.integers(low, high + 1))

    def _flip(self) -> bool:
        return bool(self.gen.integers(2))

    def words(self, count: int) -> np.ndarray:
        """FP16 numbers of all sizes, a few of them infinite, uint16 (count, lanes); any int8 numbers."""
        codes = self.gen.integers(0, 1 << 16, (count, self.p.lanes)).astype(np.uint16)
        finite = (codes & 0x7C00) != 0x7C00
        rare = self.gen.random(codes.shape) < 0.002
        return np.where(finite | rare, codes, codes & 0x83FF | 0x3C00)

    def numbers(self, count: int) -> np.ndarray:
        """Float32 codes, uint32 (count,)."""
        return (self.gen.standard_normal(count) * 3).astype(np.float32).view(np.uint32)

    def fill(self) -> list[Work]:
        """Give every word that is used a value, one of its own in some banks of each pseudo-channel."""
        banks = [(g, b) for g in range(4) for b in range(4)]
        out = [self._write(self.everybody, *bank) for bank in banks]
        out += [self._write(1 << i, *banks[self._int(0, 15)]) for i in range(self.p.pseudo_channels)]
        return [*out, self.load()]

    def _write(self, mask: int, group: int, bank: int) -> Work:
        return Work(Command(op="write", mask=mask, group=group, bank=bank, count=self.used), self.words(self.used))

    def fill_all(self, count: int) -> list[Work]:
        """Give the first words of every bank a value, the same ones in all pseudo-channels; finite numbers."""
        words = self.gen.standard_normal((16, count, self.p.lanes)).astype(np.float16).view(np.uint16)
        return [Work(Command(op="write", mask=self.everybody, group=at // 4, bank=at % 4, count=count), words[at])
                for at in range(16)]

    def load(self) -> Work:
        """Fill the lower half of all buffers, or less."""
        count = min(16, self.p.buffer_words)
        deal = self._flip()
        return Work(Command(op="load", mask=self.everybody, count=count, deal=deal),
                    self.words(count * (self.p.pseudo_channels if deal else 1)))

    def program(self, steps: int) -> list[Work]:
        """A program that leaves nothing behind: every row ends, and its results go somewhere."""
        out = [self.load()]
        for _ in range(steps):
            kind = self._int(0, 5)
            if kind == 0:
                out += self._from_host()
            elif kind == 1:
                out.append(self.wrong())
            elif kind == 2 and self.p.fp16:
                out += self._through_sfu(cut=self._int(0, 3) == 0)
            else:
                out += self._row(to_sfu=False)
        return out

    def _row(self, *, to_sfu: bool) -> list[Work]:
        """Sums and READs that make one row."""
        p = self.p
        mask, int8 = self._int(1, self.everybody), p.int8 and not to_sfu and (not p.fp16 or self._flip())
        out: list[Work] = []
        pieces = self._int(1, 2)
        for piece in range(pieces):
            outputs, half = self._int(1, min(4, p.half)), self._int(0, 1)
            first = half * p.half + self._int(0, p.half - outputs)
            for again in range(self._int(1, 2)):
                out.append(self._mac(mask, outputs, first, int8, clear=not again))
            reduce = self._reduce(to_sfu or piece < pieces - 1)
            across, last = self._flip(), piece == pieces - 1
            beats = outputs * (4 if reduce == "none" else 1) * (1 if across else mask.bit_count())
            most = beats * (1 if reduce == "all" else 4)
            form = "int32" if int8 else "float32" if to_sfu or self._flip() else "fp16"
            out.append(Work(Command(
                op="read", mask=mask, first=first, outputs=outputs, reduce=reduce, across=across, last=last,
                int8=int8, values=self._int(1, most) if last else most, form=form, to_sfu=to_sfu)))
        return out

    def _reduce(self, full: bool) -> str:
        """Beats of ALL hold one number, which is too few within a row."""
        return ("none", "bank", "group", "all")[self._int(0, 2 if full else 3)]

    def _mac(self, mask: int, outputs: int, first: int, int8: bool, *, clear: bool) -> Work:
        spread = ("all", "bank", "group")[self._int(0, 2)]
        count = self._int(1, min(self.used // outputs, 16 if spread == "all" else 4))
        base = self._int(0, 16 - count) if spread == "all" else 4 * self._int(0, 4 - count)
        return Work(Command(op="mac", mask=mask, address=self._int(0, self.used - count * outputs), base=base,
                            count=count, outputs=outputs, first=first, spread=spread, clear=clear, int8=int8))

    def _through_sfu(self, *, cut: bool) -> list[Work]:
        """A row of sums through the special function unit, to the host or into buffers; a wrong READ may cut it."""
        operation = ("softmax", "relu", "silu")[self._int(0, 2)]
        to_buffers = self._flip()
        out = [Work(Command(op="sfu", operation=operation, scalar=float(self.gen.random() / 1000), fp16=to_buffers,
                            to_buffers=to_buffers)), *self._row(to_sfu=True)]
        if cut:
            out[-1] = Work(dataclasses.replace(out[-1].command, first=self.p.half - 1, outputs=2))
        if to_buffers:
            out.append(Work(Command(op="load", mask=self._int(1, self.everybody), base=0, count=self._int(1, 6),
                                    deal=self._flip(), from_sfu=True)))
        return out

    def _from_host(self) -> list[Work]:
        """A row of the host through the special function unit."""
        operation = _ELEMENTWISE[self._int(0, 7)]
        row = self.numbers(self._int(1, 21))
        affine = self._flip() and operation.endswith("norm")
        weight, bias = (self.numbers(len(row)) if affine or operation == "add" else None for _ in range(2))
        command = Command(op="sfu", operation=operation, scalar=float(self.gen.random()), affine=affine,
                          fp16=self._flip(), from_host=True)
        return [Work(command, row=row, weight=weight, bias=bias)]

    def wrong(self) -> Work:
        """A command that must be refused, with the words that it takes."""
        p, everybody = self.p, self.everybody
        commands = [
            Command(op="load", mask=everybody, count=0),
            Command(op="load", mask=0, count=3),
            Command(op="load", mask=0, count=3, deal=True),
            Command(op="load", mask=everybody, base=p.buffer_words - 1, count=2, deal=True),
            Command(op="write", mask=1, address=p.words - 2, count=3),
            Command(op="mac", mask=everybody, count=1, outputs=0),
            Command(op="mac", mask=everybody, count=1, outputs=1, base=2, spread="group", int8=not p.fp16),
            Command(op="mac", mask=everybody, count=p.words, outputs=2, int8=not p.fp16),
            Command(op="mac", mask=0, count=1, outputs=1, int8=not p.fp16),
            Command(op="mac", mask=everybody, count=1, outputs=1, spread="invalid", int8=not p.fp16),
            Command(op="read", mask=everybody, first=p.half - 1, outputs=2, values=8, last=True, int8=not p.fp16,
                    form="float32" if p.fp16 else "int32"),
            Command(op="read", mask=everybody, outputs=1, values=4, last=True, int8=False, form="int32"),
            Command(op="read", mask=everybody, outputs=1, values=4, last=True, int8=True, form="fp16"),
            Command(op="read", mask=0, outputs=1, values=4, last=True, int8=not p.fp16,
                    form="float32" if p.fp16 else "int32"),
        ]
        c = commands[self._int(0, len(commands) - 1)]
        count = c.count * (c.mask.bit_count() if c.deal else 1) if c.op in ("load", "write") else 0
        return Work(dataclasses.replace(c), self.words(count) if count else None)
