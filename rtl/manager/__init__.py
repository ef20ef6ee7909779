"""SADDLE's Manager: who drafts, where tokens go, what is verified (SADDLE IV).

``pools`` keeps draft tokens, ``softmax`` turns logits into probabilities. ``saddle_manager`` is the whole,
``manager`` the part that decides; ``draft_controller`` and ``intensity_scheduler`` are its helpers.
"""
