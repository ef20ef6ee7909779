"""Which names may stand in Verilog, and how the others are made to."""

import re

__all__ = ["check_name", "distinct", "plain_names", "renamed", "verilog_name"]

_VERILOG = """
accept_on alias always always_comb always_ff always_latch and assert assign assume automatic before begin bind
bins binsof bit break buf bufif0 bufif1 byte case casex casez cell chandle checker class clocking cmos config
const constraint context continue cover covergroup coverpoint cross deassign default defparam design disable
dist do edge else end endcase endchecker endclass endclocking endconfig endfunction endgenerate endgroup
endinterface endmodule endpackage endprimitive endprogram endproperty endsequence endspecify endtable endtask
enum event eventually expect export extends extern final first_match for force foreach forever fork forkjoin
function generate genvar global highz0 highz1 if iff ifnone ignore_bins illegal_bins implements implies import
incdir include initial inout input inside instance int integer interconnect interface intersect join join_any
join_none large let liblist library local localparam logic longint macromodule matches medium modport module
nand negedge nettype new nexttime nmos nor noshowcancelled not notif0 notif1 null or output package packed
parameter pmos posedge primitive priority program property protected pull0 pull1 pulldown pullup
pulsestyle_ondetect pulsestyle_onevent pure rand randc randcase randsequence rcmos real realtime ref reg
reject_on release repeat restrict return rnmos rpmos rtran rtranif0 rtranif1 s_always s_eventually s_nexttime
s_until s_until_with scalared sequence shortint shortreal showcancelled signed small soft solve specify
specparam static string strong strong0 strong1 struct super supply0 supply1 sync_accept_on sync_reject_on
table tagged task this throughout time timeprecision timeunit tran tranif0 tranif1 tri tri0 tri1 triand trior
trireg type typedef union unique unique0 unsigned until until_with untyped use uwire var vectored virtual void
wait wait_order wand weak weak0 weak1 while wildcard wire with within wor xnor xor
"""
_VHDL = """
abs access after alias all and architecture array assert assume assume_guarantee attribute begin block body
buffer bus case component configuration constant context cover default disconnect downto else elsif end entity
exit fairness file for force function generate generic group guarded if impure in inertial inout is label
library linkage literal loop map mod nand new next nor not null of on open or others out package parameter
port postponed procedure process property protected private pure range record register reject release rem
report restrict restrict_guarantee return rol ror select sequence severity shared signal sla sll sra srl
strong subtype then to transport type unaffected units until use variable view vmode vpkg vprop vunit wait
when while with xnor xor
"""
_CPP = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class
compl concept const consteval constexpr constinit const_cast continue co_await co_return co_yield decltype
default delete do double dynamic_cast else enum explicit export extern false final float for friend goto if
inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq override private protected
public register reinterpret_cast requires return short signed sizeof static static_assert static_cast struct
switch template this thread_local throw true try typedef typeid typename union unsigned using virtual void
volatile wchar_t while xor xor_eq
"""
#: members of the C++ class that Verilator makes of a top module, or macros its headers meet
_VERILATOR = """
contextp eval eval_step eval_end_step final hierName modelName name threads trace vlNamep vlSymsp vlprivate
rootp null assert errno stdin stdout stderr main unix linux
"""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_VERILOG_WORDS = _words(_VERILOG)
#: VHDL ignores case; the others do not, but a name that differs from a keyword in case alone helps nobody
_RESERVED = {"Verilog": _VERILOG_WORDS, "VHDL": _words(_VHDL), "C++": _words(_CPP),
             "Verilator": frozenset(w.lower() for w in _words(_VERILATOR))}
_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|\\(\S+) |(?<![\w\'$])(_\d+_(?!\w))|(?<![\w\'$])([A-Za-z_][\w$]*)')
#: how Yosys names a net after its cell: type of cell, port that named the cell, number, port of the net
_STEP = re.compile(r"([a-z_]+?)_[A-Z]+(?:_\d+)?(?:_([A-Z]+)(?:_\d+)?)?(?:\[\d+\])?")
LONGEST = 48


def check_name(name: str) -> str | None:
    """Why ``name`` cannot be the name of a module, port or member; None when it can."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name):
        return "is not a plain identifier (a letter, then letters, digits and _)"
    languages = [language for language, words in _RESERVED.items() if name.lower() in words]
    return f"is a reserved word of {' and '.join(languages)}" if languages else None


def verilog_name(name: str) -> str:
    """``name``, with an underscore behind it if Verilog or SystemVerilog reserves it."""
    return f"{name}_" if name in _VERILOG_WORDS else name


_MODULE = re.compile(r"(?ms)^module .*?^end$")
#: not what a cell calls its ports: that is up to the other module
_DUPLICATE = re.compile(r"(?<!    connect )\\([\w.$\[\]]*?)\$(\d+)(?![\w.$\[\]])")
_PORT = re.compile(r"(?m)^  wire width \d+ (?:input|output) .*\\(\S+)$")
_REGISTER = re.compile(r"(?m)^    connect \\Q \\(\S+\$\d+)$")
_ALIAS = re.compile(r"(?m)^connect \\([^$\s]+) \\(\S+\$\d+) \[[^]]*\]$")
_WIDTH = re.compile(r"(?m)^  wire width (\d+) .*\\(\S+)$")


def distinct(rtlil: str) -> str:
    """Rename equal names of Amaranth's RTLIL so that they tell registers from mere aliases.

    Amaranth counts equal names through a whole design: ``acc``, ``acc$17``. Here they count within their
    module, ``acc``, ``acc$1``, and lose the ``$`` (``acc.1``) where the register has no better name.
    """
    def module(match: re.Match[str]) -> str:
        text = match[0]
        ranks: dict[str, list[int]] = {}
        for base, number in set(_DUPLICATE.findall(text)):
            ranks.setdefault(base, []).append(int(number))
        rank = {(base, number): k for base, numbers in ranks.items() for k, number in enumerate(sorted(numbers), 1)}
        width = {wire: bits for bits, wire in _WIDTH.findall(text)}
        named = {wire for alias, wire in _ALIAS.findall(text) if width[alias] == width[wire]}
        registers = set(_REGISTER.findall(text)) - named
        ports = set(_PORT.findall(text))

        def name(m: re.Match[str]) -> str:
            if f"{m[1]}${m[2]}" in ports:
                return m[0]
            dot = "." if f"{m[1]}${m[2]}" in registers else "$"
            return f"\\{m[1]}{dot}{rank[m[1], int(m[2])]}"

        return _DUPLICATE.sub(name, text)

    return _MODULE.sub(module, rtlil)


def plain_names(module: str) -> str:
    """Turn the escaped and numbered identifiers of one Verilog module into plain ones.

    ``\\pe_0.acc`` becomes ``pe_0_acc``, ``\\b_$mul_B_Y_$add_B_Y`` becomes ``b_mul_add``. A name that is taken
    already, or reserved, gets the lowest free number behind it, in the order of the text, so no two nets ever
    fall together.

    Parameters
    ----------
    module: str
        Text of one module, as Yosys writes it.
    """
    taken = {m[3] for m in _TOKEN.finditer(module) if m[3]} | _VERILOG_WORDS
    new: dict[str, str] = {}
    last: dict[str, int] = {}       # number of the last name of each base: those below it are taken

    def plain(match: re.Match[str]) -> str:
        old = match[1] or match[2]
        if old is None:
            return match[0]
        if old not in new:
            base = _readable(old)
            number = last.get(base, 0)
            name = f"{base}_{number}" if number else base
            while name in taken:
                number += 1
                name = f"{base}_{number}"
            new[old] = name
            last[base] = number
            taken.add(name)
        return new[old]

    return _TOKEN.sub(plain, module)


def _readable(name: str) -> str:
    root, *steps = name.split("_$")
    for step in steps:
        match = _STEP.fullmatch(step)
        if match is None:
            root += f"_{step}"
        else:
            root += "" if "dff" in match[1] else f"_{match[1]}"
            root += "" if match[2] in (None, "Y", "Q") else f"_{match[2].lower()}"
    root = re.sub(r"\W+", "_", re.sub(r"\$\d+", "", root)).strip("_")[:LONGEST].rstrip("_")
    return root if re.match(r"[A-Za-z]", root) else f"n_{root}".rstrip("_")


def renamed(module: str, names: dict[str, str]) -> str:
    """One Verilog module with some identifiers replaced by escaped ones."""
    def new(match: re.Match[str]) -> str:
        name = match[3]
        return f"\\{names[name]} " if name in names else match[0]

    return _TOKEN.sub(new, module)
