"""The demonstration: a real model's matrices through simulated Verilog.

``demo`` runs it, ``models`` loads and speaks.
"""
