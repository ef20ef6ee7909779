"""What passes through a block within a cycle: what each boundary promises, checked in the generated netlist."""

import pytest

from gen.emit.emit import emit
from rtl.registry import BLOCKS
from tb.common.runner import variants
from tests.netlist_tools import combinational_paths

#: parameter set of the bench that is looked at, where the defaults make a large netlist
SMALL = {"compute_engine": "4x2", "manager": "one_entry", "saddle_manager": "small", "shared_pool": "seven_entries",
         "pseudo_channel": "plain_int8", "pim_stack": "one_int8",
         "buffer_die_sfu": "one_lane", "softmax_unit": "one_lane"}
#: blocks without any path: every output is a register, or follows registers alone
CLOSED = {"axi_lite", "bank_pe", "dram_bank", "exact_product", "exp2", "float_adder", "float_comparator",
          "float_maximum", "float_multiplier", "float_to_half", "float_to_int", "half_to_float", "int_to_float",
          "intensity_scheduler", "manager_registers", "pe", "pe_array", "ram", "reciprocal", "reciprocal_sqrt",
          "sum_rounder"}
#: blocks with these paths and no others, by stream; a stream is closed in reset, so its ready follows that
OPEN = {
    "fifo": {"rst -> i ready"},
    # a beat says for which half it is, and halves open separately
    "compute_engine": {"rst -> i_command ready", "rst -> i_activation ready", "rst -> i_weight ready",
                       "rst -> i_psum ready", "i_activation -> i_activation ready", "i_weight -> i_weight ready"},
    "pseudo_channel": {"rst -> i_command ready", "rst -> i_data ready"},
}
#: pins of the bus, which no input of the block reaches, and which reach no output of it (AMBA AXI4, A3.1.1)
BUS = "s_axil_"
WITH_BUS = {"axi_lite", "manager_registers", "saddle_manager"}


def _stream(port: str) -> str:
    """``x`` for valid and payload of a stream, ``x ready`` for its ready."""
    stem, _, kind = port.rpartition("__")
    return {"ready": f"{stem} ready", "valid": stem, "payload": stem}[kind] if stem else port


@pytest.mark.parametrize("name", BLOCKS)
def test_nothing_passes_that_is_not_promised(name: str) -> None:
    """No offer follows a ready (stream rule 3), no path touches a bus; closed blocks have no path at all."""
    block = BLOCKS[name]
    design = emit(block.unit(block.params(**variants(name)[SMALL.get(name, "default")])))
    paths = combinational_paths(design.verilog, design.top)
    assert not [(a, b) for a, b in paths if a.endswith("__ready") and b.endswith(("__valid", "__payload"))]
    assert not [(a, b) for a, b in paths if a.startswith(BUS) or b.startswith(BUS)]
    pins = [p.name for p in design.ports[design.top] if p.name.startswith(BUS)]
    assert len(pins) == (19 if name in WITH_BUS else 0)
    if name in CLOSED:
        assert paths == set()
    if name in OPEN:
        assert {f"{_stream(a)} -> {_stream(b)}" for a, b in paths} == OPEN[name]


LOGIC = """
module part(input clk, input [1:0] a, input [1:0] addr, input s, output [1:0] y, output [1:0] z, output reg q);
  reg [1:0] words [0:3];
  always @(posedge clk) begin words[addr] <= a; q <= s; end
  assign z = words[addr];
  assign y = {TOP};
endmodule
module top(input clk, input [1:0] a, input [1:0] addr, input s, output y1, output [1:0] z, output q);
  wire [1:0] y;
  part inside(clk, a, addr, s, y, z, q);
  assign y1 = y[1];
endmodule
"""


@pytest.mark.parametrize(("logic", "found"), [
    ("{s, a[0]}", {"s"}), ("{1'b0, a[0]}", set()), ("{2{s}} & a", {"s", "a"}), ("a + s", {"s", "a"}),
    ("{q, s}", set()), ("s ? addr : {q, q}", {"s", "addr"}), ("{a[1] & 1'b0, s}", set()),
    ("(a == addr) ? 2'd1 : 2'd2", {"a", "addr"}), ("words[s]", {"s"})])
def test_paths_are_found_bit_by_bit_and_through_modules(logic: str, found: set[str]) -> None:
    paths = combinational_paths(LOGIC.replace("{TOP}", logic), "top")
    assert {a for a, b in paths if b == "y1"} == found
    assert {(a, b) for a, b in paths if b != "y1"} == {("addr", "z")}


def test_a_cell_that_is_not_known_is_refused() -> None:
    latch = "module top(input e, input d, output reg q);\n  always @* if (e) q = d;\nendmodule\n"
    with pytest.raises(ValueError, match=r"^a netlist of known cells was wanted, a cell \$dlatch came$"):
        combinational_paths(latch, "top")
