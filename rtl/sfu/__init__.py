"""The special function unit: softmax, norms, activations and sums of rows.

``buffer_die_sfu`` is made of ``sfu_control`` and lanes (``sfu_lane``) with trees behind them.
"""
