"""The compute engine (SPECTRA 2.2).

``pe`` makes ``pe_array``; ``activation_feeder`` and ``weight_feeder`` bring operands, ``result_path`` takes results;
``gemm_decoder`` and ``gemm_sequencer`` carry out commands. ``compute_engine`` joins them.
"""
