"""Every struct that crosses a block boundary."""

from amaranth.hdl import signed, unsigned
from amaranth.lib import data, enum

from rtl.parts.meanings import Fields, fixed_struct, struct
from sim_models.params.tile.engine.compute_engine import DIM_WIDTH, ComputeEngineParams

__all__ = ["ArrayMode", "EngineStatus", "PsumSource", "activation_beat", "array_step", "gemm_command", "gemm_job",
           "gemm_response", "psum_beat", "result_beat", "result_tile", "weight_beat"]


class ArrayMode(enum.Enum, shape=2):
    """Which rows of a GEMM go through which mode of the array.

    Members
    -------
    AUTO: floor(M / rows) systolic passes, then the remaining rows one by one in vector-lane mode.
    SYSTOLIC: All rows in systolic passes.
    VECTOR: All rows one by one in vector-lane mode.
    """

    AUTO = 0
    SYSTOLIC = 1
    VECTOR = 2


class PsumSource(enum.Enum, shape=2):
    """Which partial sums a GEMM command adds to its product.

    Members
    -------
    NONE: No partial sums.
    STREAMED: The next block of the partial-sum stream.
    KEPT: The results that an earlier command kept in the half.
    """

    NONE = 0
    STREAMED = 1
    KEPT = 2


class EngineStatus(enum.Enum, shape=3):
    """Outcome of a GEMM command.

    Members
    -------
    OK: The command was carried out.
    SHAPE: M, K or N is zero, or the operands or results exceed half a local memory.
    MODE: The mode is not built into this engine, or mode or source of partial sums is none of those above.
    ACTIVATION: The activation block does not have M * ceil(K / rows) words.
    WEIGHT: The weight block does not have ceil(K / rows) * ceil(N / cols) words.
    PSUM: The partial sums, streamed or kept, do not have M * ceil(N / cols) words; none are kept in the half.
    """

    OK = 0
    SHAPE = 1
    MODE = 2
    ACTIVATION = 3
    WEIGHT = 4
    PSUM = 5


@fixed_struct
def gemm_command() -> Fields:
    """A GEMM command: M x K activations times K x N weights.

    Members
    -------
    m: Rows M of the activations and results.
    k: Inner size K.
    n: Columns N of the weights and results.
    mode: Which rows go through which mode of the array.
    accumulate: Which partial sums are added to the product.
    keep: Results stay in the partial-sum half instead of becoming an output block.
    activation_half: Half of the activation memory that holds the block.
    weight_half: Half of the weight memory that holds the block.
    psum_half: Half of the partial-sum memory that is read or written.
    release_activation: The last command that uses the block in the half.
    release_weight: The last command that uses the block in the half.
    """
    return {
        "m": DIM_WIDTH, "k": DIM_WIDTH, "n": DIM_WIDTH,
        "mode": ArrayMode,
        "accumulate": PsumSource,
        "keep": 1,
        "activation_half": 1, "weight_half": 1, "psum_half": 1,
        "release_activation": 1, "release_weight": 1,
    }


@fixed_struct
def gemm_response() -> Fields:
    """The outcome of a GEMM command.

    Members
    -------
    status: Whether the command was carried out, or what was wrong with it.
    cycles: Cycles from first operand to last result, both included; 0 on an error.
    """
    return {
        "status": EngineStatus,
        "cycles": 32,
    }


@struct
def activation_beat(p: ComputeEngineParams) -> Fields:
    """``rows`` consecutive activations of one row: element m, k is in word m * ceil(K / rows) + k // rows.

    Members
    -------
    data: Activations, signed integers.
    half: Half of the memory that the block fills.
    last: The block ends with this beat.
    """
    return {"data": data.ArrayLayout(signed(p.operand_width), p.rows), "half": 1, "last": 1}


@struct
def weight_beat(p: ComputeEngineParams) -> Fields:
    """A rows x cols sub-tile, row-major: element k, n is in word n // cols * ceil(K / rows) + k // rows.

    Members
    -------
    data: Weights, signed integers.
    half: Half of the memory that the block fills.
    last: The block ends with this beat.
    """
    return {"data": data.ArrayLayout(signed(p.operand_width), p.rows * p.cols),
                              "half": 1, "last": 1}


@struct
def psum_beat(p: ComputeEngineParams) -> Fields:
    """``cols`` partial sums of one row: element m, n is in word m * ceil(N / cols) + n // cols.

    Members
    -------
    data: Partial sums, signed integers.
    last: The block ends with this beat.
    """
    return {"data": data.ArrayLayout(signed(p.psum_width), p.cols), "last": 1}


@struct
def result_beat(p: ComputeEngineParams) -> Fields:
    """Results in the order of :func:`psum_beat`; lanes at or beyond N are not kept and not defined.

    Members
    -------
    data: Results, signed integers.
    keep: Lanes that count, a bit each.
    last: The block ends with this beat.
    """
    return {"data": data.ArrayLayout(signed(p.psum_width), p.cols),
                              "keep": unsigned(p.cols), "last": 1}


def gemm_job(p: ComputeEngineParams) -> data.StructLayout:
    """A checked command on its way from the decoder to the sequencer, in words and tiles."""
    return data.StructLayout({
        "groups": range(p.psum_depth + 1),          # systolic passes of up to `rows` rows
        "singles": range(p.psum_depth + 1),         # rows left for vector-lane mode
        "rows_last": range(p.rows + 1),             # rows of the last systolic pass
        "k_words": range(p.activation_depth + 1),   # ceil(K / rows)
        "k_tail": p.rows,                           # operands of the last word that lie below K, a mask
        "n_tiles": range(p.psum_depth + 1),         # ceil(N / cols)
        "n_tail": p.cols,                           # lanes of the last tile that lie below N, a mask
        "size": range(p.psum_depth + 1),            # result rows: M * n_tiles
        "accumulate": 1, "keep": 1,
        "activation_half": 1, "weight_half": 1, "psum_half": 1,
        "release_activation": 1, "release_weight": 1,
    })


def array_step(p: ComputeEngineParams) -> data.StructLayout:
    """One cycle of the sequencer: what is read, and what the array makes of it two cycles later."""
    return data.StructLayout({
        "valid": 1, "systolic": 1, "first": 1, "last": 1,
        "row": range(p.rows),                            # row of a systolic pass whose word is read
        "activation_addr": range(2 * p.activation_depth),
        "mask": p.rows,                                  # operands of the word that count
        "weight_en": 1,
        "weight_addr": range(2 * p.weight_depth),
    })


def result_tile(p: ComputeEngineParams) -> data.StructLayout:
    """What becomes of the next results of the array: a systolic tile or one vector-lane row."""
    return data.StructLayout({
        "base": range(p.psum_depth),        # word of its first row; the next is n_tiles further
        "systolic": 1,
        "rows": range(p.rows + 1),          # rows that count
        "end": 1,                           # last tile of the command
    })
