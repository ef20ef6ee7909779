"""Every struct that crosses the boundary of a block of the PIM side."""

from amaranth.hdl import signed
from amaranth.lib import data, enum

from sim_models.params.pim import BankPEParams, BufferDieSfuParams, ExactSumParams

__all__ = ["ResultFormat", "SfuError", "SfuOp", "exact_sum", "pe_step", "sfu_beat", "sfu_command",
           "sfu_operands", "sfu_response"]


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
