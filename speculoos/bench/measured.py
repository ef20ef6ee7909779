"""What benchmarks share: errors of what is simulated, and a measurement of the engine as the JSON document has it."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from gen.errors import ToolError, UserError

if TYPE_CHECKING:
    from sim_models.params.tile.engine.compute_engine import ComputeEngineParams
    from tb.tile.engine.engine_meter import Measured

__all__ = ["BACK_TO_BACK", "check_work", "checked", "row"]

#: key of the utilisation of equal commands in a row
BACK_TO_BACK = "utilisation_back_to_back"
#: what one invocation may take on: array cycles of all rows once, weights of one GEMM
MOST_STEPS, MOST_WEIGHTS = 20_000_000, 1 << 24


def checked(work: Callable[[], int]) -> int:
    """Do some work that needs Verilated designs.

    Raises
    ------
    ToolError
        A tool is missing, a design cannot be built, or what it does differs from its model.
    """
    from tb.common.native import NativeTimeout
    try:
        return work()
    except (AssertionError, NativeTimeout) as e:      # a value, a cycle count or a stream rule
        raise ToolError(f"the RTL differs from its model: {e}") from e


def check_work(p: "ComputeEngineParams", gemms: Iterable[tuple[int, int, int, str]]) -> None:
    """Refuse what could not be finished in minutes.

    Raises
    ------
    UserError
        K may overflow a partial sum, the weights of one GEMM or the work of all are too much.
    """
    from sim_models.golden.tile.engine.compute_engine import steps
    total = 0
    for m, k, n, mode in gemms:
        if k > p.k_total_max:
            raise UserError(f"K must be at most {p.k_total_max}, so that {p.psum_width} bits cannot overflow, "
                            f"not {k}")
        if k * n > MOST_WEIGHTS:
            raise UserError(f"a GEMM may have at most {MOST_WEIGHTS} weights, not {k} x {n}")
        total += steps(p, m, k, n, mode)
    if total > MOST_STEPS:
        raise UserError(f"at most {MOST_STEPS} array cycles can be measured at once, these sizes take {total}")


def row(p: "ComputeEngineParams", m: int, k: int, n: int, mode: str, got: "Measured") -> dict[str, Any]:
    """One measurement as the JSON document has it."""
    macs = m * k * n
    whole = int(got.interval) if float(got.interval).is_integer() else got.interval
    return {"m": m, "k": k, "n": n, "mode": mode, "cycles": got.cycles, "macs": macs,
            "utilisation": macs / (got.cycles * p.rows * p.cols), "interval": whole,
            BACK_TO_BACK: macs / (got.interval * p.rows * p.cols), "commands": got.commands,
            "operands": "resident" if got.resident else "streamed", "bound": _bound(got)}


def _bound(got: "Measured") -> str:
    """What keeps commands from following each other faster.

    ``array``: nothing else. ``operands``: a block waits for the half of a memory that it goes to. ``turnaround``:
    decoding a command, or draining its results before a later one may write there, takes longer than the array.
    """
    if got.interval <= got.array:
        return "array"
    return "turnaround" if got.resident else "operands"
