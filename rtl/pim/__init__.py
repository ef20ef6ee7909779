"""Processing in memory (SADDLE III and IV-C).

``bank``: a DRAM bank and its processing element. ``channel``: 16 banks in lockstep under a command decoder.
``stack``: pseudo-channels side by side with the special function unit.
"""
