"""The softmax unit: from streamed logits to the probability of a token (SADDLE IV-A).

``softmax_unit`` is made of ``softmax_scan``, ``softmax_sum`` and ``softmax_finish``.
"""
