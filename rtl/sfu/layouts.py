"""Shapes of what crosses block boundaries in ``rtl/sfu``."""

from amaranth.lib import data

from sim_models.params.sfu.buffer_die_sfu import BufferDieSfuParams
from sim_models.spec.sfu import SfuError

__all__ = ["sfu_beat", "sfu_command", "sfu_operands", "sfu_response"]



sfu_command = data.StructLayout({
    "op": 4,                        # :class:`sim_models.spec.sfu.SfuOp`; other codes are refused
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
