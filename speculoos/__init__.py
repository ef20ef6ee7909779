"""The command ``speculoos``.

``cli`` finds the sub-command in ``commands``; ``arguments`` and ``report`` are shared by all. ``bench`` and ``demo``
measure and show; ``plots`` draws.
"""
