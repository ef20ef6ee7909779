"""The model pair that ships with the project (trained by ``scripts/train_pair.py``)."""

import dataclasses
import os
from pathlib import Path

from sim_models.transformer.checkpoint import Checkpoint, CheckpointError
from sim_models.transformer.formats.files import map_file
from sim_models.transformer.formats.llama2c import load_llama2c, load_tokenizer
from sim_models.transformer.tokenizer import Tokenizer

__all__ = ["DATA", "Pair", "load_pair"]

DATA = Path(__file__).parent / "data"


@dataclasses.dataclass(frozen=True)
class Pair:
    """A target, a draft of the same vocabulary, their tokenizer, and prompts that neither was trained on."""

    target: Checkpoint
    draft: Checkpoint
    tokenizer: Tokenizer
    prompts: list[str]


def load_pair(folder: str | os.PathLike[str] = DATA) -> Pair:
    """Read ``target.bin``, ``draft.bin``, ``tokenizer.bin`` and ``prompts.txt`` (one prompt a line).

    Raises
    ------
    CheckpointError
        A file is missing or wrong, or the two models differ in vocabulary.
    """
    folder = Path(folder)
    target, draft = load_llama2c(folder / "target.bin"), load_llama2c(folder / "draft.bin")
    if draft.shape.vocab_size != target.shape.vocab_size:
        raise CheckpointError(f"the draft must have the target's vocabulary of {target.shape.vocab_size} "
                              f"tokens, not {draft.shape.vocab_size}")
    tokenizer = load_tokenizer(folder / "tokenizer.bin", target.shape.vocab_size)
    try:
        prompts = map_file(folder / "prompts.txt")[:].decode().splitlines()
    except UnicodeDecodeError:
        raise CheckpointError(f"{folder / 'prompts.txt'}: prompts must be UTF-8 text") from None
    return Pair(target, draft, tokenizer, prompts)
