"""The generator: from a configuration to everything on disk.

``config`` reads designs, ``emit`` writes Verilog, ``products`` the files around it, ``flows`` checks, proves and
synthesises. ``presets`` are designs that come along; ``errors`` are what users read.
"""
