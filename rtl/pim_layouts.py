"""Every struct that crosses the boundary of a block of the PIM side."""

from amaranth.hdl import signed
from amaranth.lib import data, enum

from sim_models.params.pim import (
    BankGroupParams,
    BankPEParams,
    BufferDieSfuParams,
    DramBankParams,
    ExactSumParams,
    PimStackParams,
    PseudoChannelParams,
)

__all__ = ["DramColumnOp", "DramError", "DramRowOp", "PimOp", "PimReduce", "PimSpread", "PimStatus", "PimUnit",
           "ResultFormat", "SfuError", "SfuOp", "StackStatus", "StackUnit", "checked_command", "collect_job",
           "collected_beat", "deal_job", "dealt_word", "dram_column", "dram_row", "exact_sum", "group_step",
           "mac_step", "pe_step", "pim_command", "pim_job", "pim_response", "respond_job", "sfu_beat", "sfu_command",
           "sfu_operands", "sfu_response", "sfu_route", "stack_command", "stack_response", "sums_beat"]


class ResultFormat(enum.Enum, shape=2):
    """What a sum is rounded to."""

    #: float32 code
    FLOAT32 = 0
    #: FP16 code in the low 16 bits, 0 above
    FP16 = 1
    #: signed integer of 32 bits, of a sum of int8 products
    INT32 = 2


def pe_step(p: BankPEParams) -> data.StructLayout:
    """A pair of words for the processing element of a bank."""
    members = {
        "valid": 1,
        "first": 1,                 # the accumulator starts from 0 with this pair
        "index": p.index_width,     # of the accumulator
        "row": p.word_width,        # from the row buffer
        "other": p.word_width,      # from the global buffer
    }
    if p.both:
        members["int8"] = 1         # the words hold int8 numbers; the same for all pairs of a sum
    return data.StructLayout(members)


def exact_sum(p: ExactSumParams) -> data.StructLayout:
    """A sum that was not rounded; two of them add up member by member, ``value`` by + and flags by |."""
    return data.StructLayout({
        # sum of the finite products, in units of 2^-48 for FP16; an integer for int8
        "value": signed(p.acc_width),
        # an infinite product of this sign is in the sum; a NaN is. Never with int8.
        "positive": 1, "negative": 1, "nan": 1,
    })


class SfuOp(enum.Enum, shape=4):
    """What the special function unit does to a row x; other codes are refused. All numbers are float32."""

    #: x, code for code
    COPY = 0
    #: max(x, 0)
    RELU = 1
    #: x + bias
    ADD = 2
    #: x / (1 + e^-x)
    SILU = 3
    #: tanh form: x / (1 + e^(-2 sqrt(2/pi) (x + 0.044715 x^3)))
    GELU = 4
    #: e^(scalar x) / sum; -inf is masked
    SOFTMAX = 5
    #: weight x / sqrt(mean of squares + scalar)
    RMSNORM = 6
    #: weight (x - mean) / sqrt(variance + scalar) + bias
    LAYERNORM = 7


class SfuError(enum.Enum, shape=3):
    """Why a row was refused; the first fault that was found."""

    OK = 0
    #: no such operation; no beat of operands was taken
    OP = 1
    #: the row has more than ``max_length`` numbers
    LENGTH = 2
    #: a beat before the last is not full, or the last is empty behind others or does not keep its lowest lanes
    KEEP = 3
    #: the row of operands has another number of beats
    OPERANDS = 4


sfu_command = data.StructLayout({
    "op": SfuOp,
    "fp16": 1,                      # results are FP16 and not float32
    "affine": 1,                    # RMSNORM and LAYERNORM take weights and biases; else they are 1 and 0
    "scalar": 32,                   # float32: factor of SOFTMAX, epsilon of RMSNORM and LAYERNORM
})


def sfu_beat(p: BufferDieSfuParams) -> data.StructLayout:
    """Beat of a row that goes into the special function unit or comes out of it; the lowest lanes first."""
    return data.StructLayout({
        "data": data.ArrayLayout(32, p.lanes),  # float32, or FP16 in the low half and 0 above; 0 in lanes not kept
        "keep": p.lanes,            # lanes that count: all but in the last beat; none only of an empty row
        "last": 1,
    })


def sfu_operands(p: BufferDieSfuParams) -> data.StructLayout:
    """Beat of weights and biases, for the beat of the row with the same number; float32."""
    return data.StructLayout({
        "weight": data.ArrayLayout(32, p.lanes), "bias": data.ArrayLayout(32, p.lanes),
        "last": 1,
    })


def sfu_response(p: BufferDieSfuParams) -> data.StructLayout:
    """Outcome of a command of the special function unit."""
    return data.StructLayout({
        "error": SfuError,
        "length": p.length_width,   # numbers in the row, 0 if it was refused
        "zero": 1,                  # the divisor was 0, and all quotients are: softmax of a row that is all masked
        "nan": 1,                   # a result is NaN
    })


class DramRowOp(enum.Enum, shape=2):
    """Command to the rows of a bank."""

    NONE = 0
    ACTIVATE = 1
    PRECHARGE = 2
    REFRESH = 3


class DramColumnOp(enum.Enum, shape=2):
    """Command to the words of an open row."""

    NONE = 0
    READ = 1
    WRITE = 2


class DramError(enum.Enum, shape=4):
    """Rule that a command broke; the timing rules are those of :class:`sim_models.params.dram.DramTiming`."""

    NONE = 0
    #: READ, WRITE or PRECHARGE of a row that is not open
    CLOSED = 1
    #: ACTIVATE while a row is open in its place, or REFRESH while any is
    OPEN = 2
    RCD = 3
    RP = 4
    RAS = 5
    CCD = 6
    RTP = 7
    WR = 8
    WTR = 9
    RFC = 10
    #: no REFRESH in twice the time after which one is due
    REFI = 11


def dram_row(p: DramBankParams) -> data.StructLayout:
    """A command to the rows of a bank."""
    return data.StructLayout({"op": DramRowOp, "row": range(p.rows)})


def dram_column(p: DramBankParams) -> data.StructLayout:
    """A command to a word of an open row."""
    return data.StructLayout({"op": DramColumnOp, "row": range(p.rows), "column": range(p.columns)})


class PimOp(enum.Enum, shape=2):
    """What a pseudo-channel is to do."""

    #: the next ``count`` words of the data stream go to words ``base`` and following of the global buffer
    LOAD = 0
    #: the next ``count`` words of the data stream go to words ``address`` and following of bank (group, bank)
    WRITE = 1
    #: for r < outputs, c < count: accumulator first + r += word address + r * count + c of every bank, times a word
    #: of the global buffer (see :class:`PimSpread`)
    MAC = 2
    #: sums of accumulators ``first`` to ``first + outputs - 1`` (see :class:`PimReduce`)
    READ = 3


class PimSpread(enum.Enum, shape=2):
    """Which word of the global buffer meets word c of a bank in a MAC."""

    #: base + c, in all banks
    ALL = 0
    #: base + 4c + b in bank b of every group
    BANK = 1
    #: base + 4c + g in all banks of group g
    GROUP = 2


class PimReduce(enum.Enum, shape=2):
    """What a READ adds up. A beat has four lanes; lanes without a sum are 0."""

    #: nothing: four beats per accumulator, beat b has bank b of the four groups
    NONE = 0
    #: the banks of each group: a beat per accumulator, by group
    BANK = 1
    #: over the groups: a beat per accumulator, by bank
    GROUP = 2
    #: all: a beat per accumulator, in lane 0
    ALL = 3


class PimStatus(enum.Enum, shape=3):
    """Outcome of a command; of several faults the first in this order."""

    OK = 0
    #: ``count`` (LOAD, WRITE, MAC) or ``outputs`` (MAC, READ) is zero
    COUNT = 1
    #: a format that was not built (MAC, READ), or no such spread (MAC)
    FORMAT = 2
    #: words beyond the end of a bank (WRITE, MAC)
    ADDRESS = 3
    #: words beyond the end of the global buffer (LOAD, MAC), or a base that is no multiple of 4 (MAC, BANK and GROUP)
    BUFFER = 4
    #: accumulators beyond the end of the half in which the first one lies (MAC, READ)
    ACCUMULATOR = 5


pim_command = data.StructLayout({
    "op": PimOp,
    "address": 24,              # first word of the bank or banks
    "count": 16,                # words (LOAD, WRITE); words per output (MAC)
    "base": 16,                 # first word of the global buffer
    "first": 8, "outputs": 8,   # accumulators
    "spread": PimSpread,
    "clear": 1,                 # MAC: sums start from 0, instead of from what is in the accumulators
    "int8": 1,                  # MAC: format of the words; READ: passed on to `sums`
    "group": 2, "bank": 2,      # WRITE
    "reduce": PimReduce,
})

pim_response = data.StructLayout({
    "status": PimStatus,
    "cycles": 32,               # for which the command occupied its unit; 0 if it was refused
    "hits": 24, "misses": 24,   # MAC, WRITE: words of a row that was accessed since it was opened, first words of one
})


def sums_beat(p: ExactSumParams) -> data.StructLayout:
    """Four exact sums side by side; member i of each array belongs to lane i (see :func:`exact_sum`)."""
    return data.StructLayout({
        "value": data.ArrayLayout(signed(p.acc_width), 4),
        "positive": 4, "negative": 4, "nan": 4,
        "int8": 1,                  # as in the READ command
        "last": 1,                  # of the command
    })


class PimUnit(enum.Enum, shape=2):
    """Who carries out a command."""

    #: nobody, it is refused
    NONE = 0
    #: MAC, WRITE
    SEQUENCER = 1
    #: LOAD, and the words of refused commands
    LOADER = 2
    #: READ
    READER = 3


def pim_job(p: PseudoChannelParams) -> data.StructLayout:
    """A command on its way from the decoder to the unit that carries it out."""
    return data.StructLayout({
        "op": PimOp, "status": PimStatus,
        "drop": 1,                              # refused, but its words must be taken off the data stream
        "row": range(p.rows), "column": range(p.columns),       # first word of the banks
        "last_row": range(p.rows),              # row of the last word
        "count": 16,
        "base": range(p.buffer_words),
        "buffer_halves": 2,                     # which halves of the global buffer it touches
        "first": range(p.accumulators),
        "outputs": range(p.half + 1),
        "spread": PimSpread, "clear": 1, "int8": 1, "group": 2, "bank": 2, "reduce": PimReduce,
    })


def mac_step(p: PseudoChannelParams) -> data.StructLayout:
    """What all processing elements are to do with a word that is read from their banks."""
    return data.StructLayout({
        "valid": 1, "first": 1, "index": range(p.accumulators), "int8": 1,
        "spread": PimSpread,
        "address": range(p.buffer_words),       # word of the global buffer, for ALL; else the first of four
    })


def group_step(p: BankGroupParams) -> data.StructLayout:
    """What the processing elements of a bank group are to do with the words of their banks."""
    return data.StructLayout({
        "valid": 1, "first": 1, "index": range(p.accumulators),
        "int8": 1,                              # has an effect if both formats are built
    })


class StackUnit(enum.Enum, shape=1):
    """Whom a command to the stack is for."""

    CHANNELS = 0
    SFU = 1


class StackStatus(enum.Enum, shape=3):
    """Whether the stack carries a command out; of several faults the first in this order."""

    OK = 0
    #: as in :class:`PimStatus`; FORMAT also of a READ whose two formats do not go together
    COUNT = 1
    FORMAT = 2
    ADDRESS = 3
    BUFFER = 4
    ACCUMULATOR = 5
    #: no pseudo-channel is to take part
    CHANNELS = 6


def stack_command(p: PimStackParams) -> data.StructLayout:
    """A command to the stack."""
    return data.StructLayout({
        "unit": StackUnit,
        "channels": p.pseudo_channels,  # that take part, a bit each
        "pim": pim_command,             # what they do; `count` of a LOAD is the words of each of them
        "deal": 1,                  # LOAD: words are dealt out, one to each pseudo-channel in turn; else all get all
        "from_sfu": 1,              # LOAD: words come from the SFU and not from the host; zeros follow its last one
        "across": 1,                # READ: sums over the pseudo-channels; else one after the other, for each output
        "values": 16,               # READ: results that count, the others are dropped; a multiple of 4 but at the end
        "last": 1,                  # READ: ends the row of results; else the next READ goes on with it
        "format": ResultFormat,     # READ: of the results; INT32 if and only if `pim.int8`
        "to_sfu": 1,                # READ: results go to the SFU, not to the host; not of ALL, which fills no beats
        "sfu": sfu_command,
        "from_host": 1,             # SFU: the row comes from the host and not from READs
        "to_buffers": 1,            # SFU: results are for LOADs and not for the host
    })


stack_response = data.StructLayout({
    "status": StackStatus,
    "cycles": 32,                   # most of any pseudo-channel (see pim_response); 0 of a command to the SFU
    "hits": 32, "misses": 32,       # of all
})


def checked_command(p: PimStackParams) -> data.StructLayout:
    """A command to the stack, and what its checker says."""
    return data.StructLayout({
        "command": stack_command(p), "status": StackStatus,
        "drop": 1,                      # LOAD or WRITE: refused, but its words must be taken off their stream
    })


def deal_job(p: PimStackParams) -> data.StructLayout:
    """Words that go to pseudo-channels; all fields but the last are those of the command."""
    return data.StructLayout({
        "channels": p.pseudo_channels, "count": 16, "deal": 1, "from_sfu": 1,
        "drop": 1,                      # the command was refused: its words are taken and go nowhere
    })


def collect_job(p: PimStackParams) -> data.StructLayout:
    """Sums that come from pseudo-channels, and what becomes of them."""
    return data.StructLayout({
        "channels": p.pseudo_channels, "outputs": 8, "reduce": PimReduce, "across": 1, "values": 16, "last": 1,
        "format": ResultFormat, "to_sfu": 1,
        "ends": 1})                 # no sums come, the READ was refused: its row ends without them


def respond_job(p: PimStackParams) -> data.StructLayout:
    """A response that is to be made; no pseudo-channel takes part in that to a refused command."""
    return data.StructLayout({"channels": p.pseudo_channels, "status": StackStatus})


def dealt_word(p: PimStackParams) -> data.StructLayout:
    """FP16 results of the special function unit as a word."""
    return data.StructLayout({"word": p.word_width, "last": 1})


def collected_beat(p: PimStackParams) -> data.StructLayout:
    """Four exact sums that are to be rounded."""
    return data.StructLayout({
        "value": data.ArrayLayout(signed(p.acc_width), 4), "positive": 4, "negative": 4, "nan": 4,
        "keep": 4, "last": 1, "format": ResultFormat, "to_sfu": 1})


sfu_route = data.StructLayout({"from_host": 1, "to_buffers": 1})
