"""One run of the Manager as a Chrome trace, in the shape of SADDLE Fig. 11."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tb.manager.manager_meter import Intervals

__all__ = ["chrome_trace"]


def chrome_trace(intervals: "Intervals") -> list[dict[str, Any]]:
    """Events of a Chrome trace, a cycle as a microsecond.

    A thread for each micro-batch (``draft``, and ``eager`` where the step began during a pass), one for the verify
    engine, one for the Shared Pool (``locked`` during a pass), and one for ``idle``: neither engine works.
    """
    passes = [(begin, end) for kind, _, begin, end in intervals if kind == "verify"]
    lanes = sorted({lane for kind, lane, _, _ in intervals if kind == "draft"})
    names = {0: "verify", 1: "shared pool", 2: "both engines", **{3 + k: f"micro-batch {k}" for k in lanes}}
    events: list[dict[str, Any]] = [{"name": "thread_name", "ph": "M", "pid": 0, "tid": tid, "args": {"name": name}}
                                    for tid, name in names.items()]

    def add(name: str, tid: int, begin: int, end: int) -> None:
        events.append({"name": name, "ph": "X", "pid": 0, "tid": tid, "ts": begin, "dur": end - begin})

    reached = 0
    for kind, lane, begin, end in sorted(intervals, key=lambda i: i[2]):
        if begin > reached:
            add("idle", 2, reached, begin)
        reached = max(reached, end)
        if kind == "verify":
            add("verify", 0, begin, end)
            add("locked", 1, begin, end)
        else:
            add("eager" if any(a <= begin < b for a, b in passes) else "draft", 3 + lane, begin, end)
    return events
