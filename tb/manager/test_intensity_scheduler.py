"""Bench of the operator scheduler: both mappings in every cycle against the golden model, and hysteresis."""

from typing import Any

import numpy as np

from sim_models.golden.manager.intensity_scheduler import PIM, TILES, Inputs, IntensityScheduler
from tb.common import params
from tb.common.bench import bench_test
from tb.common.clock import cycles, reset, rng, start
from tb.common.scoreboard import compare

VARIANTS: dict[str, dict[str, object]] = {
    "default": {},
    "smallest": {"request_width": 1, "count_width": 1, "whole_width": 1, "fraction_width": 0},
    "largest": {"request_width": 8, "count_width": 13, "whole_width": 13, "fraction_width": 8},
}


class Play:
    """The device and its model, driven alike."""

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        self.model = IntensityScheduler(params())
        self.got: list[list[int]] = []
        self.want: list[list[int]] = []

    async def cycle(self, i: Inputs) -> list[int]:
        """One cycle; the mapping of before its edge."""
        d = self.dut
        tokens, requests = i.round or (0, 0)
        for name, value in (
                ("step", i.drafting is not None), ("drafting", i.drafting or 0), ("round", i.round is not None),
                ("tokens", tokens), ("requests", requests), ("dynamic", i.dynamic),
                ("initial_dlm_fc", i.initial[0]), ("initial_tlm_attention", i.initial[1]),
                ("dlm_fc_low", i.fc[0]), ("dlm_fc_high", i.fc[1]),
                ("tlm_attention_low", i.attention[0]), ("tlm_attention_high", i.attention[1])):
            getattr(d, name).value = int(value)
        await cycles(1)
        self.got.append([int(d.dlm_fc.value), int(d.tlm_attention.value), int(d.moved.value)])
        self.want.append([*self.model.places, self.model.moved[0] + 2 * self.model.moved[1]])
        self.model.step(i)
        return self.got[-1]

    def finish(self) -> None:
        compare(self.got, self.want, "[cycle, {dlm_fc, tlm_attention, moved}]")


def anything(gen: np.random.Generator) -> Inputs:
    """Counts near the thresholds as often as anywhere, thresholds in order."""
    p = params()
    most, tokens, top = 1 << p.request_width, (1 << p.count_width) - 1, (1 << p.threshold_width) - 1
    fc = sorted(int(v) for v in gen.integers(0, 2 * most, 2))
    requests = int(gen.integers(0, most + 1))
    taken = int(gen.integers(0, tokens + 1))
    exact = (taken << p.fraction_width) // max(requests, 1)
    near = [min(max(exact + int(d), 0), top) for d in gen.integers(-1, 2, 2)]
    attention = sorted(near if gen.random() < 0.5 else [int(v) for v in gen.integers(0, top + 1, 2)])
    return Inputs(
        drafting=int(gen.choice([fc[0], fc[1], max(fc[0] - 1, 0), int(gen.integers(most + 1))]))
        if gen.random() < 0.6 else None,
        round=(taken, requests) if gen.random() < 0.6 else None, dynamic=bool(gen.random() < 0.9),
        initial=(int(gen.integers(2)), int(gen.integers(2))), fc=(fc[0], fc[1]),
        attention=(attention[0], attention[1]))


@bench_test(timeout_us=400)
async def random_inputs(dut: Any) -> None:
    """Anything in any cycle, with resets between."""
    await start(dut)
    gen, play = rng(), Play(dut)
    for _ in range(8):
        for _ in range(400):
            await play.cycle(anything(gen))
        await reset(dut, int(gen.integers(1, 4)))
        play.model.reset()
    play.finish()


@bench_test(timeout_us=200)
async def hysteresis(dut: Any) -> None:
    """Up at high, down below low, and nothing in between; two cycles after the count; without one, never."""
    await start(dut)
    play, p = Play(dut), params()
    most = 1 << p.request_width
    low, high = most // 2, most
    both: dict[str, Any] = {"fc": (low, high), "attention": (1 << p.fraction_width, 1 << p.fraction_width)}
    await play.cycle(Inputs(drafting=high, **both))
    compare((await play.cycle(Inputs(**both)))[0], PIM, "one cycle after the count")
    compare((await play.cycle(Inputs(**both)))[::2], [TILES, 1], "two cycles after it")
    for drafting, place in ((low, TILES), (0, TILES), (low - 1, PIM if low > 1 else TILES), (high - 1, PIM),
                            (high, TILES), (low, TILES)):
        if (drafting, place) == (high - 1, PIM) and low <= 1:
            continue
        await play.cycle(Inputs(drafting=drafting, **both))
        await play.cycle(Inputs(**both))
        compare((await play.cycle(Inputs(**both)))[0], place, f"{drafting} requests draft on")
    for taken, requests, place in ((1, 1, TILES), (1, 2, PIM), (1, 0, PIM), (0, 0, PIM), (1, 1, TILES), (0, 1, PIM)):
        await play.cycle(Inputs(round=(taken, requests), **both))
        await play.cycle(Inputs(**both))
        compare((await play.cycle(Inputs(**both)))[1], place, f"{taken} tokens of {requests} requests")
    for initial in ((TILES, PIM), (PIM, TILES)):
        await play.cycle(Inputs(dynamic=False, initial=initial))
        compare((await play.cycle(Inputs(dynamic=False, drafting=most, round=(1, 1), initial=initial)))[:2],
                list(initial), "the initial mapping")
    play.finish()
