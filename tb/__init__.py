"""Benches: cocotb and native simulation, in the folders of ``rtl``.

``common`` has drivers, rules, scoreboards and the runner. A folder beside it has the benches ``test_<block>`` and
what they share: traffic, hosts (which play the software) and meters (which count cycles for the command line).
"""
