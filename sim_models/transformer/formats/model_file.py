"""A model or a tokenizer in a file of any format, told apart by what the file holds."""

import dataclasses
import os
from collections.abc import Callable
from typing import TypeVar

from sim_models.transformer.checkpoint import Checkpoint, CheckpointError, ModelShape
from sim_models.transformer.formats.files import Raw, map_file, named
from sim_models.transformer.formats.gguf import GGUF
from sim_models.transformer.formats.gguf_llama import (
    gguf_checkpoint,
    gguf_shape,
    gguf_tokenizer,
    gguf_verified,
)
from sim_models.transformer.formats.llama2c import HeaderError, parse_llama2c, parse_tokenizer
from sim_models.transformer.tokenizer import Tokenizer

__all__ = ["ModelFile", "open_model", "open_tokenizer"]

_MAGIC = b"GGUF"
_T = TypeVar("_T")


@dataclasses.dataclass(frozen=True)
class ModelFile:
    """A file that holds a model.

    Members
    -------
    name: str
        What messages call it.
    gguf: GGUF or None
        Its contents, if it is a GGUF file.
    """

    name: str
    raw: Raw
    gguf: GGUF | None

    @property
    def has_tokenizer(self) -> bool:
        """Whether the format has room for a tokenizer; of which kind it is, :meth:`tokenizer` says."""
        return self.gguf is not None

    def checkpoint(self) -> Checkpoint:
        """The model.

        Raises
        ------
        CheckpointError
            As :func:`gguf_checkpoint` and :func:`parse_llama2c`.
        """
        with named(self.name):
            if self.gguf is not None:
                return gguf_checkpoint(self.gguf)
            return _else(parse_llama2c, self.raw, "a llama2.c checkpoint")

    def verified(self) -> ModelShape:
        """The model's shape, after a look at all weights; takes no memory for them.

        Raises
        ------
        CheckpointError
            As :meth:`checkpoint`.
        """
        with named(self.name):
            if self.gguf is not None:
                return gguf_verified(self.gguf)
            return _else(lambda raw: parse_llama2c(raw, copy=False), self.raw, "a llama2.c checkpoint").shape

    def tokenizer(self) -> Tokenizer:
        """The model's own tokenizer.

        Raises
        ------
        CheckpointError
            The file has none, or as :func:`gguf_shape` and :func:`gguf_tokenizer`.
        """
        with named(self.name):
            if self.gguf is None:
                raise CheckpointError("a llama2.c checkpoint brings no tokenizer")
            gguf_shape(self.gguf)
            return gguf_tokenizer(self.gguf)


def open_model(path: str | os.PathLike[str]) -> ModelFile:
    """Look at a file; the model itself is read by :meth:`ModelFile.checkpoint`.

    Raises
    ------
    CheckpointError
        The file cannot be read, or is a GGUF file that ends early or has a field that is not what it may be.
    """
    raw = map_file(path)
    with named(path):
        return ModelFile(os.fspath(path), raw, GGUF(raw) if raw[:4] == _MAGIC else None)


def open_tokenizer(path: str | os.PathLike[str], vocab_size: int) -> Tokenizer:
    """Read a ``tokenizer.bin``, or the tokenizer of a GGUF file, for a model of ``vocab_size`` tokens.

    Raises
    ------
    CheckpointError
        The file cannot be read, is neither, is for another number of tokens, or as :func:`gguf_tokenizer` and
        :func:`parse_tokenizer`.
    """
    raw = map_file(path)
    with named(path):
        if raw[:4] != _MAGIC:
            return _else(lambda r: parse_tokenizer(r, vocab_size), raw, "a tokenizer.bin")
        tokenizer = gguf_tokenizer(GGUF(raw))
        if tokenizer.vocab_size != vocab_size:
            raise CheckpointError(f"{vocab_size} tokens are wanted, this tokenizer has {tokenizer.vocab_size}")
        return tokenizer


def _else(parse: Callable[[Raw], _T], raw: Raw, what: str) -> _T:
    """Parse what is no GGUF file; if it is nothing of ours, say both."""
    try:
        return parse(raw)
    except HeaderError as error:
        raise CheckpointError(f"this is neither a GGUF file, which starts with {_MAGIC!r}, nor {what}: "
                              f"{error}") from None
