"""Models in numpy, without hardware: what every block must compute, and how long it takes.

``params`` and ``spec`` hold what hardware and models share: parameters and codes. ``golden`` has a model of each
block. ``numerics`` is the arithmetic, bit for bit; ``mapping`` turns matrices into commands; ``perf`` counts cycles.
``specdec`` decodes speculatively and keeps the schedules; ``transformer`` has the models that it speaks with.
"""
