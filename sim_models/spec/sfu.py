"""Codes of the special function unit"s operations and errors."""

import enum

__all__ = ["SfuError", "SfuOp"]


class SfuOp(enum.IntEnum):
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


class SfuError(enum.IntEnum):
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
