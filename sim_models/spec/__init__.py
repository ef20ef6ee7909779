"""Facts that hardware, models, packers and documentation share: each code and each name is written once, here.

``bank``, ``channel`` and ``stack`` belong to the PIM side, ``sfu`` to the special function unit and ``manager`` to
the Manager.
"""
