"""Commands, words and sums of a pseudo-channel as payloads, and a host that runs them on the Verilated model."""

from collections.abc import Sequence

import numpy as np

from rtl.pim.channel.layouts import pim_command, pim_response, sums_beat
from sim_models.golden.pim.channel.channel_commands import OPS, REDUCES, SPREADS, STATUSES, Command
from sim_models.golden.pim.channel.pseudo_channel import Outcome, PseudoChannel, Response
from sim_models.params.pim.channel.pseudo_channel import PseudoChannelParams
from tb.common.native import NativeSim
from tb.common.packing import Codec
from tb.common.scoreboard import compare
from tb.pim.channel.channel_sessions import Session

__all__ = ["ChannelCodecs", "ChannelHost", "compare_responses"]

#: more than any session takes
LIMIT = 2_000_000
_NUMBERS = ("address", "count", "base", "first", "outputs", "clear", "int8", "group", "bank")


class ChannelCodecs:
    """Packs what goes in, and unpacks what comes out."""

    def __init__(self, p: PseudoChannelParams) -> None:
        self.p = p
        self.command, self.response, self.sums = Codec(pim_command), Codec(pim_response), Codec(sums_beat(p))

    def commands(self, commands: Sequence[Command]) -> np.ndarray:
        """Payloads of commands."""
        return self.command.pack(
            op=[OPS.index(c.op) for c in commands], spread=[SPREADS.index(c.spread) for c in commands],
            reduce=[REDUCES.index(c.reduce) for c in commands],
            **{name: [int(getattr(c, name)) for c in commands] for name in _NUMBERS})

    def data(self, data: np.ndarray) -> np.ndarray:
        """Payloads of words, uint16 (n, lanes)."""
        return np.ascontiguousarray(data.astype("<u2")).view(np.uint8).reshape(len(data), -1)

    def responses(self, payloads: np.ndarray) -> list[Response]:
        """Responses of payloads."""
        f = self.response.unpack(payloads)
        return [Response(STATUSES[s], int(c), int(h), int(m)) for s, c, h, m in zip(
            f["status"], f["cycles"], f["hits"], f["misses"], strict=True)]

    def beats(self, outcome: Outcome) -> np.ndarray:
        """Payloads of the sums that are expected, all of which must have a value."""
        if not outcome.beats:
            return np.zeros((0, self.sums.nbytes), np.uint8)
        table = [[s for s in beat if s is not None] for beat in outcome.beats]
        flags = {name: [sum(getattr(s, name) << lane for lane, s in enumerate(beat)) for beat in table]
                 for name in ("positive", "negative", "nan")}
        return self.sums.pack(value=np.array([[s.value for s in beat] for beat in table], object),
                              last=np.array(outcome.last, int), int8=np.array(outcome.int8, int), **flags)


class ChannelHost:
    """A pseudo-channel in the simulator and its golden model, which run the same sessions.

    Parameters
    ----------
    sim:
        The model; it is reset.
    p:
        Its parameters.
    """

    def __init__(self, sim: NativeSim, p: PseudoChannelParams) -> None:
        self.sim, self.p = sim, p
        self.codecs, self.model = ChannelCodecs(p), PseudoChannel(p)
        self.restart()

    def restart(self, cycles: int = 1) -> None:
        """Reset both."""
        self.sim.reset(cycles)
        self.model.reset()
        self._start = self.sim.cycle
        self.rate(1.0)

    def rate(self, *probabilities: float) -> None:
        """Pace of each stream, or of all."""
        for stream, rate in zip(self.sim.streams, probabilities * 4, strict=False):
            self.sim.rate(stream, rate)

    @property
    def now(self) -> int:
        """Cycles since reset."""
        return self.sim.cycle - self._start

    def send(self, session: Session) -> tuple[list[int], list[int]]:
        """Queue a session, with its pauses; when each command and each word was offered."""
        offered: list[int] = []
        data_offered: list[int] = []
        at = sent = 0
        for part in session.parts:
            if part.data:
                self.sim.push("i_data", self.codecs.data(session.data[sent:sent + part.data]))
                data_offered += [self.now] * part.data
            if part.commands:
                self.sim.push("i_command", self.codecs.commands(session.commands[at:at + part.commands]))
                offered += [self.now] * part.commands
            at, sent = at + part.commands, sent + part.data
            if part.pause:
                self.sim.step(part.pause)
        return offered, data_offered

    def run(self, session: Session, name: str, *, exact: bool = True) -> Outcome:
        """Run a session and compare everything; ``exact``: cycles, too (all streams at full pace)."""
        sim, before = self.sim, {s: self.sim.total(s) for s in ("o_response", "o_sums")}
        offered, data_offered = self.send(session)
        outcome = self.model.run(session.commands, session.data, offered=offered, data_offered=data_offered)
        sim.run({"o_response": before["o_response"] + len(session.commands),
                 "o_sums": before["o_sums"] + len(outcome.beats)}, LIMIT)
        sim.step(40)
        payloads, stamps = sim.take("o_response")
        responses = self.codecs.responses(payloads)
        compare_responses(session.commands, responses, outcome.responses, name, exact=exact)
        sums, sum_stamps = sim.take("o_sums")
        compare(len(sums), len(outcome.beats), f"{name}: beats")
        if outcome.beats:
            compare(sums, self.codecs.beats(outcome), f"{name}: sums")
        compare(sim.get("error"), 0, f"{name}: rule of DRAM that was broken")
        if exact:
            compare(stamps - self._start, outcome.response_times, f"{name}: cycles in which responses come")
            compare([*(sum_stamps - self._start), self.now], [*outcome.beat_times, self.now],
                    f"{name}: cycles in which sums come")
        return outcome


def compare_responses(commands: Sequence[Command], got: Sequence[Response], want: Sequence[Response], name: str, *,
                      exact: bool) -> None:
    """Statuses, counts of accesses, and if ``exact`` all members of responses."""
    for i, (c, g, w) in enumerate(zip(commands, got, want, strict=True)):
        where = f"{name}, command {i} of {len(commands)}, {c}"
        if exact:
            assert g == w, f"{where}: {g} came, {w} was wanted"
        else:
            assert g.status == w.status, f"{where}: {g.status} came, {w.status} was wanted"
            assert (g.hits + g.misses, g.cycles > 0) == (w.hits + w.misses, w.cycles > 0), (
                f"{where}: {g} came, as many accesses as in {w} were wanted")
    compare(len(got), len(want), f"{name}: responses")
