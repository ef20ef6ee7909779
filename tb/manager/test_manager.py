"""Bench of the Manager: every output in every cycle against the golden model, and the text of every request."""

from typing import Any

import numpy as np

from sim_models.golden.manager.draft_controller import CONFIDENCE, FIXED
from sim_models.golden.manager.manager import COUNTERS, Manager, Outputs, Switches
from tb.common import params
from tb.common.bench import bench_test
from tb.common.clock import cycles, reset, rng, start
from tb.common.scoreboard import compare
from tb.manager.manager_engines import (
    Engines,
    Widths,
    expected_texts,
    outputs,
    packed,
    random_traces,
    settings_value,
    unpacked,
)

VARIANTS: dict[str, dict[str, object]] = {
    "default": {},
    "one_lane": {"request_width": 3, "lane_width": 0, "entries": 7, "eager_entries": 16, "token_width": 6},
    "one_entry": {"request_width": 1, "lane_width": 1, "entries": 1, "eager_entries": 1, "draft_width": 1,
                  "token_width": 6, "position_width": 8},
    "two_entries": {"request_width": 2, "lane_width": 1, "entries": 2, "eager_entries": 2, "token_width": 6},
}

_IN, _OUT = ("requests", "drafted", "verdicts"), ("draft", "verify", "emitted")
#: a threshold that falls with the load
TABLE = (0x8000, 0x7000, 0x6000, 0x4000, 0x2000, 0x1000, 1, 0)
#: settings that matter most; sizes are cut to what the device has
SWITCHES = (
    Switches(), Switches(policy=FIXED, max_draft=3, shared=False, eager=False, capacity=24, engines=2),
    Switches(shared=False, eager=False, capacity=3), Switches(eager=False, capacity=8),
    Switches(max_draft=0), Switches(capacity=1, end_token=7), Switches(tau=0, start=3, engines=2, dlm_fc=(1, 2)),
    Switches(tau=0x8000, dynamic=False, initial=(1, 1), end_token=7),
    Switches(policy=CONFIDENCE, tau=0x6000, engines=2), Switches(taus=TABLE, eager=False),
    Switches(policy=CONFIDENCE, taus=TABLE),
)


class Play:
    """The device with engines, and its model beside it."""

    def __init__(self, dut: Any, gen: np.random.Generator) -> None:
        self.dut, self.p, self.gen = dut, params(), gen
        self.widths = Widths.of(self.p)
        self.got: list[list[int]] = []
        self.want: list[list[int]] = []

    def _drive(self, i: Any) -> None:
        d = self.dut
        for name in _IN:
            value = getattr(i, name)
            getattr(d, f"{name}__valid").value = int(value is not None)
            getattr(d, f"{name}__payload").value = packed(getattr(self.widths, name), value) if value else 0
        for name in _OUT:
            getattr(d, f"{name}__ready").value = int(getattr(i, f"{name}_ready"))
        d.softmax.value = int(i.softmax_busy) | int(i.masked) << 1

    def _read(self) -> Outputs:
        d = self.dut
        ready = [bool(int(getattr(d, f"{name}__ready").value)) for name in _IN]
        beats = [unpacked(getattr(self.widths, name), int(getattr(d, f"{name}__payload").value))
                 if int(getattr(d, f"{name}__valid").value) else None for name in _OUT]
        return outputs(ready, beats, bool(int(d.busy.value)), int(d.dlm_fc.value), int(d.tlm_attention.value))

    def numbers(self, o: Outputs) -> list[int]:
        """Outputs as numbers."""
        beats = [-1 if b is None else packed(getattr(self.widths, name), b)
                 for name, b in zip(_OUT, (o.draft, o.verify, o.emitted), strict=True)]
        return [int(o.requests_ready), int(o.drafted_ready), int(o.verdicts_ready), *beats, int(o.busy), *o.mapping]

    def engines(self, switches: Switches, count: int, length: int) -> Engines:
        """Engines of random latency around random texts."""
        gen, slow = self.gen, self.gen.integers(1, 120, 2)
        traces = random_traces(gen, min(count, self.p.requests), length, end=switches.end_token)
        return Engines(traces, lambda *_: int(gen.integers(1, slow[0] + 1)),
                       lambda *_: int(gen.integers(1, 2 * slow[1] + 1)), lanes=self.p.lanes, gen=gen)

    async def run(self, switches: Switches, engines: Engines, limit: int, ready: float) -> bool:
        """Reset and run; whether everything came to an end within so many cycles."""
        d, model = self.dut, Manager(self.p, switches)
        d.settings.value = settings_value(self.p, switches)
        for name in _IN:
            getattr(d, f"{name}__valid").value = 0
        await reset(d, int(self.gen.integers(1, 4)))
        for now in range(limit):
            # streams are still in the cycle after a reset
            i = engines.inputs(now, ready) if now else engines.nothing
            self._drive(i)
            await cycles(1)
            got, want = self._read(), model.step(i)
            self.got.append(self.numbers(got))
            self.want.append(self.numbers(want))
            if got != want:
                self.finish()
            engines.observe(now, i, got)
            if engines.done and not got.busy:
                model.check()
                self._drive(engines.nothing)    # counters show what was 3 cycles before
                await cycles(3)
                compare(list(unpacked((32,) * len(COUNTERS), int(d.counters.value))),
                        [model.counters[name] for name in COUNTERS], "counters")
                return True
        return False

    def finish(self) -> None:
        """Compare everything."""
        compare(np.array(self.got, object), np.array(self.want, object),
                f"[cycle, {{{', '.join((*_IN, *_OUT))}, busy, mapping}}]")


@bench_test(timeout_us=5000)
async def texts_are_those_of_the_target(dut: Any) -> None:
    """Every variant, random engines, uneven acceptance: tokens, cycles and counters."""
    await start(dut)
    play = Play(dut, rng())
    for switches in (s.fitted(play.p) for s in SWITCHES):
        engines = play.engines(switches, int(play.gen.integers(1, 9)), 10)
        ended = await play.run(switches, engines, 20000, float(play.gen.choice([1, 0.5])))
        compare(int(ended), 1, "requests complete")
        for text, want in zip(engines.texts, expected_texts(engines.requests, switches.end_token), strict=True):
            compare(text, want, "tokens")
    play.finish()


@bench_test(timeout_us=5000)
async def reset_at_a_random_cycle(dut: Any) -> None:
    """Whatever it was doing, afterwards it decodes as if new."""
    await start(dut)
    play = Play(dut, rng())
    for switches in (s.fitted(play.p) for s in SWITCHES[:4]):
        await play.run(switches, play.engines(switches, 8, 10), int(play.gen.integers(2, 900)), 0.7)
        engines = play.engines(switches, 3, 5)
        compare(int(await play.run(switches, engines, 20000, 1)), 1, "requests complete")
        for text, want in zip(engines.texts, expected_texts(engines.requests, switches.end_token), strict=True):
            compare(text, want, "tokens")
    play.finish()
