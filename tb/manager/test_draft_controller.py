"""Bench of the draft controller: every output in every cycle against the golden model, and what it promises."""

import dataclasses
from typing import Any

import numpy as np

from sim_models.golden.manager.draft_controller import (
    CONFIDENCE,
    CUMULATIVE,
    FIXED,
    DraftController,
    Drafted,
    Inputs,
    Outputs,
    Settings,
    Update,
)
from sim_models.specdec.fixed import ONE, multiply, quantise
from tb.common import params
from tb.common.bench import bench_test
from tb.common.clock import cycles, reset, rng, start
from tb.common.scoreboard import compare
from tb.manager.held_in_reset import nothing_is_taken
from tb.manager.pools.pool_traffic import packed_token

VARIANTS: dict[str, dict[str, object]] = {
    "default": {},
    "smallest": {"request_width": 1, "token_width": 1, "position_width": 1, "length_width": 1},
    "few_requests": {"request_width": 2, "token_width": 9, "length_width": 3},
    "largest": {"request_width": 8, "token_width": 32, "position_width": 32, "length_width": 12},
}

CHECKED = ("drafted__ready", "update__ready", "to_shared__valid", "to_shared__payload", "to_eager__valid",
           "to_eager__payload", "decided", "decision", "h", "length", "may_draft")


class Play:
    """The device and its model, driven alike."""

    def __init__(self, dut: Any, gen: np.random.Generator) -> None:
        self.dut, self.p, self.gen = dut, params(), gen
        self.model = DraftController(self.p)
        self.got: list[list[int]] = []
        self.want: list[list[int]] = []
        self.longest = (1 << self.p.length_width) - 1
        self.settings = Settings(max_draft=min(16, self.longest))
        self.held: dict[str, Any] = {}
        self.serial = self.request = 0

    async def cycle(self, i: Inputs) -> Outputs:
        """One cycle with these inputs; outputs are noted for :meth:`finish`."""
        self._drive(i)
        await cycles(1)
        got = [int(getattr(self.dut, name).value) for name in CHECKED]
        o = self.model.step(i)
        d = o.decision
        packed = None if d is None else d.request | sum(
            int(bit) << (self.p.request_width + n)
            for n, bit in enumerate((d.stop, d.threshold, d.length, d.end)))
        want = [o.drafted_ready, o.update_ready, o.shared is not None,
                None if o.shared is None else packed_token(self.p, o.shared), o.eager is not None,
                None if o.eager is None else packed_token(self.p, o.eager), d is not None, packed,
                None if d is None else d.h, o.length, o.may_draft]
        self.got.append(got)
        self.want.append([g if w is None else int(w) for g, w in zip(got, want, strict=True)])
        return o

    def _drive(self, i: Inputs) -> None:
        d, p, s = self.dut, self.p, i.settings
        d.drafted__valid.value = int(i.drafted is not None)
        if i.drafted is not None:
            t, at = i.drafted, p.position_width + p.token_width
            d.drafted__payload.value = (t.position | t.token << p.position_width | t.p << at
                                        | int(t.final) << (at + 16))
        d.update__valid.value = int(i.update is not None)
        if i.update is not None:
            d.update__payload.value = int(i.update.restart) | i.update.gone << 1
        for name, value in (
                ("request", i.request),
                ("verifying", i.verifying), ("behind", i.behind), ("shared_room", i.shared_room),
                ("to_shared__ready", i.shared_ready), ("to_eager__ready", i.eager_ready),
                ("policy", s.policy), ("tabled", s.tabled), ("tau", s.tau), ("load", s.load),
                ("taus", sum(t << (16 * n) for n, t in enumerate(s.taus))), ("max_draft", s.max_draft),
                ("stop_at_end", s.stop_at_end), ("end_token", s.end_token)):
            getattr(d, name).value = int(value)

    async def wake(self) -> None:
        """The cycles after a reset in which nothing is taken; what is seen of a draft in them is not defined."""
        for _ in range(self.p.requests + 2):
            await self.cycle(Inputs(settings=self.settings))
            self.want[-1][-2:] = self.got[-1][-2:]

    async def token(self, request: int, drafted: Drafted, **inputs: Any) -> Outputs:
        """A token alone: the outputs of the cycle of its decision."""
        s = self.settings
        await self.cycle(Inputs(request, settings=s))
        o = await self.cycle(Inputs(request, drafted=drafted, settings=s))
        assert o.drafted_ready
        await self.cycle(Inputs(settings=s, shared_ready=False, eager_ready=False, **inputs))
        o = await self.cycle(Inputs(settings=s))
        assert o.decision is not None
        return o

    async def update(self, request: int, update: Update | None = None) -> None:
        """An update alone, a restart by default."""
        await self.cycle(Inputs(request, settings=self.settings))
        o = await self.cycle(Inputs(request, update=update or Update(), settings=self.settings))
        assert o.update_ready

    async def may_draft(self, request: int) -> bool:
        await self.cycle(Inputs(request, settings=self.settings))
        return (await self.cycle(Inputs(settings=self.settings))).may_draft

    def draw(self) -> None:
        """Other settings."""
        gen, p = self.gen, self.p
        levels = [0, 1, ONE // 100, ONE // 10, ONE // 2, ONE - 1, ONE, ONE + 1, 0xFFFF]
        self.settings = Settings(
            policy=int(gen.integers(3)), tabled=bool(gen.integers(2)), tau=int(gen.choice(levels)),
            taus=tuple(int(v) for v in gen.choice(levels, 8)), load=int(gen.integers((1 << p.request_width) + 1)),
            max_draft=min(int(gen.choice([0, 1, 3, 16, self.longest])), self.longest),
            stop_at_end=bool(gen.integers(2)), end_token=int(gen.integers(min(8, 1 << p.token_width))))

    async def traffic(self, count: int, drafted: float, update: float, ready: float, room: float = 0.8) -> None:
        """Random traffic with these probabilities; what is not taken stays offered."""
        gen, p = self.gen, self.p
        requests, stands = min(p.requests, int(gen.integers(1, 12))), False
        for _ in range(count):
            if gen.random() < 0.02:
                self.draw()
            if not self.held and gen.random() < 0.5:
                request = int(gen.integers(requests))
                stands, self.request = stands and request == self.request, request
            if stands and "drafted" not in self.held and gen.random() < drafted:
                token = self.random_token()
                if token is not None:
                    self.held["drafted"] = token
            if stands and "update" not in self.held and gen.random() < update:
                # a token that is on its way only makes the draft longer; one that waits comes behind it
                gone = int(gen.integers(self.model.drafts[self.request].length + 1))
                self.held["update"] = Update(bool(gen.integers(2)), gone)
            stands = True
            flags: dict[str, Any] = {name: bool(gen.random() < rate) for name, rate in (
                ("verifying", 0.3), ("behind", 0.3), ("shared_room", room), ("shared_ready", ready),
                ("eager_ready", ready))}
            o = await self.cycle(Inputs(self.request, **self.held, **flags, settings=self.settings))
            for name in ("drafted", "update"):
                if getattr(o, f"{name}_ready"):
                    self.held.pop(name, None)

    def random_token(self) -> Drafted | None:
        """A token; none if the draft is as long as can be counted."""
        gen, p = self.gen, self.p
        on_its_way = self.model.taken is not None and self.model.taken[0] == self.request
        if self.model.drafts[self.request].length + on_its_way >= self.longest:
            return None
        self.serial += 1
        probability = int(gen.choice([0, 1, ONE // 3, ONE - 1, ONE, 0xFFFF, int(gen.integers(ONE + 1)),
                                      int(ONE * gen.random() ** 0.1)]))
        return Drafted(self.serial % (1 << p.position_width), int(gen.integers(min(9, 1 << p.token_width))),
                       probability, bool(gen.random() < 0.05))

    async def restart(self, count: int) -> None:
        """Reset in the middle of whatever it is."""
        self.dut.drafted__valid.value = self.dut.update__valid.value = 0
        self.dut.to_shared__ready.value = self.dut.to_eager__ready.value = 1
        await reset(self.dut, count)
        self.model.reset()
        self.held.clear()

    async def finish(self) -> None:
        """Let go of what is offered, and compare everything."""
        while self.held:
            o = await self.cycle(Inputs(self.request, **self.held, settings=self.settings))
            for name in ("drafted", "update"):
                if getattr(o, f"{name}_ready"):
                    self.held.pop(name, None)
        for _ in range(4):
            await self.cycle(Inputs(settings=self.settings))
        compare(np.array(self.got, object), np.array(self.want, object), f"[cycle, {{{', '.join(CHECKED)}}}]")


@bench_test(timeout_us=1000)
async def random_traffic(dut: Any) -> None:
    """Floods, droughts and everything between, settings that change, resets at random cycles."""
    await start(dut)
    play = Play(dut, rng())
    for rates in ((1, 0.05, 1), (0.3, 0.2, 0.5), (1, 0.3, 0.2), (0.7, 0.01, 0.9), (0.5, 0.9, 0.8)):
        await play.wake()
        await play.traffic(800, *rates)
        await play.restart(int(play.gen.integers(1, 4)))
    await play.wake()
    await play.traffic(300, 1, 0.1, 1, 1.0)
    await play.finish()


@bench_test(timeout_us=500)
async def h_is_the_product_and_the_last_token_stays(dut: Any) -> None:
    """A draft of 40 tokens or what can be counted: each goes to a pool, H as in the model of speculation."""
    await start(dut)
    play = Play(dut, rng())
    await play.wake()
    longest = play.longest
    play.settings = Settings(max_draft=longest, tau=quantise(0.5), stop_at_end=False)
    h, stopped = ONE, False
    for n in range(min(longest, 40)):
        p = int(play.gen.integers(ONE * 9 // 10, ONE + 1))
        h = multiply(h, p)
        o = await play.token(1, Drafted(n % (1 << play.p.position_width), 0, p))
        assert o.decision is not None
        assert o.shared is not None
        compare([o.shared.h, o.decision.h], [h, h], "H")
        stopped |= h < quantise(0.5)
        compare(o.decision.stop, stopped or n + 1 == longest, "stop")
    compare(await play.may_draft(1), False, "may draft")
    compare(await play.may_draft(0), True, "another request may draft")
    await play.update(1)
    compare(await play.may_draft(1), True, "may draft after a restart")
    o = await play.token(1, Drafted(0, 0, ONE))
    compare(0 if o.shared is None else o.shared.h, ONE, "H after a restart")
    await play.finish()


@bench_test(timeout_us=500)
async def each_reason_to_stop(dut: Any) -> None:
    """Threshold by policy and table, length, end token, length limit; and what lasts of them."""
    await start(dut)
    play = Play(dut, rng())
    await play.wake()
    p = play.p
    half = ONE // 2
    longest = (1 << p.length_width) - 1
    table = tuple(ONE * (n + 1) // 8 for n in range(8))
    top = p.requests
    index = min((top - 1).bit_length(), 7)
    base = Settings(max_draft=longest, stop_at_end=False)

    def change(**changes: Any) -> Settings:
        return dataclasses.replace(base, **changes)
    #: settings, probability of the token, its other fields, the reasons to stop
    cases = [
        (change(policy=FIXED, tau=ONE), 0, {}, set()),
        (change(policy=CUMULATIVE, tau=half), half, {}, set()),
        (change(policy=CUMULATIVE, tau=half), half - 1, {}, {"threshold"}),
        (change(policy=CONFIDENCE, tau=half), half - 1, {}, {"threshold"}),
        (change(policy=CONFIDENCE, tau=half), half, {}, set()),
        (change(tau=ONE), ONE, {}, set()), (change(tau=0), 0, {}, set()),
        (change(tabled=True, taus=table, load=top), table[index], {}, set()),
        (change(tabled=True, taus=table, load=top), table[index] - 1, {}, {"threshold"}),
        (change(tabled=True, taus=table, load=1), table[0] - 1, {}, {"threshold"}),
        (change(tabled=True, taus=table, load=0), table[0], {}, set()),
        (change(stop_at_end=True, end_token=1), ONE, {"token": 1}, {"end"}),
        (change(end_token=1), ONE, {"token": 1}, set()),
        (base, ONE, {"final": True}, {"end"}),
        (change(max_draft=1), ONE, {}, {"length"}),
    ]
    for n, (settings, probability, fields, reasons) in enumerate(cases):
        request = n % p.requests
        play.settings = settings
        await play.update(request)
        o = await play.token(request, Drafted(**{"position": 0, "token": 0, "p": probability, **fields}))
        d = o.decision
        assert d is not None
        if longest == 1:
            reasons = reasons | {"length"}
        compare([d.stop, d.threshold, d.length, d.end],
                [bool(reasons), *(name in reasons for name in ("threshold", "length", "end"))], f"case {n}")
        # the length passes; the others last until the restart
        compare(await play.may_draft(request), not reasons & {"threshold", "length", "end"}, f"case {n}: may draft")
        await play.update(request, Update(restart=False, gone=1))
        compare(await play.may_draft(request), not reasons & {"threshold", "end"}, f"case {n}: one token less")
    play.settings = change(max_draft=0)
    await play.update(0)
    compare(await play.may_draft(0), False, "with max_draft 0")
    await play.finish()


@bench_test(timeout_us=500)
async def routes(dut: Any) -> None:
    """Every combination of the pools' states, 2 cycles after the token; a pool that is not ready gets it later."""
    await start(dut)
    play = Play(dut, rng())
    await play.wake()
    for n in range(8):
        verifying, behind, room = bool(n & 1), bool(n & 2), bool(n & 4)
        await play.update(0)
        o = await play.token(0, Drafted(n % (1 << play.p.position_width), 0, ONE), verifying=verifying, behind=behind,
                             shared_room=room)
        compare([o.shared is not None, o.eager is not None], [n == 4, n != 4], f"shared, eager in case {n}")
        await play.update(0)
    await play.cycle(Inputs(1, settings=play.settings))
    await play.cycle(Inputs(1, drafted=Drafted(0, 0, ONE), settings=play.settings))
    play.request, play.held = 1, {"drafted": Drafted(1 % (1 << play.p.position_width), 0, ONE), "update": Update()}
    for n in range(20):
        o = await play.cycle(Inputs(1, **play.held, settings=play.settings, shared_ready=False))
        compare([o.drafted_ready, o.update_ready, o.shared is not None], [False, False, n > 0], "while it waits")
    o = await play.cycle(Inputs(1, **play.held, settings=play.settings))
    compare(o.shared is not None, True, "it is still there")
    await play.finish()


@bench_test(timeout_us=100)
async def nothing_is_taken_in_reset(dut: Any) -> None:
    """Known fault: ready is high during reset, and what is taken then is lost."""
    await start(dut)
    play = Play(dut, rng())
    await play.wake()
    await nothing_is_taken(play)
