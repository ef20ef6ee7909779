"""Every struct that crosses a block boundary."""

from amaranth.hdl import signed, unsigned
from amaranth.lib import data, enum

from sim_models.params.tile.engine.compute_engine import DIM_WIDTH, ComputeEngineParams

__all__ = ["ArrayMode", "EngineStatus", "PsumSource", "activation_beat", "array_step", "gemm_command", "gemm_job",
           "gemm_response", "psum_beat", "result_beat", "result_tile", "weight_beat"]


class ArrayMode(enum.Enum, shape=2):
    """Which rows of a GEMM go through which mode of the array."""

    #: floor(M / rows) systolic passes, the remaining rows one by one in vector-lane mode
    AUTO = 0
    SYSTOLIC = 1
    VECTOR = 2


class PsumSource(enum.Enum, shape=2):
    """Which partial sums a GEMM command adds to its product."""

    NONE = 0
    #: the next block of the partial-sum stream
    STREAMED = 1
    #: the results that an earlier command kept in the half
    KEPT = 2


class EngineStatus(enum.Enum, shape=3):
    """Outcome of a GEMM command."""

    OK = 0
    #: M, K or N is zero, or the operands or results exceed half a local memory
    SHAPE = 1
    #: the mode is not built into this engine, or mode or source of partial sums is none of those above
    MODE = 2
    #: the activation block does not have M * ceil(K / rows) words
    ACTIVATION = 3
    #: the weight block does not have ceil(K / rows) * ceil(N / cols) words
    WEIGHT = 4
    #: the partial sums, streamed or kept, do not have M * ceil(N / cols) words; none are kept in the half
    PSUM = 5


gemm_command = data.StructLayout({
    "m": DIM_WIDTH, "k": DIM_WIDTH, "n": DIM_WIDTH,
    "mode": ArrayMode,
    "accumulate": PsumSource,
    "keep": 1,                  # results stay in the partial-sum half instead of becoming an output block
    "activation_half": 1, "weight_half": 1, "psum_half": 1,
    "release_activation": 1, "release_weight": 1,     # the last command that uses the block in the half
})

gemm_response = data.StructLayout({
    "status": EngineStatus,
    "cycles": 32,               # from first operand to last result, both included; 0 on an error
})


def activation_beat(p: ComputeEngineParams) -> data.StructLayout:
    """``rows`` consecutive activations of one row: element m, k is in word m * ceil(K / rows) + k // rows."""
    return data.StructLayout({"data": data.ArrayLayout(signed(p.operand_width), p.rows), "half": 1, "last": 1})


def weight_beat(p: ComputeEngineParams) -> data.StructLayout:
    """A rows x cols sub-tile, row-major: element k, n is in word n // cols * ceil(K / rows) + k // rows."""
    return data.StructLayout({"data": data.ArrayLayout(signed(p.operand_width), p.rows * p.cols),
                              "half": 1, "last": 1})


def psum_beat(p: ComputeEngineParams) -> data.StructLayout:
    """``cols`` partial sums of one row: element m, n is in word m * ceil(N / cols) + n // cols."""
    return data.StructLayout({"data": data.ArrayLayout(signed(p.psum_width), p.cols), "last": 1})


def result_beat(p: ComputeEngineParams) -> data.StructLayout:
    """Results in the order of :func:`psum_beat`; lanes at or beyond N are not kept and not defined."""
    return data.StructLayout({"data": data.ArrayLayout(signed(p.psum_width), p.cols),
                              "keep": unsigned(p.cols), "last": 1})


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
