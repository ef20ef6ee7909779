"""Bench of the Shared Pool: every output in every cycle against the golden model, and what it promises."""

from typing import Any

import numpy as np

from sim_models.golden.manager.pools.shared_pool import Inputs, Outputs, SharedPool, Token
from tb.common import params
from tb.common.bench import bench_test
from tb.common.clock import cycles, reset, rng, start
from tb.common.scoreboard import compare
from tb.manager.held_in_reset import nothing_is_taken
from tb.manager.pools.pool_traffic import (
    CHECKED,
    Mix,
    Traffic,
    expected,
    packed_eligible,
    packed_selected,
    packed_token,
    packed_verdict,
)

VARIANTS: dict[str, dict[str, object]] = {
    "default": {},
    "one_entry": {"entries": 1, "request_width": 1},
    "two_entries": {"entries": 2, "request_width": 2, "aging_width": 1},
    "seven_entries": {"entries": 7, "request_width": 2},
    "64_requests": {"entries": 64, "request_width": 6, "token_width": 16, "aging_width": 0},
    "few_requests": {"entries": 100, "request_width": 1, "position_width": 8},
    "many_requests": {"entries": 33, "request_width": 7, "token_width": 9},
    "256_requests": {"entries": 65, "request_width": 8},
}


SELECTED = CHECKED.index("selected__payload")
#: what a look shows, among the outputs
LOOKED = slice(CHECKED.index("match"), CHECKED.index("match_token") + 1)


class Play:
    """The device and its model, driven alike."""

    def __init__(self, dut: Any, gen: np.random.Generator) -> None:
        self.dut, self.p = dut, params()
        self.model = SharedPool(self.p)
        self.traffic = Traffic(self.model, gen)
        self.got: list[list[int]] = []
        self.want: list[list[int]] = []

    async def cycle(self, inputs: Inputs) -> Outputs:
        """One cycle with these inputs; outputs are noted for :meth:`finish`."""
        d = self.dut
        d.insert__valid.value = int(inputs.insert is not None)
        d.insert__payload.value = packed_token(self.p, inputs.insert) if inputs.insert else 0
        d.flush__valid.value = int(inputs.flush is not None)
        d.flush__payload.value = inputs.flush or 0
        d.verdict__valid.value = int(inputs.verdict is not None)
        d.verdict__payload.value = packed_verdict(self.p, inputs.verdict) if inputs.verdict else 0
        d.start__valid.value = int(inputs.start is not None)
        d.start__payload.value = inputs.start or 0
        d.selected__ready.value = int(inputs.selected_ready)
        d.eligible.value = packed_eligible(self.p, inputs)
        if self.p.aging_width:
            d.aging.value = inputs.aging
        d.look.value = inputs.look
        await cycles(1)
        got = [int(getattr(d, name).value) for name in CHECKED]
        outputs = self.traffic.step(inputs)
        if got[SELECTED] >> self.p.entry_bits:      # the end: the entry means nothing
            got[SELECTED] = packed_selected(self.p, "end")
        self.got.append(got)
        self.want.append(expected(outputs, got, self.p))
        return outputs

    async def run(self, count: int, mix: Mix) -> None:
        """Random traffic."""
        for _ in range(count):
            await self.cycle(self.traffic.draw(mix))

    async def insert(self, *tokens: Token) -> None:
        """Insert tokens, one a cycle; the pool must have room."""
        for token in tokens:
            assert (await self.cycle(Inputs(insert=token))).insert_ready

    async def idle(self, count: int, **inputs: Any) -> None:
        """Cycles in which nothing is offered."""
        for _ in range(count):
            await self.cycle(Inputs(**inputs))

    async def until(self, name: str, limit: int, **inputs: Any) -> int:
        """Offer something until it is taken; how many cycles that took."""
        for n in range(1, limit + 1):
            if getattr(await self.cycle(Inputs(**inputs)), f"{name}_ready"):
                return n
        raise AssertionError(f"{name} was not taken within {limit} cycles")

    async def round(self, capacity: int, limit: int = 5000, **inputs: Any) -> list[Token]:
        """A whole round: the tokens in the order in which they were chosen."""
        await self.until("start", limit, start=capacity, **inputs)
        chosen: list[Token] = []
        for _ in range(limit):
            selected = (await self.cycle(Inputs(**inputs))).selected
            if isinstance(selected, Token):
                chosen.append(selected)
            elif selected == "end":
                return chosen
        raise AssertionError(f"a round did not end within {limit} cycles")

    async def restart(self, count: int) -> None:
        """Reset in the middle of whatever it is."""
        for name in ("insert", "flush", "verdict", "start"):
            getattr(self.dut, f"{name}__valid").value = 0
        self.dut.selected__ready.value = 1
        await reset(self.dut, count)
        self.model.reset()
        self.traffic.restart()

    async def wake(self, mix: Mix | None = None, count: int | None = None) -> None:
        """The cycles after a reset in which nothing is taken; what a look shows in them is not defined."""
        for n in range(2 * self.p.requests + 1 if count is None else count):
            # streams are still in the cycle after a reset
            await self.cycle(self.traffic.draw(mix) if mix and n else Inputs())
            self.want[-1][LOOKED] = self.got[-1][LOOKED]
            assert n == 2 * self.p.requests or not any(self.got[-1][:4])

    async def finish(self) -> None:
        """Take what is offered and what is left of a round, and compare everything."""
        model, clearing = self.model, Mix(insert=0, flush=0.3, verdict=1, start=0, ready=1)
        for _ in range(20000):
            if not (model.selecting or model.ending or model.selected or self.traffic.held):
                break
            await self.cycle(self.traffic.draw(clearing))
        # nothing more is offered from here on
        await self.idle(1)
        compare(np.array(self.got, object), np.array(self.want, object), f"[cycle, {{{', '.join(CHECKED)}}}]")


async def begin(dut: Any) -> Play:
    """A device that has woken up."""
    await start(dut)
    play = Play(dut, rng())
    await play.wake()
    return play


def draft(gen: np.random.Generator, request: int, length: int, levels: int = 5, first: int = 0) -> list[Token]:
    """A request's tokens with an H that does not rise."""
    hs = sorted((gen.integers(levels, size=length) * 0x8000 // levels).tolist(), reverse=True)
    return [Token(request, first + n, int(gen.integers(256)), h) for n, h in enumerate(hs)]


def filling(play: Play, gen: np.random.Generator, count: int) -> list[Token]:
    """``count`` tokens of random requests, in an order in which they can be inserted."""
    owners = gen.integers(min(play.p.requests, 20), size=count)
    drafts = {r: draft(gen, r, int((owners == r).sum())) for r in set(owners.tolist())}
    return [drafts[r].pop(0) for r in owners.tolist()]


def best_first(tokens: list[Token]) -> list[Token]:
    """In the order of a round."""
    return sorted(tokens, key=lambda t: (-t.h, t.request, t.position))


def numbers(tokens: list[Token]) -> list[list[int]]:
    return [[t.request, t.position, t.token, t.h] for t in tokens]


MIXES = (
    Mix(), Mix(insert=1, ready=1), Mix(insert=1, flush=0.2, verdict=1, start=1), Mix(requests=2, start=1, verdict=1),
    Mix(insert=1, start=1, verdict=0.05, flush=0, capacity=3), Mix(ineligible=0.4, start=0.5, ready=0.3),
    Mix(insert=0.8, aging=3, start=1, verdict=1, capacity=2, flush=0), Mix(accepted=1, bonus=1, start=1, capacity=4),
    Mix(insert=0.2, flush=0.3, verdict=1, start=1, levels=1), Mix(aging=1, ineligible=0.2, start=1, levels=60),
)


@bench_test(timeout_us=2000)
async def random_traffic(dut: Any) -> None:
    """Anything in any cycle, with resets at random cycles, also while the pool wakes up."""
    await start(dut)
    gen = rng()
    play = Play(dut, gen)
    for mix in MIXES:
        await play.wake(mix)
        await play.run(int(gen.integers(300, 900)), mix)
        await play.restart(int(gen.integers(1, 4)))
        if gen.random() < 0.5:
            await play.wake(mix, int(gen.integers(1, 2 * play.p.requests)))
            await play.restart(1)
    await play.wake()
    await play.finish()


@bench_test(timeout_us=2000)
async def rounds_take_the_highest_h_first(dut: Any) -> None:
    """Any capacity, many ties; one token takes request_width + 1 cycles; nothing is lost."""
    play = await begin(dut)
    gen, p = rng(), play.p
    for _ in range(6):
        tokens = filling(play, gen, int(gen.integers(1, p.entries + 1)))
        await play.insert(*tokens)
        capacity = int(gen.integers(p.entries + 1))
        await play.idle(p.request_width + 1)
        before = len(play.got)
        chosen = await play.round(capacity)
        taken = len(play.got) - before
        want = best_first(tokens)[:capacity]
        compare(numbers([*chosen, *best_first(tokens)[len(chosen):]]), numbers(best_first(tokens)), "chosen, rest")
        compare(len(chosen), len(want), "how many")
        # a token each request_width + 1 cycles; a last look when the pool runs out
        steps = len(want) - (capacity <= len(tokens)) if want else 0
        compare(taken, 5 + (p.request_width + 1) * steps - (not want or capacity > len(tokens)), "cycles of a round")
        for request in {t.request for t in tokens}:
            await play.cycle(Inputs(flush=request))
        await play.idle(p.requests + 2)
        compare(play.got[-1][CHECKED.index("used")], 0, "tokens after all are flushed")
    await play.finish()


@bench_test(timeout_us=500)
async def full_of_locked_tokens(dut: Any) -> None:
    """Exactly full, everything locked: nothing can be inserted, no round starts; each verdict makes room."""
    play = await begin(dut)
    gen, p = rng(), play.p
    tokens = filling(play, gen, p.entries)
    await play.insert(*tokens)
    chosen = await play.round(p.entries)
    compare(numbers(chosen), numbers(best_first(tokens)), "all of a full pool")
    extra = Token(0, 1000 % (1 << p.position_width), 7, 0)
    for _ in range(20):
        outputs = await play.cycle(Inputs(insert=extra, start=1))
        assert not outputs.insert_ready
        assert not outputs.start_ready
        assert outputs.locked == outputs.used == p.entries
    started, last = False, None
    for request in sorted({t.request for t in tokens}):
        length = len(play.model.lists[request])
        # an insertion of the cycle before, into the same request, is done first
        compare(await play.until("verdict", 3, verdict=(request, length, False), insert=extra, start=1),
                2 + (request == last), "cycles")
        compare(play.model.used, p.entries - length, "tokens after a verdict")
        # the room is there in the next cycle, also for a request that is still locked
        more = [Token(p.requests - 1, 1000 % (1 << p.position_width), 7, 0)] * length
        for token in [extra, *more][:length]:
            outputs = await play.cycle(Inputs(insert=token, start=None if started else 1))
            assert outputs.insert_ready
            started, last = started or outputs.start_ready, token.request
    if not started:                     # what was waiting grew older first
        await play.until("start", p.requests + 2, start=1)
    await play.finish()


@bench_test(timeout_us=500)
async def inserting_and_looking_are_not_slowed(dut: Any) -> None:
    """A token a cycle into an empty pool until it is full, in the middle of a round; each is seen a cycle later."""
    play = await begin(dut)
    gen, p = rng(), play.p
    for waiting in (0, p.entries // 2):
        await play.insert(*filling(play, gen, waiting))
        await play.until("start", 10, start=p.entries)
        for n in range(p.entries - waiting):
            token = Token(n % p.requests, (100 + n) % (1 << p.position_width), n % 256, 0)
            outputs = await play.cycle(Inputs(insert=token, look=token.request))
            assert outputs.insert_ready
            here = play.model.lists[token.request]
            await_look = Inputs(look=token.request)
            if n % 4 == 0:
                await play.cycle(await_look)
                seen = await play.cycle(await_look)
                compare([seen.count, seen.match], [len(here), sum(1 << e.index for e in here)], "look")
        compare(play.model.used, p.entries, "tokens")
        await play.restart(1)
        await play.wake()
    await play.finish()


@bench_test(timeout_us=500)
async def verdicts(dut: Any) -> None:
    """Each kind: what leaves, what stays pending and in order, and how long it takes."""
    play = await begin(dut)
    gen, p = rng(), play.p
    length = min(p.entries, 6)
    for locked in range(length + 1):
        for accepted, bonus in ((locked, True), (locked, False), (max(locked - 1, 0), True), (0, False)):
            tokens = draft(gen, p.requests - 1, length)
            await play.insert(*tokens)
            assert await play.round(locked) == tokens[:locked]
            stays = tokens[locked + 1:] if bonus and accepted == locked else []
            cycles_taken = await play.until("verdict", 20, verdict=(p.requests - 1, accepted, bonus))
            compare(cycles_taken, locked + 3 if bonus and accepted == locked and locked < length else 2, "cycles")
            await play.idle(p.requests + p.request_width + 2)
            compare(play.model.used, len(stays), "what stays")
            rest = await play.round(p.entries)
            assert rest == stays
            await play.cycle(Inputs(flush=p.requests - 1))
            await play.idle(p.requests + 2)
    await play.finish()


@bench_test(timeout_us=2000)
async def aging_bounds_the_wait(dut: Any) -> None:
    """With one token a round and better ones always there, H = 0 is served within the stated rounds; oldest first."""
    play = await begin(dut)
    p = play.p
    rivals = min(p.requests, p.entries, 6) - 1
    for aging in {1, min(3, (1 << p.aging_width) - 1)} if p.aging_width else ():
        bound = aging + rivals + 1
        await play.insert(Token(rivals, 0, 1, 0), *(Token(r, 0, 0, 0x8000) for r in range(rivals)))
        served = None
        turn = 0
        while served != rivals and turn < bound:
            turn += 1
            chosen = await play.round(1, aging=aging)
            compare(len(chosen), 1, "tokens chosen")
            served = chosen[0].request
            await play.until("verdict", 2, verdict=(served, 1, False), aging=aging)
            await play.idle(p.requests, aging=aging)
            await play.insert(Token(served, 0, 0, 0x8000))
        compare(served, rivals, f"request served in round {turn} of {bound}")
        for request in range(rivals + 1):
            await play.cycle(Inputs(flush=request))
        await play.idle(1)
    await play.finish()


@bench_test(timeout_us=500)
async def only_eligible_requests_take_part(dut: Any) -> None:
    """Others are passed over, however high their H; the round after finds them again."""
    play = await begin(dut)
    gen, p = rng(), play.p
    for _ in range(5):
        tokens = filling(play, gen, p.entries)
        out = frozenset(np.flatnonzero(gen.random(p.requests) < 0.5).tolist())
        await play.insert(*tokens)
        chosen = await play.round(p.entries, ineligible=out)
        want = best_first([t for t in tokens if t.request not in out])
        compare(numbers([*chosen, tokens[0]]), numbers([*want, tokens[0]]), "eligible ones")
        for request in {t.request for t in want}:
            await play.cycle(Inputs(flush=request))
        await play.idle(p.requests + 2)
        rest = await play.round(p.entries)
        compare(numbers([*rest, tokens[0]]),
                numbers([*best_first([t for t in tokens if t.request in out]), tokens[0]]), "the others")
        for request in range(p.requests):
            await play.cycle(Inputs(flush=request))
        await play.idle(1)
    await play.finish()


@bench_test(timeout_us=200)
async def a_flush_is_one_step(dut: Any) -> None:
    """However many tokens leave, locked or not: a look of the next cycle finds none, room is there a cycle later."""
    play = await begin(dut)
    p = play.p
    for locked in (0, 1, p.entries):
        await play.insert(*draft(rng(), p.requests - 1, p.entries))
        assert len(await play.round(locked)) == locked
        await play.idle(p.requests + p.request_width + 2)
        extra = Token(0, 0, 5, 0)
        seen = [await play.cycle(Inputs(flush=p.requests - 1, look=p.requests - 1))]
        for insert in (None, extra, None, None):
            seen.append(await play.cycle(Inputs(insert=insert, look=p.requests - 1 if insert is None else 0)))
        compare([o.count for o in seen[1:3]], [p.entries, 0], "tokens found by looks with the flush and after it")
        compare([o.used for o in seen], [p.entries, p.entries, 0, 1, 1], "tokens")
        compare([o.locked for o in seen], [locked, locked, 0, 0, 0], "locked tokens")
        compare([o.insert_ready for o in seen[1:3]], [False, True], "room")
        await play.cycle(Inputs(flush=0))
        await play.idle(1)
    await play.finish()


@bench_test(timeout_us=100)
async def nothing_is_taken_in_reset(dut: Any) -> None:
    """Known fault: ready is high during reset, and what is taken then is lost."""
    play = await begin(dut)
    await play.idle(2)
    await nothing_is_taken(play)
