"""Model files.

``model_file``: any of them, by what it holds. ``llama2c``: checkpoints and ``tokenizer.bin`` of llama2.c, read and
written. ``gguf``: the container of GGUF files and its tensors. ``gguf_llama``: the Llama model and the vocabulary in
such a file. ``files``: bytes from and to disk.
"""
