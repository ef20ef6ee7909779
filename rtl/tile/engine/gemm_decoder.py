"""Checks a GEMM command and puts it in words and tiles.

A command waits for its blocks, which :mod:`rtl.tile.compute_engine` defines, and takes the same ones whether it is
carried out or refused. It is refused when its shape does not fit the local memories, when its mode is not built, or
when its blocks do not have the size that its shape demands. Sizes are products; they are formed serially, in
parallel with the command before.

Latency: 4 cycles and one for each bit of the larger of ceil(K / rows) and ceil(N / cols), where no block is waited
for. A streamed block of partial sums is taken from the third of these cycles on. Throughput: one command in that
time and one cycle.
"""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from rtl.parts.logic import in_half
from rtl.tile.engine.layouts import ArrayMode, EngineStatus, PsumSource, gemm_command, gemm_job
from rtl.unit import Unit, in_reset
from sim_models.params.tile.engine.compute_engine import DIM_WIDTH, ComputeEngineParams

__all__ = ["GemmDecoder"]


class GemmDecoder(Unit):
    """Command decoder of the compute engine.

    Members
    -------
    i_command: In(stream of gemm_command)
    o_job: Out(stream of gemm_job)
    activation_available, weight_available, psum_available: In(2)
        Halves that hold a block.
    activation_size, weight_size, psum_size: In(ArrayLayout(..., 2))
        Words of each block.
    psum_claimed: In(2)
        Partial-sum halves that commands on their way read or write.
    psum_half: Out(1), psum_open: Out(1)
        The partial-sum half of the command, and whether it is ready for a streamed block.
    idle: In(1)
        No command is on its way and no response waits.
    refused: Out(1)
        Strobe: the command was refused with ``status``; to be answered.
    status: Out(EngineStatus)
    release_activation, release_weight: Out(2)
        Halves that a refused command releases. Strobe.
    release_psum: Out(2)
        Halves to be emptied: of a refused command, or for a streamed block. Strobe.
    """

    block = "gemm_decoder"

    i_command: Any
    o_job: Any
    activation_available: Signal
    weight_available: Signal
    psum_available: Signal
    psum_claimed: Signal
    activation_size: data.View
    weight_size: data.View
    psum_size: data.View
    psum_half: Signal
    psum_open: Signal
    idle: Signal
    refused: Signal
    status: Any
    release_activation: Signal
    release_weight: Signal
    release_psum: Signal

    def __init__(self, params: ComputeEngineParams | None = None) -> None:
        p = params or ComputeEngineParams()
        self.p = p

        def sizes(depth: int) -> Any:
            return In(data.ArrayLayout(range(depth + 1), 2))
        super().__init__(p, {
            "i_command": In(stream.Signature(gemm_command)), "o_job": Out(stream.Signature(gemm_job(p))),
            "activation_available": In(2), "weight_available": In(2), "psum_available": In(2), "psum_claimed": In(2),
            "activation_size": sizes(p.activation_depth), "weight_size": sizes(p.weight_depth),
            "psum_size": sizes(p.psum_depth),
            "psum_half": Out(1), "psum_open": Out(1), "idle": In(1), "refused": Out(1), "status": Out(EngineStatus),
            "release_activation": Out(2), "release_weight": Out(2), "release_psum": Out(2),
        })

    def body(self, platform: Any) -> Module:
        m = Module()
        p = self.p
        command = Signal(gemm_command)
        k_words = Signal(range((1 << DIM_WIDTH) // p.rows + 2))
        n_tiles = Signal(range((1 << DIM_WIDTH) // p.cols + 2))
        row_bits, col_bits = p.rows.bit_length() - 1, p.cols.bit_length() - 1
        m.d.comb += [k_words.eq((command.k + p.rows - 1) >> row_bits),
                     n_tiles.eq((command.n + p.cols - 1) >> col_bits)]

        shape_fault, mode_fault = self._faults(m, command, k_words, n_tiles)
        sizes, start, done = self._sizes(m, command, k_words, n_tiles)
        self._job(m, command, k_words, n_tiles, sizes)

        a, w, s = command.activation_half, command.weight_half, command.psum_half
        big = {name: size > depth for (name, size), depth in
               zip(sizes.items(), (p.activation_depth, p.weight_depth, p.psum_depth), strict=True)}
        waiting = Signal()                  # there is no command
        there, partial = self._blocks(m, command, waiting)
        present = Signal()
        m.d.comb += present.eq(there["activation"] & there["weight"] & partial)
        psum_fault = (command.accumulate != PsumSource.NONE) & (
            ~self.psum_available.bit_select(s, 1) | (self.psum_size[s] != sizes["results"]))
        # A block of no words does not exist; what a refused command releases it waits for.
        release = {"activation": command.release_activation & (command.m != 0) & (command.k != 0),
                   "weight": command.release_weight & (command.k != 0) & (command.n != 0)}
        final = Signal()
        m.d.comb += final.eq(self.idle & partial & (there["activation"] | ~release["activation"])
                             & (there["weight"] | ~release["weight"]))

        with m.FSM():
            with m.State("accept"):
                m.d.comb += [waiting.eq(1), self.i_command.ready.eq(~in_reset())]
                m.d.sync += command.eq(self.i_command.payload)
                with m.If(self.i_command.valid & self.i_command.ready):
                    m.next = "check"
            with m.State("check"):
                m.d.comb += start.eq(1)
                m.d.sync += self.status.eq(Mux(shape_fault, EngineStatus.SHAPE, EngineStatus.MODE))
                with m.If(shape_fault | mode_fault):
                    m.next = "refuse"
                with m.Else():
                    m.next = "multiply"
            with m.State("multiply"), m.If(done):
                m.d.sync += self.status.eq(EngineStatus.SHAPE)
                m.next = "wait"
                with m.If(big["activations"] | big["weights"] | big["results"]):
                    m.next = "refuse"
            with m.State("wait"), m.If(present):
                m.next = "offer"
                with m.If(self.activation_size[a] != sizes["activations"]):
                    m.d.sync += self.status.eq(EngineStatus.ACTIVATION)
                    m.next = "refuse"
                with m.Elif(self.weight_size[w] != sizes["weights"]):
                    m.d.sync += self.status.eq(EngineStatus.WEIGHT)
                    m.next = "refuse"
                with m.Elif(psum_fault):
                    m.d.sync += self.status.eq(EngineStatus.PSUM)
                    m.next = "refuse"
            with m.State("offer"):
                m.d.comb += self.o_job.valid.eq(1)
                with m.If(self.o_job.ready):
                    m.next = "accept"
            with m.State("refuse"):
                m.d.comb += self.refused.eq(final)
                with m.If(final):
                    m.next = "accept"

        m.d.comb += [self.release_activation.eq(in_half(self.refused & release["activation"], a)),
                     self.release_weight.eq(in_half(self.refused & release["weight"], w))]
        return m

    def _blocks(self, m: Module, command: Any, waiting: Signal) -> tuple[dict[str, Any], Signal]:
        """Whether the blocks of the command are there.

        Returns
        -------
        tuple
            For activations and weights, whether the half holds a block; whether nothing more can happen to the
            partial sums that the command names.
        """
        a, w, s = command.activation_half, command.weight_half, command.psum_half
        there = {"activation": self.activation_available.bit_select(a, 1),
                 "weight": self.weight_available.bit_select(w, 1)}
        emptied, partial, streamed, settled, empty = (Signal(name=n) for n in (
            "emptied", "partial", "streamed", "settled", "empty"))
        named = (command.accumulate != PsumSource.NONE) | command.keep
        m.d.comb += [
            streamed.eq((command.accumulate == PsumSource.STREAMED) & (command.m != 0) & (command.n != 0)),
            settled.eq(~self.psum_claimed.bit_select(s, 1)),
            partial.eq(Mux(streamed, emptied & self.psum_available.bit_select(s, 1), ~named | settled)),
            # The half may still hold results that nobody asked for; a command that keeps replaces them as it ends.
            empty.eq(streamed & settled & ~emptied & ~waiting),
            self.psum_half.eq(s), self.psum_open.eq(streamed & emptied & ~waiting),
            self.release_psum.eq(in_half(empty | (self.refused & named), s)),
        ]
        m.d.sync += emptied.eq((emptied | empty) & ~waiting)
        return there, partial

    def _faults(self, m: Module, command: Any, k_words: Any, n_tiles: Any) -> tuple[Signal, Signal]:
        """What can be seen before the sizes are known."""
        p = self.p
        shape_fault = Signal()
        mode_fault = Signal()
        m.d.comb += shape_fault.eq(
            (command.m == 0) | (command.k == 0) | (command.n == 0) | (command.k > p.k_max)
            | (command.m > min(p.activation_depth, p.psum_depth)) | (n_tiles > min(p.weight_depth, p.psum_depth)))
        # AUTO is what the engine can do best; SYSTOLIC and VECTOR demand that mode.
        with m.Switch(command.mode):
            with m.Case(ArrayMode.AUTO):
                m.d.comb += mode_fault.eq(0)
            with m.Case(ArrayMode.SYSTOLIC):
                m.d.comb += mode_fault.eq(not p.systolic)
            with m.Case(ArrayMode.VECTOR):
                m.d.comb += mode_fault.eq(not p.vector)
            with m.Default():
                m.d.comb += mode_fault.eq(1)
        with m.Switch(command.accumulate):
            with m.Case(*PsumSource):
                pass
            with m.Default():
                m.d.comb += mode_fault.eq(1)
        return shape_fault, mode_fault

    def _sizes(self, m: Module, command: Any, k_words: Any, n_tiles: Any) -> tuple[dict[str, Signal], Any, Any]:
        """Words of the three blocks: serial multiplication, one bit of the smaller factors a cycle."""
        p = self.p
        limit = max(p.activation_depth, p.weight_depth, p.psum_depth)
        bits = limit.bit_length()
        sizes = {n: Signal(2 * bits, name=f"size_{n}") for n in ("activations", "weights", "results")}
        m_factor = Signal(2 * bits)
        n_factor = Signal(2 * bits)
        k_left = Signal(bits)
        n_left = Signal(bits)
        start = Signal()
        done = Signal()
        m.d.comb += done.eq((k_left == 0) & (n_left == 0))
        with m.If(start):
            m.d.sync += [size.eq(0) for size in sizes.values()]
            m.d.sync += [m_factor.eq(command.m), n_factor.eq(n_tiles), k_left.eq(k_words), n_left.eq(n_tiles)]
        with m.Else():
            m.d.sync += [m_factor.eq(m_factor << 1), n_factor.eq(n_factor << 1),
                         k_left.eq(k_left >> 1), n_left.eq(n_left >> 1)]
            with m.If(k_left[0]):
                m.d.sync += [sizes["activations"].eq(sizes["activations"] + m_factor),
                             sizes["weights"].eq(sizes["weights"] + n_factor)]
            with m.If(n_left[0]):
                m.d.sync += sizes["results"].eq(sizes["results"] + m_factor)
        return sizes, start, done

    def _job(self, m: Module, command: Any, k_words: Any, n_tiles: Any, sizes: dict[str, Signal]) -> None:
        """The payload of the job."""
        p = self.p
        job = self.o_job.payload
        row_bits, col_bits = p.rows.bit_length() - 1, p.cols.bit_length() - 1
        below = command.m[:row_bits]
        ceiling = (command.m + p.rows - 1) >> row_bits
        if not p.vector:
            split = [job.groups.eq(ceiling), job.singles.eq(0)]
        elif not p.systolic:
            split = [job.groups.eq(0), job.singles.eq(command.m)]
        else:
            auto, systolic = command.mode == ArrayMode.AUTO, command.mode == ArrayMode.SYSTOLIC
            split = [job.groups.eq(Mux(systolic, ceiling, Mux(auto, command.m >> row_bits, 0))),
                     job.singles.eq(Mux(systolic, 0, Mux(auto, below, command.m)))]
        whole = (below == 0) | (command.mode == ArrayMode.AUTO) if p.vector else below == 0
        m.d.comb += [
            *split,
            job.rows_last.eq(Mux(whole, p.rows, below)),
            job.k_words.eq(k_words), job.n_tiles.eq(n_tiles), job.size.eq(sizes["results"]),
            job.k_tail.eq(Cat(_below(command.k[:row_bits], i) for i in range(p.rows))),
            job.n_tail.eq(Cat(_below(command.n[:col_bits], i) for i in range(p.cols))),
        ]
        m.d.comb += job.accumulate.eq(command.accumulate != PsumSource.NONE)
        m.d.comb += [job[name].eq(command[name]) for name in (
            "keep", "activation_half", "weight_half", "psum_half", "release_activation",
            "release_weight")]


def _below(tail: Any, index: int) -> Any:
    """Whether ``index`` lies below ``tail``, where a tail of 0 means a whole word."""
    return (tail == 0) | (tail > index)
