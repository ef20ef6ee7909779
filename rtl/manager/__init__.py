"""SADDLE's Manager: who drafts, where tokens go, what is verified (SADDLE IV).

``saddle_manager`` is the whole, ``manager`` the part that decides. ``events`` has a block for each thing that it
does, ``requests`` what it knows of requests, ``pools`` the draft tokens; ``softmax`` turns logits into probabilities.
``draft_controller`` and ``intensity_scheduler`` are its helpers.
"""
