"""Processing in memory: what stands beside the banks of a stack, and its buffer die (SADDLE IV-C)."""
