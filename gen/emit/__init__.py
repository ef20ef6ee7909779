"""Verilog: one module per block and parameters, the same bytes on every machine.

``emit`` is the platform that turns children into instances; ``names`` keeps names legal; ``yosys`` and ``process``
run the tools.
"""
