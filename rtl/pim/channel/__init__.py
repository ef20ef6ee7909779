"""A pseudo-channel: commands in, exact sums out.

``pim_decoder`` checks; ``mac_sequencer``, ``sum_reader`` and ``global_buffer`` carry out; ``dram_rows`` keeps the
timing.
"""
