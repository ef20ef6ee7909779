"""Shapes of what crosses block boundaries in ``rtl/pim/stack``."""

from amaranth.hdl import signed
from amaranth.lib import data

from rtl.parts.meanings import Fields, fixed_struct, struct
from rtl.pim.channel.layouts import pim_command
from rtl.sfu.layouts import sfu_command
from sim_models.params.pim.stack.pim_stack import PimStackParams
from sim_models.spec.bank import ResultFormat
from sim_models.spec.channel import PimReduce
from sim_models.spec.stack import StackStatus, StackUnit

__all__ = ["checked_command", "collect_job", "collected_beat", "deal_job", "dealt_word",
           "respond_job", "sfu_route", "stack_command", "stack_response"]


@struct
def stack_command(p: PimStackParams) -> Fields:
    """A command to the stack.

    Members
    -------
    unit: Whom the command is for.
    channels: Pseudo-channels that take part, a bit each.
    pim: What the pseudo-channels do; ``count`` of a LOAD is the words of each of them.
    deal: LOAD: words are dealt out, one to each pseudo-channel in turn; else all get all.
    from_sfu: LOAD: words come from the SFU and not from the host; zeros follow its last one.
    across: READ: sums over the pseudo-channels; else one after the other, for each output.
    values: READ: results that count, the others are dropped; a multiple of 4 but at the end.
    last: READ: ends the row of results; else the next READ goes on with it.
    format: READ: format of the results; INT32 if and only if ``pim.int8``.
    to_sfu: READ: results go to the SFU, not to the host; not of ALL, which fills no beats.
    sfu: SFU: what the special function unit does.
    from_host: SFU: the row comes from the host and not from READs.
    to_buffers: SFU: results are for LOADs and not for the host.
    """
    return {
        "unit": StackUnit,
        "channels": p.pseudo_channels,
        "pim": pim_command,
        "deal": 1,
        "from_sfu": 1,
        "across": 1,
        "values": 16,
        "last": 1,
        "format": ResultFormat,
        "to_sfu": 1,
        "sfu": sfu_command,
        "from_host": 1,
        "to_buffers": 1,
    }


@fixed_struct
def stack_response() -> Fields:
    """The outcome of a command to the stack.

    Members
    -------
    status: Whether the command is carried out, or what is wrong with it.
    cycles: Most cycles of any pseudo-channel (see `pim_response`); 0 of a command to the SFU.
    hits: Hits of all pseudo-channels.
    misses: Misses of all pseudo-channels.
    """
    return {
        "status": StackStatus,
        "cycles": 32,
        "hits": 32, "misses": 32,
    }


def checked_command(p: PimStackParams) -> data.StructLayout:
    """A command to the stack, and what its checker says."""
    return data.StructLayout({
        "command": stack_command(p), "status": StackStatus,
        "drop": 1,                      # LOAD or WRITE: refused, but its words must be taken off their stream
    })


def deal_job(p: PimStackParams) -> data.StructLayout:
    """Words that go to pseudo-channels; all fields but the last are those of the command."""
    return data.StructLayout({
        "channels": p.pseudo_channels, "count": 16, "deal": 1, "from_sfu": 1,
        "drop": 1,                      # the command was refused: its words are taken and go nowhere
    })


def collect_job(p: PimStackParams) -> data.StructLayout:
    """Sums that come from pseudo-channels, and what becomes of them."""
    return data.StructLayout({
        "channels": p.pseudo_channels, "outputs": 8, "reduce": PimReduce, "across": 1, "values": 16, "last": 1,
        "format": ResultFormat, "to_sfu": 1,
        "ends": 1})                 # no sums come, the READ was refused: its row ends without them


def respond_job(p: PimStackParams) -> data.StructLayout:
    """A response that is to be made; no pseudo-channel takes part in that to a refused command."""
    return data.StructLayout({"channels": p.pseudo_channels, "status": StackStatus})


def dealt_word(p: PimStackParams) -> data.StructLayout:
    """FP16 results of the special function unit as a word."""
    return data.StructLayout({"word": p.word_width, "last": 1})


def collected_beat(p: PimStackParams) -> data.StructLayout:
    """Four exact sums that are to be rounded."""
    return data.StructLayout({
        "value": data.ArrayLayout(signed(p.acc_width), 4), "positive": 4, "negative": 4, "nan": 4,
        "keep": 4, "last": 1, "format": ResultFormat, "to_sfu": 1})
sfu_route = data.StructLayout({"from_host": 1, "to_buffers": 1})
