"""Shapes of what crosses block boundaries in ``rtl/sfu``."""

from amaranth.lib import data

from rtl.parts.meanings import Fields, fixed_struct, struct
from sim_models.params.sfu.buffer_die_sfu import BufferDieSfuParams
from sim_models.spec.sfu import SfuError

__all__ = ["sfu_beat", "sfu_command", "sfu_operands", "sfu_response"]


@fixed_struct
def sfu_command() -> Fields:
    """A command to the special function unit.

    Members
    -------
    op: What is done to the row, a code of :class:`sim_models.spec.sfu.SfuOp`; others are refused.
    fp16: Results are FP16 and not float32.
    affine: RMSNORM and LAYERNORM take weights and biases; else they are 1 and 0.
    scalar: Float32 code: factor of SOFTMAX, epsilon of RMSNORM and LAYERNORM.
    """
    return {
        "op": 4,
        "fp16": 1,
        "affine": 1,
        "scalar": 32,
    }


@struct
def sfu_beat(p: BufferDieSfuParams) -> Fields:
    """Beat of a row that goes into the special function unit or comes out of it; the lowest lanes first.

    Members
    -------
    data: Float32 codes, or FP16 codes in the low half and 0 above; 0 in lanes that are not kept.
    keep: Lanes that count, a bit each: all but in the last beat; none only of an empty row.
    last: The row ends with this beat.
    """
    return {
        "data": data.ArrayLayout(32, p.lanes),
        "keep": p.lanes,
        "last": 1,
    }


@struct
def sfu_operands(p: BufferDieSfuParams) -> Fields:
    """Beat of weights and biases, for the beat of the row with the same number; float32.

    Members
    -------
    weight: Weights, float32 codes.
    bias: Biases, float32 codes.
    last: The row of operands ends with this beat.
    """
    return {
        "weight": data.ArrayLayout(32, p.lanes), "bias": data.ArrayLayout(32, p.lanes),
        "last": 1,
    }


@struct
def sfu_response(p: BufferDieSfuParams) -> Fields:
    """Outcome of a command of the special function unit.

    Members
    -------
    error: Whether the row was refused, and why.
    length: Numbers in the row, 0 if it was refused.
    zero: The divisor was 0, and all quotients are: softmax of a row that is all masked.
    nan: A result is NaN.
    """
    return {
        "error": SfuError,
        "length": p.length_width,
        "zero": 1,
        "nan": 1,
    }
