"""The Manager's registers: the one table from which hardware, SystemRDL, C header and documentation follow."""

from collections.abc import Iterator

from rtl.bus.registers import Field, Register
from sim_models.params.manager.draft_controller import TAU_ENTRIES
from sim_models.params.manager.manager import ManagerParams
from sim_models.params.manager.pools.pool import H_WIDTH
from sim_models.spec.manager import COUNTERS

__all__ = ["registers"]


def registers(p: ManagerParams) -> tuple[Register, ...]:
    """The registers of a Manager with these parameters, by address.

    The name of a field is that of the member of `manager_settings`, or of what is read; interrupts, what was
    acknowledged and ``error`` concern the registers alone.
    """
    return (*_place(_settings(p), 0x00, True), *_place(_status(p), 0x40, False), *_place(_counters(), 0x80, False))


def _place(entries: Iterator[tuple[str, str, tuple[Field, ...]]], base: int, writable: bool) -> list[Register]:
    return [Register(name, base + 4 * n, writable, text, fields) for n, (name, text, fields) in enumerate(entries)]


def _settings(p: ManagerParams) -> Iterator[tuple[str, str, tuple[Field, ...]]]:
    s = p.scheduler
    yield "control", "switches; all set: SADDLE in full", (
        Field("policy", 0, 2, "what ends a draft before max_draft: 0 nothing, 1 its H below the threshold, 2 a token "
                              "whose own probability is below it", 1, highest=2),
        Field("tabled", 2, 1, "the threshold is that of the table for the live requests; otherwise tau"),
        Field("shared", 4, 1, "one pool for all micro-batches; otherwise each is verified alone, at rest", 1),
        Field("eager", 5, 1, "draft on during verification, into the Eager Pools; needs shared", 1),
        Field("dynamic", 6, 1, "operators move with their intensity; otherwise they are where they began", 1),
        Field("stop_at_end", 7, 1, "end_token ends a request"),
        Field("initial_dlm_fc", 8, 1, "where the draft's FC layers begin: 0 PIM, 1 tiles"),
        Field("initial_tlm_attention", 9, 1, "where the target's attention begins: 0 PIM, 1 tiles"),
        Field("interrupt", 16, 1, "irq is high while count_completed is not acknowledged"),
        Field("error_interrupt", 17, 1, "irq is high while count_illegal is not acknowledged"),
    )
    yield "max_draft", "longest draft", (
        Field("max_draft", 0, p.length_width, "unverified tokens of a request", min(8, 1 << p.draft_width),
              highest=1 << p.draft_width),)
    yield "tau", "threshold", (
        Field("tau", 0, H_WIDTH, "UQ1.15, 0x8000 is 1.0", 0x8000 // 10, highest=0x8000),)
    yield "capacity", "size of a pass", (
        Field("capacity", 0, p.rows_width, "rows: one a request and one a draft token; 0 is 1",
              min(64, p.entries + p.requests), highest=p.entries + p.requests),)
    yield "start", "early passes", (
        Field("start", 0, p.count_width, "pending tokens at which an idle verifier starts, with eager", 1,
              lowest=1, highest=p.entries),)
    yield "engines", "draft engines", (
        Field("engines", 0, p.lane_width + 1, "draft steps that can be under way; 0 is 1", 1, highest=p.lanes),)
    yield "end_token", "end of a text", (Field("end_token", 0, p.token_width, "the token that ends a request"),)
    for name, width, text in (("dlm_fc", s.requests_width, "drafting requests"),
                              ("tlm_attention", s.threshold_width,
                               f"tokens per request, {s.fraction_width} bits behind the point")):
        reset = min(9 << (0 if name == "dlm_fc" else s.fraction_width), (1 << width) - 1)
        yield name, f"where an operator moves, in {text}", (
            Field(f"{name}_low", 0, width, "below: to the PIM", reset),
            Field(f"{name}_high", 16, width, "from here on: to the tiles", reset, not_below=f"{name}_low"))
    for n in range(0, TAU_ENTRIES, 2):
        yield f"taus_{n}", "thresholds by live requests", tuple(
            Field(f"tau_{k}", 16 * (k - n), H_WIDTH, f"of {_load(k)}, UQ1.15", 0x8000 // 10, highest=0x8000)
            for k in (n, n + 1))
    yield "acknowledge", "end of an interrupt", (
        Field("acknowledged", 0, 32, "count_completed as it was seen: no interrupt while that is the same"),)
    yield "acknowledge_errors", "end of an interrupt", (
        Field("errors_acknowledged", 0, 32, "count_illegal as it was seen: no error while that is the same"),)


def _load(entry: int) -> str:
    """The numbers of live requests for which an entry of the table stands."""
    low, high = (1 << entry >> 1) + 1, 1 << entry
    if entry == TAU_ENTRIES - 1:
        return f"{low} requests and more"
    return f"{high} request{'s' * (high > 1)}" if entry < 2 else f"{low} to {high} requests"


def _status(p: ManagerParams) -> Iterator[tuple[str, str, tuple[Field, ...]]]:
    yield "status", "what it does now", (
        Field("busy", 0, 1, "something is being decided"),
        Field("dlm_fc", 1, 1, "where the draft's FC layers run: 0 PIM, 1 tiles"),
        Field("tlm_attention", 2, 1, "where the target's attention runs: 0 PIM, 1 tiles"),
        Field("error", 3, 1, "count_illegal is not acknowledged"))
    yield "sizes", "what was built", (
        Field("requests_log2", 0, 4, "binary logarithm of the requests", p.request_width),
        Field("lanes_log2", 4, 4, "binary logarithm of the micro-batches", p.lane_width),
        Field("entries", 16, 13, "entries of the Shared Pool", p.entries))


def _counters() -> Iterator[tuple[str, str, tuple[Field, ...]]]:
    for name, text in COUNTERS.items():
        yield f"count_{name}", "wraps round", (Field(name, 0, 32, text),)
