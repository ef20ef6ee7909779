"""Verilog models of the blocks that this package instantiates, for simulation.

A model has the ports that an instance connects and the one configuration that it uses. It stops the simulation with
a message in any other. Synthesis tools know the blocks by themselves and must not read the models.
"""

import textwrap

__all__ = ["MODELS"]


def _bits(port: str, width: int) -> list[str]:
    return [f"{port}{bit}" for bit in range(width)]


def _lines(text: str) -> str:
    return "\n".join(textwrap.wrap(text, 110, initial_indent="  ", subsequent_indent="    "))


def _joined(port: str, width: int) -> str:
    return "{" + ", ".join(reversed(_bits(port, width))) + "}"


_REFUSAL = """\
`ifndef SYNTHESIS
  always @(posedge {clock})
    if ({wrong}) begin
      $display("{name}: the model is for another configuration");
      $finish;
    end
`endif
endmodule
"""

_MULT18X18D = f"""\
// Model of Lattice ECP5's MULT18X18D with registers for both signed operands and the product, for simulation.
module MULT18X18D #(
  parameter REG_INPUTA_CLK = "NONE", parameter REG_INPUTB_CLK = "NONE", parameter REG_OUTPUT_CLK = "NONE"
) (
{_lines(f"input {', '.join([*_bits('A', 18), *_bits('B', 18), *_bits('C', 18)])},")}
  input SIGNEDA, SIGNEDB, SOURCEA, SOURCEB, CLK0, CE0, RST0,
{_lines(f"output {', '.join(_bits('P', 36))}")}
);
  reg signed [17:0] a = 18'h0, b = 18'h0;
  reg signed [35:0] p = 36'h0;
{_lines(f"assign {_joined('P', 36)} = p;")}
  always @(posedge CLK0)
    if (RST0) begin
      a <= 18'h0;
      b <= 18'h0;
      p <= 36'h0;
    end else if (CE0) begin
{_lines(f"    a <= {_joined('A', 18)};")}
{_lines(f"    b <= {_joined('B', 18)};")}
      p <= a * b;
    end
""" + _REFUSAL.format(clock="CLK0", name="MULT18X18D", wrong="""\
REG_INPUTA_CLK != "CLK0" || REG_INPUTB_CLK != "CLK0" || REG_OUTPUT_CLK != "CLK0"
        || {SIGNEDA, SIGNEDB, SOURCEA, SOURCEB} !== 4'b1100""")


def _dsp48(name: str, width: int, opmode: int, with_d: str) -> str:
    """A DSP48 whose multiplier takes ``width`` bits of A or D; ``with_d``: declaration of what selects D."""
    selects, _, given = with_d.partition(" = ")
    return f"""\
// Model of AMD's {name} as a multiply-accumulate with a choice of operand and addend, for simulation.
module {name} #(
  parameter AREG = 1, parameter ACASCREG = 1, parameter BREG = 1, parameter BCASCREG = 1, parameter DREG = 1,
  parameter INMODEREG = 1, parameter MREG = 1, parameter PREG = 1, parameter ADREG = 1, parameter ALUMODEREG = 1,
  parameter CARRYINREG = 1, parameter CARRYINSELREG = 1, parameter CREG = 1, parameter OPMODEREG = 1,
  parameter {with_d}
) (
  input CLK, RSTA, RSTB, RSTD, RSTINMODE, RSTM, RSTP, CEA1, CEA2, CEB1, CEB2, CED, CEINMODE, CEM, CEP,
  input signed [29:0] A,
  input signed [17:0] B,
  input [47:0] C,
  input signed [{width - 1}:0] D,
  input [4:0] INMODE,
  input [{opmode - 1}:0] OPMODE,
  output reg signed [47:0] P = 48'h0,
  input [29:0] ACIN,
  input [17:0] BCIN,
  input [47:0] PCIN,
  input [3:0] ALUMODE,
  input [2:0] CARRYINSEL,
  input CARRYCASCIN, CARRYIN, MULTSIGNIN, CEAD, CEALUMODE, CEC, CECARRYIN, CECTRL,
  input RSTALLCARRYIN, RSTALUMODE, RSTC, RSTCTRL
);
  reg signed [29:0] a = 30'h0;
  reg signed [17:0] b = 18'h0;
  reg signed [{width - 1}:0] d = {width}'h0;
  reg [4:0] inmode = 5'h0;
  reg signed [{width + 17}:0] m = {width + 18}'h0;
  wire signed [{width - 1}:0] multiplicand = inmode[2] ? d : a[{width - 1}:0];
  wire signed [47:0] addend = OPMODE[4] ? C : P;
  always @(posedge CLK) begin
    if (RSTA) a <= 30'h0;
    else if (CEA2) a <= A;
    if (RSTB) b <= 18'h0;
    else if (CEB2) b <= B;
    if (RSTD) d <= {width}'h0;
    else if (CED) d <= D;
    if (RSTINMODE) inmode <= 5'h0;
    else if (CEINMODE) inmode <= INMODE;
    if (RSTM) m <= {width + 18}'h0;
    else if (CEM) m <= multiplicand * b;
    if (RSTP) P <= 48'h0;
    else if (CEP) P <= m + addend;
  end
""" + _REFUSAL.format(clock="CLK", name=name, wrong=f"""\
{{AREG[0], ACASCREG[0], BREG[0], BCASCREG[0], DREG[0], INMODEREG[0], MREG[0], PREG[0]}} !== 8'hff
        || {{ADREG[0], ALUMODEREG[0], CARRYINREG[0], CARRYINSELREG[0], CREG[0], OPMODEREG[0]}} !== 6'h0
        || {{ACIN, BCIN, PCIN, ALUMODE, CARRYINSEL, CARRYCASCIN, CARRYIN, MULTSIGNIN}} !== 106'h0
        || (^OPMODE !== 1'bx && OPMODE != 'b0100101 && OPMODE != 'b0110101)
        || (^inmode !== 1'bx && inmode != 5'b00000 && ({selects} == {given} || inmode != 5'b00110))""")


#: text of each model by the name of its module
MODELS = {"MULT18X18D": _MULT18X18D, "DSP48E1": _dsp48("DSP48E1", 25, 7, 'USE_DPORT = "FALSE"'),
          "DSP48E2": _dsp48("DSP48E2", 27, 9, 'AMULTSEL = "A"')}
