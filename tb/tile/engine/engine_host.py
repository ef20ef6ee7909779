"""The engine's host: drives programs through the Verilated engine and reads results and cycles back."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from rtl.tile.engine.compute_engine import ComputeEngine
from rtl.tile.engine.layouts import activation_beat, gemm_command, gemm_response, psum_beat, result_beat, weight_beat
from sim_models.golden.tile.engine.compute_engine import STATUS, Response
from sim_models.mapping.gemm import Command, Program
from sim_models.params.tile.engine.compute_engine import ComputeEngineParams
from tb.common.native import NativeLibrary, NativeSim
from tb.common.packing import Codec

__all__ = ["EngineCodecs", "EngineHost", "Outcome"]


class EngineCodecs:
    """Between programs and the beats of the engine's streams.

    Parameters
    ----------
    p:
        The engine.
    """

    def __init__(self, p: ComputeEngineParams) -> None:
        self.p = p
        self.command, self.response = Codec(gemm_command), Codec(gemm_response)
        self.result = Codec(result_beat(p))
        self.fills = {"i_activation": Codec(activation_beat(p)), "i_weight": Codec(weight_beat(p)),
                      "i_psum": Codec(psum_beat(p))}

    def block(self, stream: str, words: np.ndarray, half: int | np.ndarray | None = None) -> np.ndarray:
        """Beats of one block; partial sums go to no half."""
        last = np.zeros(len(words), np.int64)
        last[-1] = 1
        fields = {"data": words, "last": last} | ({} if half is None else {"half": half})
        return self.fills[stream].pack(fields)

    def commands(self, commands: Sequence[Command]) -> np.ndarray:
        """Beats of commands."""
        rows = [dataclasses.asdict(c) for c in commands]
        return self.command.pack({name: np.array([int(r[name]) for r in rows]) for name in rows[0]})

    def responses(self, beats: np.ndarray) -> list[Response]:
        """Responses from beats."""
        fields = self.response.unpack(beats)
        return [Response(STATUS[s], int(c)) for s, c in zip(fields["status"], fields["cycles"], strict=True)]

    def queues(self, program: Program) -> dict[str, np.ndarray]:
        """Beats for every input stream."""
        beats = {stream: np.concatenate([self.block(stream, words, half) for half, words in queue])
                 for stream, queue in (("i_activation", program.activations), ("i_weight", program.weights)) if queue}
        if program.psums:
            beats["i_psum"] = np.concatenate([self.block("i_psum", words) for words in program.psums])
        return {**beats, "i_command": self.commands(program.commands)}

    def results(self, beats: np.ndarray, lanes: Sequence[int]) -> np.ndarray:
        """Words of result beats, int64 (beats, cols), with lanes that are not kept set to 0.

        Parameters
        ----------
        beats:
            uint8 payloads.
        lanes:
            Lanes that each beat must keep.

        Raises
        ------
        AssertionError
            A beat keeps other lanes than it should.
        """
        fields = self.result.unpack(beats)
        want = (1 << np.asarray(lanes, dtype=object)) - 1
        wrong = np.flatnonzero(fields["keep"] != want)
        if len(wrong):
            at = wrong[0]
            raise AssertionError(f"result beat {at}: keep {want[at]:#x} was wanted, {fields['keep'][at]:#x} came")
        kept = np.arange(self.p.cols) < np.asarray(lanes)[:, None]
        return np.where(kept, fields["data"], 0)


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a program gave.

    Members
    -------
    result: int64 (M, N)
    responses: list of Response
        One per command.
    answered: int64 (commands,)
        Clock cycle in which each response came.
    cycles: int
        From the first beat that was queued with this program to its own last result.
    """

    result: np.ndarray
    responses: list[Response]
    answered: np.ndarray
    cycles: int


class EngineHost:
    """Programs on a Verilated engine.

    Parameters
    ----------
    p:
        The engine.
    build_root:
        Folder of all builds.
    seed:
        Of pauses and of uninitialised memory.
    library:
        A compiled engine to be used instead of building one.
    """

    def __init__(self, p: ComputeEngineParams, build_root: Path, *, seed: int = 1,
                 library: NativeLibrary | None = None) -> None:
        self.p = p
        self.codecs = EngineCodecs(p)
        self.sim = NativeSim(library or ComputeEngine(p), build_root, seed=seed)
        self.sim.reset()

    def run(self, programs: Sequence[Program], max_cycles: int | None = None) -> list[Outcome]:
        """Queue programs all at once, and take their results apart.

        Raises
        ------
        NativeTimeout
            The engine did not finish.
        """
        sim, start = self.sim, self.sim.cycle
        for program in programs:
            for stream, beats in self.codecs.queues(program).items():
                sim.push(stream, beats)
        beats, commands = sum(q.beats for q in programs), sum(len(q.commands) for q in programs)
        if max_cycles is None:
            work = sum(c.m * -(-c.k // self.p.rows) * -(-c.n // self.p.cols) for q in programs for c in q.commands)
            max_cycles = 64 * self.p.rows * (work + 64 * (commands + 1))
        sim.run({"o_response": sim.total("o_response") + commands, "o_result": sim.total("o_result") + beats},
                max_cycles)
        return [self._take(program, start) for program in programs]

    def _take(self, program: Program, start: int) -> Outcome:
        payloads, stamps = self.sim.take("o_result", program.beats)
        responses, answered = self.sim.take("o_response", len(program.commands))
        words = self.codecs.results(payloads, _lanes(program))
        return Outcome(program.assemble(words), self.codecs.responses(responses), answered,
                       int(stamps[-1]) - start + 1)


def _lanes(program: Program) -> list[int]:
    """Lanes below N of each result beat."""
    lanes = []
    cols = program.p.cols
    for part in program.outputs:
        n = part.cols.stop - part.cols.start
        row = [min(cols, n - at) for at in range(0, n, cols)]
        lanes += row * (part.rows.stop - part.rows.start)
    return lanes
