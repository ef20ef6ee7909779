"""Where matrices, keys and values lie in the banks, and the commands that compute with them (SADDLE Fig. 9 and 10).

A stack has P pseudo-channels (i) of 4 groups (g) of 4 banks (b). A word holds W numbers: ``lanes`` FP16 or twice as
many int8. All banks work in lockstep, a word each, on sums r = 0, 1, ... of chunks c.

*GEMV*, y[n] = sum of x[k] w[k, n]: column n of w lies in one bank, or in the 4 banks of a group, or in a bank of each
of the 4 groups, and that in one pseudo-channel or in all of them (``across``). Words of x by number::

    split   word of (i, g, b), chunk c      output of sum r                  across: word, output
    none    c                               4 ((4 r + b) P + i) + g          -
    bank    4 c + b                         4 (r P + i) + g                  (4 c + b) P + i, 4 r + g
    group   4 c + g                         4 (r P + i) + b                  (4 c + g) P + i, 4 r + b

So results come in the order of n, whatever the split. The split that takes the fewest words is chosen.

*Attention*, of one head of d elements over L positions: K^T (d x L) is split by columns over pseudo-channels and
groups and by rows over the banks of a group, which is the GEMV of q with split ``bank``. The scores go through the
SFU, whose probabilities are dealt out to the global buffers, a word of 16 positions to each pseudo-channel in turn.
V (L x d) is split the other way round, rows over pseudo-channels and groups and columns over banks: split ``group``,
``across``. Sums over all banks and pseudo-channels are exact, so that scores and results are rounded once each.
A word of V holds one column at 16 positions, and blocks of 64 P positions follow one another, so that a new position
moves nothing: it writes its own words of K, and those words of V in which it takes a lane.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim_models.golden.pim.stack.pim_stack import Command, Work, words_of
from sim_models.params.pim.stack.pim_stack import PimStackParams

__all__ = ["SPLITS", "Attention", "Gemv", "PimMappingError", "in_a_row"]

SPLITS = ("none", "bank", "group")

_GROUPS = _BANKS = 4
#: cycles of a READ beside those of its sums, about
_OVERHEAD = 24
#: most words or results of a command
_MOST = (1 << 16) - 1


class PimMappingError(ValueError):
    """Operands or sizes that the stack cannot take."""


def _accumulate(p: PimStackParams, rounds: int, work: int = 0, beats: int = 4, half: int = 0,
                values: int = 1) -> Iterator[tuple[int, int, int]]:
    """Cut ``rounds`` sums into blocks for the two halves of the accumulators: (round, sums, first accumulator).

    Blocks are small, since the last one's sums are read when nothing else is left to be done; but not so small that
    reading (``beats`` cycles a sum) would keep the banks waiting, which work ``work`` cycles on a sum. Each sum has
    so many ``values`` in the stack.
    """
    size = -(-_OVERHEAD // (work - beats)) if work > beats else p.half
    size = min(size, p.half, _MOST // values)
    for block, start in enumerate(range(0, rounds, size)):
        yield start, min(size, rounds - start), (block + half) % 2 * p.half


class Gemv:
    """y = x w on a stack; w stays in the banks.

    Parameters
    ----------
    p:
        The stack.
    w: float16 or int8 array [K, N]
    split, across:
        How K is split, see the module; both None: the way that takes the fewest words.
    address:
        First word in each bank.

    Attributes
    ----------
    words: int
        Words taken in each bank.

    Raises
    ------
    PimMappingError
        A size is 0, the type is none that the stack has, the banks or the global buffers are too small, or K is so
        large that a sum could overflow.
    """

    def __init__(self, p: PimStackParams, w: NDArray[Any], *, split: str | None = None, across: bool | None = None,
                 address: int = 0) -> None:
        self.p, self.w, self.address = p, w, address
        self.lanes = _lanes(p, w.dtype)
        if w.ndim != 2 or min(w.shape) < 1:
            raise PimMappingError(f"weights (K, N) with K and N at least 1 were wanted, {w.shape} came")
        self.k, self.n = w.shape
        if split is None:
            self.split, self.across = min(
                ((s, a) for s in SPLITS for a in (False, True) if s != "none" or not a),
                key=lambda way: (self._size(*way), way[1], SPLITS.index(way[0])))
        else:
            self.split, self.across = split, bool(across)
        if self.split not in SPLITS or (self.across and self.split == "none"):
            raise PimMappingError(f"a split among {', '.join(SPLITS)}, and none not across pseudo-channels, was "
                                  f"wanted, not {self.split}")
        self.rounds, self.chunks = self._rounds(self.split, self.across)
        self.words = self.rounds * self.chunks
        self.ways = 1 if self.split == "none" else 4
        _check_capacity(p, address, self.words)
        if -(-self.k // self.lanes) >= 1 << p.terms_width:
            raise PimMappingError(f"K must be at most {((1 << p.terms_width) - 1) * self.lanes}, so that no sum can "
                                  f"overflow, not {self.k}")
        self._part = min(self.chunks, p.buffer_words // self.ways)
        #: results of a sum in all banks together
        self._values = 16 // self.ways * (1 if self.across else p.pseudo_channels)

    def _rounds(self, split: str, across: bool) -> tuple[int, int]:
        """Sums of a bank, and words of each."""
        channels = self.p.pseudo_channels
        outputs = (16 if split == "none" else 4) * (1 if across else channels)
        inputs = self.lanes * (1 if split == "none" else 4) * (channels if across else 1)
        return -(-self.n // outputs), -(-self.k // inputs)

    def _size(self, split: str, across: bool) -> int:
        rounds, chunks = self._rounds(split, across)
        return rounds * chunks

    @property
    def parts(self) -> list[tuple[int, int]]:
        """Chunks whose words of x fill the global buffers one after the other: (first, number)."""
        return [(c, min(self._part, self.chunks - c)) for c in range(0, self.chunks, self._part)]

    def _blocks(self, turn: int) -> Iterator[tuple[int, int, int]]:
        """Sums that are computed, and then read, together: their results leave a beat a cycle for the whole stack."""
        beats = max(4, self.p.pseudo_channels * (4 if self.split == "none" else 1))
        work = self.chunks * self.p.ccd
        # the first block must not be in the half in which the last one of the product before is
        odd = len(list(_accumulate(self.p, self.rounds, work, beats, 0, self._values))) % 2
        return _accumulate(self.p, self.rounds, work, beats, turn * odd, self._values)

    def image(self) -> list[Work]:
        """The commands that write w into the banks."""
        p, channels = self.p, self.p.pseudo_channels
        inner = self.ways * (channels if self.across else 1)                # words of x in a chunk
        padded = np.zeros((self.chunks * inner * self.lanes, self.rounds * self._values), self.w.dtype)
        padded[:self.k, :self.n] = self.w
        words = words_of(padded.T.reshape(self.rounds, self._values, self.chunks, inner, self.lanes))
        out: list[Work] = []
        for i in range(channels):
            for g, b in np.ndindex(_GROUPS, _BANKS):
                own = 0 if self.across else i
                column = {"none": 4 * (b * channels + i) + g, "bank": 4 * own + g, "group": 4 * own + b}[self.split]
                way = {"none": 0, "bank": b, "group": g}[self.split]
                word = way * channels + i if self.across else way
                mine = words[:, column, :, word]                            # [rounds, chunks, lanes]
                mine = np.concatenate([mine[:, c:c + n].reshape(-1, p.lanes) for c, n in self.parts])
                out += _writes(mine, self.address, mask=1 << i, group=int(g), bank=int(b))
        return out

    def run(self, x: NDArray[Any], form: str | None = None, *, turn: int = 0) -> list[Work]:
        """The commands that compute with an x of K elements; results are ``form`` (default: float32 or int32).

        Of products in a row every other one has ``turn`` 1: it uses the other half of the buffers, so that x is
        loaded while the product before it is computed, and halves of accumulators take turns.
        """
        p, mask, int8 = self.p, (1 << self.p.pseudo_channels) - 1, bool(self.w.dtype == np.int8)
        if x.shape != (self.k,) or x.dtype != self.w.dtype:
            raise PimMappingError(f"{self.w.dtype} numbers of shape {(self.k,)} were wanted, "
                                  f"{x.dtype} {x.shape} came")
        form = form or ("int32" if int8 else "float32")
        if form not in (("int32",) if int8 else ("float32", "fp16")):
            raise PimMappingError(f"results of {self.w.dtype} weights cannot be {form}")
        inner = self.ways * (p.pseudo_channels if self.across else 1)
        padded = np.zeros(self.chunks * inner * self.lanes, x.dtype)
        padded[:self.k] = x
        words = words_of(padded.reshape(self.chunks, inner, self.lanes))
        out: list[Work] = []
        done, kept = 0, None
        base = p.buffer_words // 2 if turn and self._part * self.ways <= p.buffer_words // 2 else 0
        for start, outputs, first in self._blocks(turn):
            for c, n in self.parts:
                if kept != c:
                    kept = c
                    out.append(Work(Command(op="load", mask=mask, base=base, count=n * self.ways, deal=self.across),
                                    words[c:c + n].reshape(-1, p.lanes)))
                out.append(Work(Command(
                    op="mac", mask=mask, address=self.address + self.rounds * c + start * n, base=base,
                    outputs=outputs, count=n, first=first, spread="all" if self.split == "none" else self.split,
                    clear=c == 0, int8=int8)))
            values = min(self.n - done, outputs * self._values)
            done += values
            out.append(Work(Command(op="read", mask=mask, first=first, outputs=outputs, reduce=self.split,
                                    across=self.across, values=values, last=done == self.n, form=form, int8=int8)))
        return out


def _lanes(p: PimStackParams, dtype: Any) -> int:
    """Numbers in a word."""
    if dtype == np.float16 and p.fp16:
        return p.lanes
    if dtype == np.int8 and p.int8:
        return 2 * p.lanes
    formats = [name for name, there in (("float16", p.fp16), ("int8", p.int8)) if there]
    raise PimMappingError(f"numbers of type {' or '.join(formats)} were wanted, not {dtype}")


def _writes(words: NDArray[np.uint16], address: int, **bank: Any) -> Iterator[Work]:
    """WRITEs of words [number, lanes] to a bank, from ``address`` on."""
    for start in range(0, len(words), _MOST):
        part = words[start:start + _MOST]
        yield Work(Command(op="write", address=address + start, count=len(part), **bank), part)


def _check_capacity(p: PimStackParams, address: int, words: int) -> None:
    if address < 0 or address + words > p.words:
        raise PimMappingError(f"words {address} to {address + words - 1} of each bank are needed, a bank has "
                              f"{p.words}")


def in_a_row(programs: Sequence[list[Work]]) -> list[Work]:
    """Products one after the other: x of the next one is loaded while the one before is computed.

    This needs programs of :meth:`Gemv.run` whose ``turn`` alternates, and an x that fits half a buffer.
    """
    out: list[Work] = []
    early = False
    for here, after in zip(programs, [*programs[1:], None], strict=True):
        rest = here[1:] if early else here
        loads = [one.command for one in (*here, *(after or [])) if one.command.op == "load"]
        early = after is not None and len(loads) == 2 and loads[0].base != loads[1].base
        out += rest
        if early and after is not None:
            first = next(k for k in range(len(out) - 1, -1, -1) if out[k] is here[1])
            out.insert(first + 1, after[0])
    return out


class Attention:
    """Attention of the newest token, one head: softmax(q K^T scale) V, in FP16; K and V stay in the banks.

    Parameters
    ----------
    p:
        The stack.
    size:
        Elements of a head, d.
    capacity:
        Positions for which there is room.
    address:
        First word in each bank.

    Attributes
    ----------
    words: int
        Words taken in each bank.

    Raises
    ------
    PimMappingError
        The stack has no FP16, a size is 0, banks, global buffers or the SFU are too small for the capacity, or a sum
        could overflow.
    """

    def __init__(self, p: PimStackParams, size: int, capacity: int, *, address: int = 0) -> None:
        if size < 1 or capacity < 1:
            raise PimMappingError(f"a head and a capacity of at least 1 were wanted, not {size} and {capacity}")
        self.p, self.size, self.capacity, self.address = p, size, capacity, address
        self.lanes = _lanes(p, np.dtype(np.float16))
        self.k_rounds, self.k_chunks = -(-capacity // self.columns), -(-size // (4 * p.lanes))
        self.v_rounds, self.blocks = -(-size // 4), -(-capacity // self.block)
        self.words = self.k_rounds * self.k_chunks + self.v_rounds * self.blocks
        _check_capacity(p, address, self.words)
        if 4 * (self.k_chunks + self.blocks) > p.buffer_words:
            raise PimMappingError(f"{4 * (self.k_chunks + self.blocks)} words of each global buffer are needed, "
                                  f"it has {p.buffer_words}")
        if capacity > p.sfu_length:
            raise PimMappingError(f"at most {p.sfu_length} positions fit the SFU, not {capacity}")
        #: positions whose values may be in the banks
        self._filled = 0
        most = ((1 << p.terms_width) - 1) * p.lanes
        if max(size, capacity) > most:
            raise PimMappingError(f"a head and a capacity of at most {most} were wanted, so that no sum can "
                                  f"overflow, not {size} and {capacity}")

    @property
    def columns(self) -> int:
        """Positions whose scores are computed side by side."""
        return 4 * self.p.pseudo_channels

    @property
    def block(self) -> int:
        """Positions of a block of V."""
        return self.columns * self.p.lanes

    def write(self, k: NDArray[np.float16], v: NDArray[np.float16], start: int = 0) -> list[Work]:
        """The commands that write the positions from ``start`` on, where those before are in the banks already.

        After a roll-back ``k`` and ``v`` are shorter than before: values behind them are cleared, since a value that
        is not finite would reach the result even with probability 0.

        Parameters
        ----------
        k, v: float16 [L, d]
            All positions.
        """
        length = len(k)
        for name, x in (("keys", k), ("values", v)):
            if x.dtype != np.float16 or x.shape != (length, self.size):
                raise PimMappingError(f"float16 {name} of shape {(length, self.size)} were wanted, "
                                      f"{x.dtype} {x.shape} came")
        if not 0 <= start <= length <= self.capacity:
            raise PimMappingError(f"positions from {start} to {length} were wanted, there is room for "
                                  f"{self.capacity}")
        filled, self._filled = self._filled, length
        if start == length >= filled:
            return []
        return [*self._write_keys(k, start), *self._write_values(v, start, filled)]

    def _write_keys(self, k: NDArray[np.float16], start: int) -> Iterator[Work]:
        """Runs of whole words: sums of one (i, g), from the first new one on."""
        p, length = self.p, len(k)
        padded = np.zeros((length, self.k_chunks * 4 * p.lanes), np.float16)
        padded[:, :self.size] = k
        words = words_of(padded.reshape(length, self.k_chunks, 4, p.lanes))
        for i, g in np.ndindex(p.pseudo_channels, _GROUPS):
            column = 4 * i + g
            first = max(0, -(-(start - column) // self.columns))
            mine = words[first * self.columns + column::self.columns]
            for b in range(_BANKS if len(mine) else 0):
                yield from _writes(mine[:, :, b].reshape(-1, p.lanes), self.address + first * self.k_chunks,
                                   mask=1 << i, group=int(g), bank=b)

    def _write_values(self, v: NDArray[np.float16], start: int, filled: int) -> Iterator[Work]:
        """Write the columns of every (i, g) in which a position is new or gone, or a whole new block."""
        p, length = self.p, len(v)
        blocks = -(-length // self.block)
        padded = np.zeros((blocks * self.block, 4 * self.v_rounds), np.float16)
        padded[:length, :self.size] = v
        # [block, group, channel, lane, round, bank] -> [channel, group, bank, block, round, lane]
        words = words_of(padded.reshape(blocks, _GROUPS, p.pseudo_channels, p.lanes, self.v_rounds, _BANKS)
                         .transpose(2, 1, 5, 0, 4, 3))
        for i, g, b in np.ndindex(p.pseudo_channels, _GROUPS, _BANKS):
            for c in range(start // self.block, blocks):
                position = c * self.block + (g * p.pseudo_channels + i) * p.lanes
                if start <= c * self.block or (start < position + p.lanes and position < max(length, filled)):
                    for r, n, _ in _accumulate(p, self.v_rounds):
                        yield Work(Command(op="write", mask=1 << i, group=int(g), bank=int(b), count=n,
                                           address=self._value_address(r, n, c)), words[i, g, b, c, r:r + n])

    def _value_address(self, start: int, outputs: int, block: int) -> int:
        return self.address + self.k_rounds * self.k_chunks + start * self.blocks + block * outputs

    def run(self, q: NDArray[np.float16], length: int, *, scale: float | None = None,
            form: str = "float32") -> list[Work]:
        """The commands that compute with the first ``length`` positions; none of 0 positions: the result is zeros.

        Parameters
        ----------
        q: float16 [d]
        scale:
            Of the scores, float32; default: 1 / sqrt(d).
        """
        p, mask = self.p, (1 << self.p.pseudo_channels) - 1
        if q.shape != (self.size,) or q.dtype != np.float16:
            raise PimMappingError(f"a float16 query of shape {(self.size,)} was wanted, {q.dtype} {q.shape} came")
        if not 0 <= length <= self.capacity:
            raise PimMappingError(f"from 0 to {self.capacity} positions were wanted, not {length}")
        if form not in ("float32", "fp16"):
            raise PimMappingError(f"results of attention must be float32 or fp16, not {form}")
        if not length:
            return []
        padded = np.zeros(self.k_chunks * 4 * p.lanes, np.float16)
        padded[:self.size] = q
        words = words_of(padded.reshape(-1, p.lanes))
        scale = float(np.float32(1) / np.sqrt(np.float32(self.size))) if scale is None else scale
        out = [Work(Command(op="load", mask=mask, base=0, count=len(words)), words),
               Work(Command(op="sfu", operation="softmax", scalar=scale, fp16=True, to_buffers=True))]
        for start, outputs, first in _accumulate(p, -(-length // self.columns)):
            out.append(Work(Command(op="mac", mask=mask, address=self.address + start * self.k_chunks, base=0,
                                    outputs=outputs, count=self.k_chunks, first=first, spread="bank", clear=True)))
            values = min(length - start * self.columns, outputs * self.columns)
            out.append(Work(Command(op="read", mask=mask, first=first, outputs=outputs, reduce="bank", values=values,
                                    last=start * self.columns + values == length, to_sfu=True)))
        blocks, base = -(-length // self.block), len(words)
        out.append(Work(Command(op="load", mask=mask, base=base, count=4 * blocks, deal=True, from_sfu=True)))
        for start, outputs, first in _accumulate(p, self.v_rounds):
            for c in range(blocks):
                out.append(Work(Command(op="mac", mask=mask, address=self._value_address(start, outputs, c),
                                        base=base + 4 * c, outputs=outputs, count=1, first=first, spread="group",
                                        clear=c == 0)))
            values = min(self.size - 4 * start, 4 * outputs)
            out.append(Work(Command(op="read", mask=mask, first=first, outputs=outputs, reduce="group", across=True,
                                    values=values, last=4 * start + values == self.size, form=form)))
        return out
