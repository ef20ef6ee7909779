"""Language models: files, forward passes, tokenizers, and the shipped pair.

``checkpoint`` and ``formats`` read files; ``float_model`` and ``int8_model`` compute; ``decoding`` and ``cache`` make
texts; ``tokenizer`` turns them into tokens; ``pair`` loads the shipped target and draft, ``smollm2`` a larger model.
"""
