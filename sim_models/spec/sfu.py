"""Codes of the special function unit"s operations and errors."""

import enum

__all__ = ["SfuError", "SfuOp"]


class SfuOp(enum.IntEnum):
    """What the special function unit does to a row x; other codes are refused. All numbers are float32.

    Members
    -------
    COPY: x, code for code.
    RELU: Max(x, 0).
    ADD: x + bias.
    SILU: x / (1 + e^-x).
    GELU: tanh form: x / (1 + e^(-2 sqrt(2/pi) (x + 0.044715 x^3))).
    SOFTMAX: e^(scalar x) / sum; -inf is masked.
    RMSNORM: Weight x / sqrt(mean of squares + scalar).
    LAYERNORM: Weight (x - mean) / sqrt(variance + scalar) + bias.
    """

    COPY = 0
    RELU = 1
    ADD = 2
    SILU = 3
    GELU = 4
    SOFTMAX = 5
    RMSNORM = 6
    LAYERNORM = 7


class SfuError(enum.IntEnum):
    """Why a row was refused; the first fault that was found.

    Members
    -------
    OK: The row of results is right.
    OP: No such operation; no beat of operands was taken.
    LENGTH: The row has more than ``max_length`` numbers.
    KEEP: a beat before the last is not full, or the last is empty behind others or does not keep its lowest lanes.
    OPERANDS: The row of operands has another number of beats.
    """

    OK = 0
    OP = 1
    LENGTH = 2
    KEEP = 3
    OPERANDS = 4
