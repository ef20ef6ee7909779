"""Long runs of a Verilated Manager: its streams have queues, and Python is called once an event and not once a cycle.

Cycle for cycle what :func:`tb.manager.manager_machine.play` does with engines that take every beat at once.
"""

import contextlib
from collections.abc import Callable

import numpy as np

from sim_models.params.manager.manager import ManagerParams
from tb.common.native import NativeSim, NativeTimeout
from tb.manager.manager_engines import Engines, Widths, packed, unpacked
from tb.manager.manager_machine import Stuck

__all__ = ["run_streams"]


def run_streams(sim: NativeSim, p: ManagerParams, engines: Engines, limit: int, *, least: int = 1,
                vector: Callable[[int, int, int], np.ndarray] | None = None) -> int:
    """Run until all requests are complete and nothing is left to decide: the cycles that took.

    Parameters
    ----------
    limit:
        Cycles after which the run counts as stuck.
    least:
        Cycles that the shortest pass takes.
    vector: function of (request, token, probability)
        Payloads of the logits of a draft token, where the device has a softmax unit.
    """
    start, widths = sim.cycle, Widths.of(p)
    _push(sim, "requests", widths.requests, engines.arrivals())
    while not engines.done or sim.get("busy"):
        now = sim.cycle - start
        if now >= limit:
            raise Stuck(f"{len(engines.finished)} of {len(engines.requests)} requests are complete after {limit} "
                        f"cycles")
        engines.mapped(now, (sim.get("dlm_fc"), sim.get("tlm_attention")))
        tokens = engines.due(0, now)
        if vector is None:
            _push(sim, "drafted", widths.drafted, tokens)
        else:
            for token in tokens:
                sim.push("logits", vector(*token))
        _push(sim, "verdicts", widths.verdicts, engines.due(1, now))
        times = [now + least, engines.next_due, engines.next_mapped]
        until = max(min(t for t in times if t is not None), now + 1)
        # to the next beat of a draft step, or as long as nothing else is due
        with contextlib.suppress(NativeTimeout):
            sim.run({"draft": sim.total("draft") + 1}, until - now)
        for at, name, beat in sorted((at - start, stream, beat) for stream in ("draft", "verify", "emitted")
                                     for at, beat in _take(sim, stream, getattr(widths, stream))):
            if name == "emitted":
                engines.emits(*beat)
            elif name == "draft":
                engines.drafts(at, *beat)
            else:
                engines.verifies(at, *beat)
    return sim.cycle - start


def _push(sim: NativeSim, name: str, widths: tuple[int, ...], items: list[tuple[int, ...]]) -> None:
    if items:
        size = -(-sum(widths) // 8)
        sim.push(name, b"".join(packed(widths, item).to_bytes(size, "little") for item in items))


def _take(sim: NativeSim, name: str, widths: tuple[int, ...]) -> list[tuple[int, tuple[int, ...]]]:
    beats, stamps = sim.take(name)
    return [(int(at), unpacked(widths, int.from_bytes(beat.tobytes(), "little")))
            for beat, at in zip(beats, stamps, strict=True)]
