"""Memories of draft tokens (SADDLE IV-B).

``shared_pool`` holds what waits for verification, ``eager_pool`` what was drafted meanwhile.
"""
