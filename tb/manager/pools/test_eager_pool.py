"""Bench of the Eager Pool's slice: every output in every cycle against the golden model, and what it promises."""

from typing import Any

import numpy as np

from sim_models.golden.manager.pools.eager_pool import EagerPool, Inputs, Outputs
from sim_models.golden.manager.pools.shared_pool import Token
from tb.common import params
from tb.common.bench import bench_test
from tb.common.clock import cycles, reset, rng, start
from tb.common.scoreboard import compare
from tb.manager.held_in_reset import nothing_is_taken
from tb.manager.pools.pool_traffic import packed_token

VARIANTS: dict[str, dict[str, object]] = {
    "default": {},
    "one_entry": {"entries": 1, "request_width": 1},
    "two_entries": {"entries": 2, "request_width": 2},
    "seven_entries": {"entries": 7, "request_width": 2, "token_width": 8},
    "64_requests": {"entries": 64, "request_width": 6},
    "512_entries": {"entries": 512, "request_width": 7, "position_width": 12},
}

CHECKED = ("insert__ready", "command__ready", "moving", "moved__valid", "moved__payload", "look_count", "look_token",
           "used", "full")
#: what a look shows, among the outputs
LOOKED = slice(CHECKED.index("look_count"), CHECKED.index("look_token") + 1)


class Play:
    """The device and its model, driven alike."""

    def __init__(self, dut: Any, gen: np.random.Generator) -> None:
        self.dut, self.p, self.gen = dut, params(), gen
        self.model = EagerPool(self.p)
        self.got: list[list[int]] = []
        self.want: list[list[int]] = []
        self.held: dict[str, Any] = {}
        self.serial = 0

    async def cycle(self, i: Inputs) -> Outputs:
        """One cycle with these inputs; outputs are noted for :meth:`finish`."""
        d, p = self.dut, self.p
        d.insert__valid.value = int(i.insert is not None)
        d.insert__payload.value = packed_token(p, i.insert) if i.insert else 0
        d.command__valid.value = int(i.command is not None)
        request, first = i.command or (0, False)
        d.command__payload.value = request | int(first) << p.request_width
        d.move.value = int(i.move is not None)
        d.move_request.value = i.move or 0
        d.moved__ready.value = int(i.moved_ready)
        d.look.value = i.look
        await cycles(1)
        got = [int(getattr(d, name).value) for name in CHECKED]
        o = self.model.step(i)
        want = [o.insert_ready, o.command_ready, o.moving, o.moved is not None,
                None if o.moved is None else packed_token(p, o.moved), o.count, o.token, o.used, o.used == p.entries]
        self.got.append(got)
        self.want.append([g if w is None else int(w) for g, w in zip(got, want, strict=True)])
        return o

    async def wake(self) -> None:
        """The cycles after a reset in which nothing is taken; what a look shows in them is not defined."""
        for _ in range(self.p.requests + 1):
            await self.cycle(Inputs())
            self.want[-1][LOOKED] = self.got[-1][LOOKED]

    async def traffic(self, count: int, insert: float, command: float, move: float, ready: float) -> None:
        """Random traffic with these probabilities; what is not taken stays offered."""
        gen, requests = self.gen, min(self.p.requests, int(self.gen.integers(1, 12)))
        for _ in range(count):
            if "insert" not in self.held and gen.random() < insert:
                self.held["insert"] = self.token(int(gen.integers(requests)))
            if "command" not in self.held and gen.random() < command:
                self.held["command"] = int(gen.integers(requests)), bool(gen.integers(2))
            o = await self.cycle(Inputs(
                **self.held, move=int(gen.integers(requests)) if gen.random() < move else None,
                moved_ready=bool(gen.random() < ready), look=int(gen.integers(requests))))
            for name in ("insert", "command"):
                if getattr(o, f"{name}_ready"):
                    self.held.pop(name, None)

    def token(self, request: int) -> Token:
        """A token unlike those before."""
        self.serial += 1
        p = self.p
        return Token(request, self.serial % (1 << p.position_width), self.serial * 7 % (1 << p.token_width),
                     self.serial * 3 & 0xFFFF)

    async def restart(self, count: int) -> None:
        """Reset in the middle of whatever it is."""
        self.dut.insert__valid.value = self.dut.command__valid.value = 0
        self.dut.moved__ready.value = 1
        await reset(self.dut, count)
        self.model.reset()
        self.held.clear()

    async def finish(self) -> None:
        """Take what is offered and what is left, and compare everything."""
        for request in range(self.p.requests):
            await self.cycle(Inputs(**({"insert": self.held["insert"]} if "insert" in self.held else {}),
                                    command=(request, False)))
        while "insert" in self.held:
            if (await self.cycle(Inputs(**self.held))).insert_ready:
                del self.held["insert"]
        for _ in range(2):
            await self.cycle(Inputs())
        compare(np.array(self.got, object), np.array(self.want, object), f"[cycle, {{{', '.join(CHECKED)}}}]")


@bench_test(timeout_us=1000)
async def random_traffic(dut: Any) -> None:
    """Floods, droughts and everything between, with resets at random cycles."""
    await start(dut)
    play = Play(dut, rng())
    for rates in ((0.5, 0.05, 0.5, 0.8), (1, 0.02, 0.1, 1), (1, 0, 1, 0.5), (0.3, 0.5, 0.5, 0.3), (0.7, 0.01, 1, 1)):
        await play.wake()
        await play.traffic(600, *rates)
        await play.restart(int(play.gen.integers(1, 4)))
    await play.wake()
    await play.traffic(300, 1, 0.01, 0.2, 1)
    play.held.pop("command", None)
    await play.finish()


@bench_test(timeout_us=500)
async def moving_takes_a_cycle_a_token_and_keeps_the_order(dut: Any) -> None:
    """A full pool of two requests: one moves token by token, a command in between drops the other's in a cycle."""
    await start(dut)
    play = Play(dut, rng())
    await play.wake()
    p = play.p
    tokens = [play.token(n % 2) for n in range(p.entries)]
    for token in tokens:
        assert (await play.cycle(Inputs(insert=token))).insert_ready
    assert not (await play.cycle(Inputs())).insert_ready
    moved = []
    first = tokens[::2]
    await play.cycle(Inputs(command=(1, False)))
    compare(play.model.used, len(first), "tokens left")
    for n in range(len(first) + 1):
        o = await play.cycle(Inputs(move=0))
        compare(int(o.moving), int(n < len(first)), "moving")
        if o.moved is not None:
            moved.append(o.moved)
    compare([[t.position, t.token, t.h] for t in moved], [[t.position, t.token, t.h] for t in first], "moved")
    await play.finish()


@bench_test(timeout_us=500)
async def the_first_token_can_be_dropped(dut: Any) -> None:
    """Dropped one by one: the next is the first then; an empty queue stays empty."""
    await start(dut)
    play = Play(dut, rng())
    await play.wake()
    tokens = [play.token(1) for _ in range(play.p.entries)]
    for token in tokens:
        await play.cycle(Inputs(insert=token))
    for n in range(len(tokens) + 2):
        await play.cycle(Inputs(look=1))
        seen = await play.cycle(Inputs(look=1, command=(1, True)))
        compare(seen.count, max(len(tokens) - n, 0), "tokens")
        if n < len(tokens):
            compare(seen.token or 0, tokens[n].token, "the first token")
    await play.finish()


@bench_test(timeout_us=100)
async def nothing_is_taken_in_reset(dut: Any) -> None:
    """Known fault: ready is high during reset, and what is taken then is lost."""
    await start(dut)
    play = Play(dut, rng())
    await play.wake()
    await nothing_is_taken(play)
