"""What the parameters of the arithmetic blocks have in common."""

from typing import Any

from sim_models.params.base import param

__all__ = ["LOG2_E"]

#: float32 code of log2(e)
LOG2_E = 0x3FB8AA3B


def _stages(default: int, high: int) -> Any:
    return param(default, "pipeline registers from operands to result", low=1, high=high, tag="s")


def _half(default: str = "fp16") -> Any:
    return param(default, "16-bit format", choices=("fp16", "bf16"), tag="of_")
