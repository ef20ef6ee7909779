"""What a PIM stack computes, command by command: exact sums, rounded once; see `rtl/pim/stack/pim_stack.py`."""

import dataclasses
from collections import deque
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim_models.golden.pim.channel.channel_commands import Command as ChannelCommand
from sim_models.golden.pim.channel.channel_commands import status as channel_status
from sim_models.golden.sfu.buffer_die_sfu import rows
from sim_models.numerics.exact_sums import Sums, dot, rounded, zeros
from sim_models.numerics.float32 import bits
from sim_models.params.pim.stack.pim_stack import PimStackParams
from sim_models.spec.sfu import SfuError, SfuOp
from sim_models.spec.stack import StackStatus

__all__ = ["STATUSES", "Command", "Outcome", "PimStack", "Response", "Work", "status", "words_of"]


#: of responses, by their numbers
STATUSES = tuple(code.name.lower() for code in StackStatus)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Command:
    """A command to the stack: what ``rtl.pim.stack.layouts.stack_command`` has in its parts, side by side.

    ``op`` is load, write, mac, read or sfu; ``mask`` has a bit for each pseudo-channel that takes part.
    """

    op: str
    mask: int = 0
    # load (a word of the global buffer) and write (a word of the bank): words for each pseudo-channel
    address: int = 0
    count: int = 0
    group: int = 0
    bank: int = 0
    #: load: the words are dealt out, one to each pseudo-channel in turn, instead of going to all of them
    deal: bool = False
    #: load: the words are the SFU's results, and zeros behind them
    from_sfu: bool = False
    # mac: `outputs` sums, `first` and those behind it, of `count` words each
    base: int = 0
    outputs: int = 0
    first: int = 0
    spread: str = "all"
    clear: bool = False
    int8: bool = False
    # read
    reduce: str = "none"
    #: sums over the pseudo-channels
    across: bool = False
    #: results that count; those behind them are dropped
    values: int = 0
    #: the row of results ends here
    last: bool = False
    form: str = "float32"
    to_sfu: bool = False
    # sfu
    operation: str = "softmax"
    #: float32 factor of softmax, epsilon of norms
    scalar: float = 0.0
    affine: bool = False
    fp16: bool = False
    #: the row comes from the host; else it is what READs with `to_sfu` give
    from_host: bool = False
    #: the results are for LOADs with `from_sfu`; else they go to the host
    to_buffers: bool = False


@dataclasses.dataclass(frozen=True)
class Work:
    """A command, and what it takes from the host.

    Members
    -------
    command: Command
    words: uint16 [words, lanes]
        Of a LOAD or WRITE.
    row, weight, bias: float32 codes, uint32 [length]
        A row for the special function unit, and its operands.
    """

    command: Command
    words: NDArray[np.uint16] | None = None
    row: NDArray[np.uint32] | None = None
    weight: NDArray[np.uint32] | None = None
    bias: NDArray[np.uint32] | None = None


@dataclasses.dataclass(frozen=True)
class Response:
    """A response, field by field as in ``rtl.pim.stack.layouts.stack_response``."""

    status: str
    cycles: int
    hits: int
    misses: int


@dataclasses.dataclass
class Outcome:
    """Rows that go to the host: codes, uint32 [length].

    Members
    -------
    results: list of arrays
        Of READs.
    rows: list of arrays
        Of the special function unit.
    row_beats: int
        Beats of these rows; one that is cut off ends in an empty one.
    errors: list of SfuError
        What its responses say.
    """

    results: list[NDArray[np.uint32]] = dataclasses.field(default_factory=list)
    rows: list[NDArray[np.uint32]] = dataclasses.field(default_factory=list)
    row_beats: int = 0
    errors: list[SfuError] = dataclasses.field(default_factory=list)


def words_of(numbers: NDArray[Any]) -> NDArray[np.uint16]:
    """Words of float16 or int8 numbers along the last axis: uint16 lanes, two int8 numbers each."""
    return np.ascontiguousarray(numbers).view(np.uint16)


def status(p: PimStackParams, c: Command) -> str:
    """What the response to a command says."""
    if c.op == "sfu":
        return "ok"
    inner = ChannelCommand(**{f.name: getattr(c, f.name) for f in dataclasses.fields(ChannelCommand)})
    found = channel_status(p, inner)
    if found != "count" and c.op == "read" and c.int8 != (c.form == "int32"):
        return "format"
    return "channels" if found == "ok" and not c.mask else found


class PimStack:
    """State of a stack: banks, global buffers and accumulators.

    Parameters
    ----------
    p:
        Its parameters.
    poison:
        Word that stands wherever nothing was written; it must not matter.
    """

    def __init__(self, p: PimStackParams, poison: int = 0x7E01) -> None:
        self.p = p
        channels = p.pseudo_channels
        self.banks = np.full((channels, 4, 4, p.words, p.lanes), poison, np.uint16)
        self.buffers = np.full((channels, p.buffer_words, p.lanes), poison, np.uint16)
        #: of each pseudo-channel: [group, bank, accumulator]
        self.sums = [zeros((4, 4, p.accumulators)) for _ in range(channels)]
        self._row = np.zeros(0, np.uint32)
        self._commands: deque[Work] = deque()
        self._packed_rows: deque[NDArray[np.uint16]] = deque()

    def run(self, work: Iterable[Work]) -> Outcome:
        """Carry out commands; rows that are not complete go on with the next call."""
        outcome = Outcome()
        for one in work:
            c = one.command
            if status(self.p, c) == "ok":
                getattr(self, f"_{c.op}")(one, outcome)
            elif c.op == "read" and c.last:
                self._end(c, outcome, whole=False)
        return outcome

    def reset(self) -> None:
        """What a reset does: rows under way are gone; banks and buffers stay as they are, sums have no value."""
        self._row = np.zeros(0, np.uint32)
        self._commands.clear()
        self._packed_rows.clear()

    def _channels(self, command: Command) -> list[int]:
        return [i for i in range(self.p.pseudo_channels) if command.mask >> i & 1]

    def _load(self, one: Work, outcome: Outcome) -> None:
        c = one.command
        channels = self._channels(c)
        words = one.words
        if c.from_sfu:
            words = self._packed(c.count * (len(channels) if c.deal else 1))
        assert words is not None
        for place, i in enumerate(channels):
            mine = words[place::len(channels)] if c.deal else words
            self.buffers[i, c.base:c.base + c.count] = mine

    def _packed(self, count: int) -> NDArray[np.uint16]:
        """A row of FP16 results as words, and zeros behind it."""
        row = self._packed_rows.popleft()[:count * self.p.lanes]
        words = np.zeros(count * self.p.lanes, np.uint16)
        words[:len(row)] = row
        return words.reshape(count, self.p.lanes)

    def _write(self, one: Work, outcome: Outcome) -> None:
        c = one.command
        assert one.words is not None
        for i in self._channels(c):
            self.banks[i, c.group, c.bank, c.address:c.address + c.count] = one.words

    def _mac(self, one: Work, outcome: Outcome) -> None:
        c = one.command
        kind = np.int8 if c.int8 else np.float16
        for i in self._channels(c):
            row = self.banks[i, :, :, c.address:c.address + c.outputs * c.count]
            row = row.reshape(4, 4, c.outputs, c.count * self.p.lanes)
            if c.spread == "all":
                other = self.buffers[i, c.base:c.base + c.count].reshape(1, 1, 1, -1)
            else:
                other = self.buffers[i, c.base:c.base + 4 * c.count].reshape(c.count, 4, -1).swapaxes(0, 1)
                other = other.reshape((1, 4, 1, -1) if c.spread == "bank" else (4, 1, 1, -1))
            new = dot(np.ascontiguousarray(row).view(kind), np.ascontiguousarray(other).view(kind))
            sums, there = self.sums[i], slice(c.first, c.first + c.outputs)
            sums[:, :, there] = new if c.clear else sums[:, :, there] + new

    def _read(self, one: Work, outcome: Outcome) -> None:
        c = one.command
        # [output, group, bank] of each channel to [output, beat, channel, lane]
        found = []
        for i in self._channels(c):
            sums = self.sums[i][:, :, c.first:c.first + c.outputs].transpose(2, 0, 1)
            found.append({"none": sums.transpose(0, 2, 1), "bank": sums.sum(2)[:, None],
                          "group": sums.sum(1)[:, None], "all": sums.sum((1, 2))[:, None, None]}[c.reduce])
        beats = Sums.stack(found, 2)
        if c.across:
            beats = beats.sum(2)
        self._row = np.append(self._row, rounded(beats, c.form).ravel()[:c.values])
        if c.last:
            self._end(c, outcome, whole=True)

    def _end(self, c: Command, outcome: Outcome, *, whole: bool) -> None:
        """A row is complete, or ends in a refused READ: the special function unit refuses what was cut off so."""
        row, self._row = self._row, np.zeros(0, np.uint32)
        if not c.to_sfu:
            outcome.results.append(row)
        else:
            self._compute(self._commands.popleft(), row, outcome, SfuError.OK if whole or not len(row)
                          else SfuError.KEEP)

    def _sfu(self, one: Work, outcome: Outcome) -> None:
        if not one.command.from_host:
            self._commands.append(one)
            return
        assert one.row is not None
        self._compute(one, one.row, outcome)

    def _compute(self, one: Work, row: NDArray[np.uint32], outcome: Outcome, error: SfuError = SfuError.OK) -> None:
        """Of a row that is cut off, operations that need it whole give nothing, others what came."""
        c = one.command
        if error != SfuError.OK and c.operation in ("softmax", "rmsnorm", "layernorm"):
            row = row[:0]
        found = rows(self.p.sfu, SfuOp[c.operation.upper()], row[None], scalar=int(bits(np.float32(c.scalar))),
                     weight=one.weight, bias=one.bias, fp16=c.fp16).codes[0]
        outcome.errors.append(error)
        if c.to_buffers:
            self._packed_rows.append(found.astype(np.uint16))
        else:
            outcome.rows.append(found)
            outcome.row_beats += max(1, -(-len(found) // self.p.sfu.lanes) + (error != SfuError.OK))
