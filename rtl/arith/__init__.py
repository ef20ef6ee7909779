"""Float pipelines: operands in every cycle, results a stated number of cycles later."""
