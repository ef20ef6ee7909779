"""Speculative decoding, exact and without hardware (SADDLE IV).

``simulation`` decodes with models, policies (``policies``), pools (``pools``) and rules (``rules``); ``scheduler``
decides alone, as the Manager does, and ``costs`` says what steps take. ``enumeration`` computes output laws exactly;
``traces`` records and replays texts. ``fixed`` and ``draws`` are its numbers: UQ1.15 and keyed uniforms.
"""
