"""Buses at the outer boundary.

``axi_lite`` is the slave; ``registers`` describes register tables.
"""
