"""The hardware, in Amaranth.

``tile`` computes, ``manager`` decides, ``pim`` computes beside the banks, ``sfu`` does softmax, norms and
activations. ``arith`` has float pipelines, ``memory`` RAM and queues, ``bus`` AXI4-Lite, ``primitives`` vendors'
multiplier blocks, ``parts`` pieces without a module of their own. ``registry`` names every block; ``unit`` is the
base class of all.
"""
