"""Shapes of what crosses block boundaries in ``rtl/sfu``."""

from amaranth.lib import data, enum

from sim_models.params.sfu.buffer_die_sfu import BufferDieSfuParams

__all__ = ["SfuError", "SfuOp", "sfu_beat", "sfu_command", "sfu_operands", "sfu_response"]



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
