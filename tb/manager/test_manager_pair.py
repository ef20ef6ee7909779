"""Bench of the Manager on the shipped pair: its own tokens and probabilities, with every cycle as in the model.

The engines are behavioural; what they say was recorded from the two transformers.
``tests/rtl/manager/test_manager_pair.py`` runs it.
"""

from typing import Any

from sim_models.golden.manager.draft_controller import CONFIDENCE, FIXED
from sim_models.golden.manager.manager import Switches
from sim_models.params.manager.manager import ManagerParams
from sim_models.specdec.draws import KeyedDraws
from sim_models.specdec.rules import Greedy, decode
from sim_models.specdec.traces import record, shipped_models
from tb.common.bench import bench_test
from tb.common.clock import rng, start
from tb.common.scoreboard import compare
from tb.manager.manager_engines import Engines
from tb.manager.test_manager import Play

#: few entries, so that pools fill up; a token of the pair's vocabulary has 9 bits
PARAMS = ManagerParams(request_width=2, lane_width=1, entries=8, eager_entries=4, token_width=9, position_width=8)
#: the paper's variants, and a threshold of each token
SWITCHES = (
    Switches(policy=FIXED, max_draft=4, shared=False, eager=False, dynamic=False),
    Switches(tau=0x0800, shared=False, eager=False), Switches(tau=0x0800, eager=False, capacity=9),
    Switches(tau=0x0800, dynamic=False, start=3), Switches(tau=0x0200, capacity=6, engines=2),
    Switches(policy=CONFIDENCE, tau=0x2000),
)
TOKENS = 10


@bench_test(timeout_us=5000)
async def texts_are_those_of_the_real_target(dut: Any) -> None:
    """Four prompts; a pass takes as long as eight draft steps."""
    await start(dut)
    draft, target, prompts = shipped_models()
    requests = record(draft, target, prompts[:PARAMS.requests], TOKENS).requests
    alone = [decode(Greedy(), target, list(r.prompt), TOKENS, KeyedDraws()) for r in requests]
    right = sum(d[0] == t for r in requests for d, t in zip(r.draft, r.target, strict=True))
    compare(int(0 < right < TOKENS * len(requests)), 1, "the draft is right at times")
    play = Play(dut, rng())
    for switches in (s.fitted(PARAMS) for s in SWITCHES):
        engines = Engines(requests, lambda *_: 40, lambda *_: 320, lanes=PARAMS.lanes)
        compare(int(await play.run(switches, engines, 20_000, 1)), 1, "requests complete")
        for text, want in zip(engines.texts, alone, strict=True):
            compare(text, want, "tokens")
    play.finish()
