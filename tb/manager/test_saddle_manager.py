"""Bench of the Manager with softmax unit and registers: set over AXI4-Lite, fed with logits, served by interrupt."""

from typing import Any

import numpy as np

from sim_models.golden.bus.axi_lite import OKAY
from sim_models.golden.manager.draft_controller import CONFIDENCE, FIXED
from sim_models.golden.manager.manager import COUNTERS, Switches
from sim_models.golden.manager.saddle_manager import Inputs, Outputs, SaddleManager
from tb.bus.axi_lite_master import AxiLiteMaster
from tb.common import params
from tb.common.bench import bench_test
from tb.common.clock import cycles, reset, rng, start
from tb.common.scoreboard import compare
from tb.manager.manager_engines import Engines, Widths, expected_texts, packed, random_traces
from tb.manager.saddle_play import (
    IN,
    OUT,
    Feed,
    address,
    payloads,
    random_vector,
    read_outputs,
    register_words,
)

VARIANTS: dict[str, dict[str, object]] = {
    "default": {},
    "small": {"request_width": 2, "lane_width": 1, "entries": 4, "eager_entries": 4, "token_width": 6,
              "position_width": 9, "logit_lanes": 2},
}

SWITCHES = (Switches(tau=0x2000), Switches(policy=CONFIDENCE, tau=0x3000, end_token=7, capacity=6, engines=2),
            Switches(policy=FIXED, max_draft=2, eager=False))
_SILENT = Inputs(draft_ready=False, verify_ready=False, emitted_ready=False)


class Play:
    """The device with a host and engines, and its model beside it."""

    def __init__(self, dut: Any, gen: np.random.Generator) -> None:
        self.dut, self.p, self.gen = dut, params(), gen
        self.widths, self.bus = Widths.of(self.p), AxiLiteMaster(dut)
        self.got: list[list[int]] = []
        self.want: list[list[int]] = []

    def drive(self, i: Inputs) -> None:
        for name, payload in payloads(self.p, i).items():
            getattr(self.dut, f"{name}__valid").value = int(payload is not None)
            getattr(self.dut, f"{name}__payload").value = payload or 0
        for name in OUT:
            getattr(self.dut, f"{name}__ready").value = int(getattr(i, f"{name}_ready"))

    def outputs(self) -> Outputs:
        return read_outputs(self.p, lambda name: int(getattr(self.dut, name).value))

    def numbers(self, o: Outputs) -> list[int]:
        """Outputs as numbers."""
        beats = [-1 if b is None else packed(getattr(self.widths, name), b)
                 for name, b in zip(OUT, (o.draft, o.verify, o.emitted), strict=True)]
        return [int(o.requests_ready), int(o.logits_ready), int(o.verdicts_ready), *beats, int(o.busy), *o.mapping,
                int(o.irq)]

    async def write(self, at: int, word: int) -> None:
        compare(await self.bus.write(at, word), OKAY, f"response to a write to {at:#x}")

    async def read(self, at: int) -> int:
        response, word = await self.bus.read(at)
        compare(response, OKAY, f"response to a read of {at:#x}")
        return word

    async def begin(self, switches: Switches) -> SaddleManager:
        """Reset and write all settings: the model of the device at rest."""
        self.bus.quiet()
        self.drive(_SILENT)
        await reset(self.dut, int(self.gen.integers(1, 4)))
        for at, word in register_words(self.p, switches, interrupt=True):
            await self.write(at, word)
        rest = 2 * self.p.requests + 8
        await cycles(rest)
        model = SaddleManager(self.p, switches, interrupt=True, error_interrupt=True)
        for _ in range(rest):
            model.step(_SILENT)
        return model

    async def run(self, model: SaddleManager, engines: Engines, feed: Feed, limit: int, ready: float) -> bool:
        """Run; whether everything came to an end within so many cycles."""
        for now in range(limit):
            seen = engines.inputs(now, ready)
            i = feed.inputs(seen)
            self.drive(i)
            await cycles(1)
            got, want = self.outputs(), model.step(i)
            self.got.append(self.numbers(got))
            self.want.append(self.numbers(want))
            if got != want:
                self.finish()
            engines.observe(now, seen, feed.outputs(i, got))
            if engines.done and not got.busy:
                self.drive(_SILENT)
                await cycles(3)
                return True
        return False

    def engines(self, switches: Switches, count: int, length: int) -> Engines:
        """Engines of random latency around random texts."""
        gen, slow = self.gen, self.gen.integers(1, 80, 2)
        traces = random_traces(gen, min(count, self.p.requests), length, end=switches.end_token)
        return Engines(traces, lambda *_: int(gen.integers(1, slow[0] + 1)),
                       lambda *_: int(gen.integers(1, 2 * slow[1] + 1)), lanes=self.p.lanes, gen=gen)

    def feed(self) -> Feed:
        """Vectors of any length from 1."""
        return Feed(self.p, lambda _, token, __: random_vector(self.gen, token, 64))

    def finish(self) -> None:
        """Compare everything."""
        compare(np.array(self.got, object), np.array(self.want, object),
                f"[cycle, {{{', '.join((*IN, *OUT))}, busy, mapping, irq}}]")


@bench_test(timeout_us=5000)
async def logits_in_texts_out(dut: Any) -> None:
    """Settings over the bus, logits in beats, every cycle as the model has it; counters read and interrupt served."""
    await start(dut)
    play = Play(dut, rng())
    for switches in (s.fitted(play.p) for s in SWITCHES):
        model = await play.begin(switches)
        engines = play.engines(switches, 4, 6)
        ended = await play.run(model, engines, play.feed(), 20000, float(play.gen.choice([1, 0.5])))
        compare(int(ended), 1, "requests complete")
        for text, want in zip(engines.texts, expected_texts(engines.requests, switches.end_token), strict=True):
            compare(text, want, "tokens")
        counted = [await play.read(address(play.p, f"count_{name}")) for name in COUNTERS]
        compare(counted, [model.counters[name] for name in COUNTERS], "counters")
        compare(int(dut.irq.value), 1, "interrupt")
        await play.write(address(play.p, "acknowledge"), len(engines.finished))
        await cycles(2)
        compare(int(dut.irq.value), 0, "interrupt, acknowledged")
    play.finish()


@bench_test(timeout_us=5000)
async def reset_at_a_random_cycle(dut: Any) -> None:
    """Whatever it was doing, afterwards it decodes as if new; in reset nothing is taken."""
    await start(dut)
    play = Play(dut, rng())
    for switches in (s.fitted(play.p) for s in SWITCHES[:2]):
        model = await play.begin(switches)
        await play.run(model, play.engines(switches, 8, 10), play.feed(), int(play.gen.integers(2, 700)), 0.7)
        dut.rst.value = 1
        await cycles(1)
        compare([int(getattr(dut, f"{name}__ready").value) for name in IN], [0, 0, 0], "ready in reset")
        model = await play.begin(switches)
        engines = play.engines(switches, 2, 4)
        compare(int(await play.run(model, engines, play.feed(), 20000, 1)), 1, "requests complete")
        for text, want in zip(engines.texts, expected_texts(engines.requests, switches.end_token), strict=True):
            compare(text, want, "tokens")
    play.finish()
