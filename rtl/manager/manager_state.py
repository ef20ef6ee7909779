"""What the Manager is made of and knows between cycles, and how it searches it."""

from typing import Any

from amaranth.hdl import Array, Cat, Const, Mux, Signal
from amaranth.lib import enum

from rtl.manager.draft_controller import DraftController
from rtl.manager.intensity_scheduler import IntensityScheduler
from rtl.manager.pools.eager_pool import EagerPool
from rtl.manager.pools.shared_pool import SharedPool
from rtl.memory.ram import Ram
from sim_models.params.manager.manager import ManagerParams
from sim_models.params.memory.ram import RamParams

__all__ = ["ManagerState", "State", "lowest"]


class State(enum.Enum):
    """What is done in a cycle."""

    #: after an event: what may come next is worked out
    SETTLE = 0
    DECIDE = 1
    NEW = 2
    # a draft token: the controller takes it, decides, and tells a pool
    TAKE = 3
    RATE = 4
    STORE = 5
    # a verdict: read the first token behind those of the pass, compare it, emit, tell the pools
    WAITING = 6
    COMPARE = 7
    EMIT = 8
    UNLOCK = 9
    CLOSE = 10
    # a migration
    MOVE = 11
    ARRIVE = 12
    # a pass: find a request, name it; choose tokens, name them
    NEXT_SERVED = 13
    SERVE = 14
    START = 15
    SELECT = 16
    # a draft step: find a request, name it; its end
    NEXT_DRAFT = 17
    DRAFT = 18
    DRAFT_END = 19


def lowest(bits: list[Any]) -> tuple[Any, Any]:
    """Whether one of 2^n bits is set, and the number of the first one (n bits, at least 1)."""
    nodes = [(bit, Const(0, 0)) for bit in bits]
    while len(nodes) > 1:
        nodes = [(a | b, Cat(Mux(a, i, j), ~a)) for (a, i), (b, j) in zip(nodes[::2], nodes[1::2], strict=True)]
    found, index = nodes[0]
    return found, index if len(bits) > 1 else Const(0, 1)


class ManagerState:
    """Blocks, registers, and signals that several events share.

    Flags have a bit a request; ``row`` is the tables' row of ``request``, written where ``write`` is set.
    """

    def __init__(self, p: ManagerParams) -> None:
        requests, lanes, lane_width = p.requests, p.lanes, max(1, p.lane_width)
        self.p = p
        self.pool = SharedPool(p.shared_pool)
        self.eager = [EagerPool(p.eager_pool) for _ in range(lanes)]
        self.controller = DraftController(p.controller)
        self.scheduler = IntensityScheduler(p.scheduler)
        #: unverified tokens, by request and the lowest bits of the position
        self.text = Ram(RamParams(depth=p.text_depth, width=p.token_width))
        self.state = Signal(State)
        self.at = {state: Signal(name=f"at_{state.name.lower()}") for state in State}
        self.chosen = Signal(p.request_width)
        # flags
        self.alive = Signal(requests)
        self.wants = Signal(requests)               # may draft on
        self.drafting = Signal(requests)            # in a step
        self.stale = Signal(requests)               # and its token comes too late
        self.verifying = Signal(requests)           # in the pass
        self.eagers = Signal(requests)              # has eager tokens
        self.alive_count = Signal(p.request_width + 1)
        self.drafting_count = Signal(p.request_width + 1)
        self.verifying_count = Signal(p.request_width + 1)
        # tables
        widths = {"base": p.position_width, "stop": p.position_width, "last": p.token_width,
                  "locked": p.length_width, "eager": p.length_width}
        self.row = {name: Signal(width, name=f"row_{name}") for name, width in widths.items()}
        self.new = {name: Signal(width, name=f"new_{name}") for name, width in widths.items()}
        self.write = {name: Signal(name=f"write_{name}") for name in widths}
        self.request, self.flag = Signal(p.request_width), Signal(requests)
        self.lane = Signal(lane_width)
        self.length = Signal(p.length_width)        # of the request's draft
        self.end = Signal(p.position_width)         # position behind it
        # settings as far as they make sense
        self.limit, self.capacity = Signal(p.length_width), Signal(p.rows_width)
        self.engines, self.eager_mode = Signal(p.lane_width + 1), Signal()
        # what could come next
        self.candidates = Signal(requests)
        self.room, self.fills = Signal(), Signal()
        self.lane_wants, self.lane_could = Signal(lanes), Signal(lanes)
        self.go, self.rests, self.due = Signal(lanes), Signal(lanes), Signal()
        self.found, self.lowest, self.waits = Signal(), Signal(p.request_width), Signal()
        # a verdict
        self.keep, self.done = Signal(), Signal()
        self.ends_next = Signal()                   # one token is left to emit
        self.index = Signal(p.length_width + 1)     # tokens emitted
        # a pass or a step
        self.todo = Signal(requests)
        self.served = Signal(p.request_width + 1)
        self.tokens = Signal(p.entries.bit_length())
        self.places = Signal(max(p.entries, p.eager_entries).bit_length())
        self.wrapped = Signal()
        self.group, self.lane_ring = Signal(lane_width), Signal(lane_width)
        self.ring_at = Signal(p.request_width)
        self.rings = Array(Signal(p.request_width, name=f"ring_{k}") for k in range(lanes))

    def put(self, name: str, value: Any) -> list[Any]:
        """Write a table in this cycle."""
        return [self.write[name].eq(1), self.new[name].eq(value)]
