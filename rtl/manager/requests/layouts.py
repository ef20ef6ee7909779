"""Structs that cross the boundary of a block in this folder."""

from amaranth.lib import data

from sim_models.params.manager.manager import ManagerParams

__all__ = ["flag_changes", "pool_state", "ready_work", "request_flags", "request_here", "request_list", "request_row",
           "row_update", "verdict_on_draft"]


def request_row(p: ManagerParams) -> data.StructLayout:
    """Numbers of a request."""
    return data.StructLayout({
        "base": p.position_width,       # position of the next token that will be emitted
        "stop": p.position_width,       # where none is wanted any more
        "last": p.token_width,          # its last known token, drafted or emitted
        "eager": p.length_width,        # its tokens in the Eager Pool
    })


def row_update(p: ManagerParams) -> data.StructLayout:
    """New numbers of the request at hand; all is 0 where nothing is written."""
    return data.StructLayout({
        "row": request_row(p),
        "write": data.StructLayout(dict.fromkeys(request_row(p).members, 1)),
    })


def request_flags(p: ManagerParams) -> data.StructLayout:
    """A bit a request."""
    return data.StructLayout(dict.fromkeys((
        "alive",                        # not complete
        "wants",                        # its draft goes on
        "drafting",                     # in a draft step
        "stale",                        # in a step, and its token will come too late
        "verifying",                    # in the pass
        "eager",                        # has tokens in the Eager Pool
    ), p.requests))


#: flags of the request at hand
request_here = data.StructLayout(dict.fromkeys(("alive", "drafting", "stale", "verifying", "eager"), 1))

#: flags of the request at hand that are set or cleared
flag_changes = data.StructLayout({"set": request_here, "clear": request_here})

#: the draft of the request at hand has changed
verdict_on_draft = data.StructLayout({
    "judge": 1,                         # find out, in the next cycle, whether it goes on
    "more": 1,                          # it may, unless the draft controller stops it
})


def request_list(p: ManagerParams) -> data.StructLayout:
    """What shall be listed, and how the list goes on; all is 0 where nothing is wanted."""
    return data.StructLayout({
        "start": 1, "todo": p.requests, "ring": p.request_width,   # of the set, from `ring` on, then from 0 on
        "take": 1,                      # the request that is shown was taken
        "stop": 1,                      # it is the last one
    })


def pool_state(p: ManagerParams) -> data.StructLayout:
    """Tokens in the pools."""
    return data.StructLayout({
        "used": p.count_width,          # in the Shared Pool
        "eager": data.ArrayLayout(p.eager_entries.bit_length(), p.lanes),   # in each micro-batch's Eager Pool
    })


def ready_work(p: ManagerParams) -> data.StructLayout:
    """Passes and draft steps that may begin, and what they depend on."""
    return data.StructLayout({
        # a cycle after the flags
        "wanting": p.lanes,             # micro-batches with requests that would be drafted for
        "room": 1,                      # the Shared Pool has an entry beside those that are promised
        "eager_room": p.lanes,          # the Eager Pool has
        "places": p.count_width, "eager_places": data.ArrayLayout(p.eager_entries.bit_length(), p.lanes),
        # two cycles after the flags
        "steps": p.lanes,               # micro-batches whose draft step may begin
        "rests": p.lanes,               # micro-batches that can be verified alone
        "passes": 1,                    # a pass may begin
    })
