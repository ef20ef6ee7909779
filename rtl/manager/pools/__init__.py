"""Memories of draft tokens (SADDLE IV-B).

``shared_pool`` holds what waits for verification, by ``token_lists``, ``request_cam`` and ``tournament``;
``eager_counts`` says how much was drafted meanwhile.
"""
