"""What is done with a design besides writing it.

``check`` lets other tools read it, ``formal`` proves, ``synth`` and ``cells`` count, ``doctor`` looks for the tools.
"""
