"""llama2.c's ``tokenizer.bin``: byte-pair encoding by score, with bytes where no piece fits.

The file holds the length of the longest piece (int32) and, per token, its score (float32), its length (int32)
and its bytes. Token 0 is unknown, 1 begins a text, 2 ends it; ``<0x41>`` spells a byte that may be anything.
"""

import heapq
import os
import re
import struct

import numpy as np
from numpy.typing import NDArray

from sim_models.transformer.checkpoint import CheckpointError, read_file, write_file

__all__ = ["BOS", "EOS", "Tokenizer", "byte_pieces", "load_tokenizer", "save_tokenizer"]

UNKNOWN, BOS, EOS = 0, 1, 2
_BYTE = re.compile(rb"<0x([0-9A-F]{2})>")


def byte_pieces() -> list[bytes]:
    """The first 259 pieces of a vocabulary with byte fallback: unknown, begin, end, and every byte."""
    return [b"<unk>", b"\n<s>\n", b"\n</s>\n", *(b"<0x%02X>" % b for b in range(256))]


class Tokenizer:
    """Text to tokens and back.

    Parameters
    ----------
    pieces: list of bytes
        The bytes of each token, tokens 0 to 2 as above.
    scores: float32 [vocab_size]
        The pair whose union has the highest score is merged first (equal: the leftmost).

    Raises
    ------
    CheckpointError
        Fewer than three pieces, pieces and scores of different number, an empty piece, a score that is NaN.
    """

    def __init__(self, pieces: list[bytes], scores: NDArray[np.float32]) -> None:
        if len(pieces) < 3 or len(pieces) != len(scores):
            raise CheckpointError(f"a vocabulary must have at least 3 pieces and a score for each, "
                                  f"not {len(pieces)} pieces and {len(scores)} scores")
        for token, (piece, score) in enumerate(zip(pieces, scores, strict=True)):
            if not piece:
                raise CheckpointError(f"a piece must have at least 1 byte, token {token} has none")
            if np.isnan(score):
                raise CheckpointError(f"a score must be a number, token {token} has {score}")
        self.pieces = list(pieces)
        self.scores = np.asarray(scores, np.float32)
        self._ids: dict[bytes, int] = {}
        self._bytes: dict[int, int] = {}
        for token, piece in enumerate(pieces):
            spelt = _BYTE.fullmatch(piece)
            if spelt:
                self._bytes.setdefault(int(spelt[1], 16), token)
            elif token > EOS:
                self._ids.setdefault(piece, token)
        self._byte_of = {t: b for b, t in self._bytes.items()}

    @property
    def vocab_size(self) -> int:
        """Number of tokens."""
        return len(self.pieces)

    def encode(self, text: str | bytes, *, bos: bool = True) -> list[int]:
        """Tokens of a text, as llama2.c makes them: a space is put in front of a text that is not empty.

        Bytes that are no UTF-8 (in a string: as ``surrogateescape`` has them) are spelt byte by byte.

        Raises
        ------
        CheckpointError
            A character has no piece and the vocabulary has no token for one of its bytes.
        """
        try:
            raw = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
        except UnicodeEncodeError as error:
            raise CheckpointError(f"a text must be characters or bytes, not the lone surrogate "
                                  f"{text[error.start]!r} at {error.start}") from None
        tokens = [BOS] if bos else []
        return tokens + self.merge(b" " + raw if raw else b"")

    def merge(self, raw: bytes) -> list[int]:
        """Tokens of ``raw`` with nothing put in front, in time n log n."""
        tokens = [t for character in _characters(raw) for t in self._spell(character)]
        after = list(range(1, len(tokens) + 1))         # a linked list of the tokens that are left
        before = list(range(-1, len(tokens) - 1))
        queue: list[tuple[float, int, int, int, int]] = []

        def offer(left: int) -> None:
            if after[left] < len(tokens):
                pair = tokens[left], tokens[after[left]]
                union = self._union(*pair)
                if union is not None:
                    heapq.heappush(queue, (-float(self.scores[union]), left, union, *pair))

        for left in range(len(tokens)):
            offer(left)
        while queue:
            _, left, union, first, second = heapq.heappop(queue)
            right = after[left]
            if tokens[left] != first or right >= len(tokens) or tokens[right] != second:
                continue                                # one of the two has been merged since
            tokens[left], tokens[right] = union, -1
            after[left] = after[right]
            if after[left] < len(tokens):
                before[after[left]] = left
            offer(left)
            if before[left] >= 0:
                offer(before[left])
        return [t for t in tokens if t >= 0]

    def _union(self, left: int, right: int) -> int | None:
        if left in self._byte_of or right in self._byte_of:
            return None
        return self._ids.get(self.pieces[left] + self.pieces[right])

    def _spell(self, character: bytes) -> list[int]:
        if character in self._ids:
            return [self._ids[character]]
        for byte in character:
            if byte not in self._bytes:
                raise CheckpointError(f"the vocabulary has no piece for {character!r} and none for its byte "
                                      f"0x{byte:02x}")
        return [self._bytes[b] for b in character]

    def decode(self, tokens: list[int] | NDArray[np.integer]) -> bytes:
        """Bytes of ``tokens``; begin, end and unknown give none, and a space right after begin goes.

        Raises
        ------
        CheckpointError
            A token is not in the vocabulary.
        """
        out = b""
        for token in map(int, tokens):
            if not 0 <= token < len(self.pieces):
                raise CheckpointError(f"a token must be from 0 to {len(self.pieces) - 1}, not {token}")
            if token > EOS:
                byte = self._byte_of.get(token)
                out += self.pieces[token] if byte is None else bytes([byte])
        return out.removeprefix(b" ") if len(tokens) and tokens[0] == BOS else out


def _characters(raw: bytes) -> list[bytes]:
    """Split at UTF-8 boundaries; a byte that is no UTF-8 stands alone."""
    return [c.encode("utf-8", "surrogateescape") for c in raw.decode("utf-8", "surrogateescape")]


def load_tokenizer(path: str | os.PathLike[str], vocab_size: int) -> Tokenizer:
    """Read ``tokenizer.bin`` for a model with ``vocab_size`` tokens.

    Raises
    ------
    CheckpointError
        The file cannot be read, ends early, goes on, or has a piece longer than it says.
    """
    raw = read_file(path)
    try:
        return _parse(raw, vocab_size)
    except CheckpointError as error:
        raise CheckpointError(f"{os.fspath(path)}: {error}") from None


def _parse(raw: bytes, vocab_size: int) -> Tokenizer:
    if len(raw) < 4:
        raise CheckpointError(f"a tokenizer file has at least 4 bytes, this file has {len(raw)}")
    longest = struct.unpack_from("<i", raw)[0]
    if longest < 1:
        raise CheckpointError(f"the longest piece must have at least 1 byte, the file says {longest}")
    at, pieces, scores = 4, [], []
    for token in range(vocab_size):
        if at + 8 > len(raw):
            raise CheckpointError(f"{vocab_size} tokens are wanted, the file ends in token {token}")
        score, length = struct.unpack_from("<fi", raw, at)
        at += 8
        if not 1 <= length <= longest:
            raise CheckpointError(f"a piece must have from 1 to {longest} bytes, token {token} says {length}")
        if at + length > len(raw):
            raise CheckpointError(f"{vocab_size} tokens are wanted, the file ends in token {token}")
        pieces.append(raw[at:at + length])
        scores.append(score)
        at += length
    if at != len(raw):
        raise CheckpointError(f"{vocab_size} tokens end at byte {at}, this file has {len(raw)}")
    return Tokenizer(pieces, np.array(scores, np.float32))


def save_tokenizer(path: str | os.PathLike[str], tokenizer: Tokenizer) -> None:
    """Write ``tokenizer.bin``; whole or not at all."""
    parts = [struct.pack("<i", max(map(len, tokenizer.pieces)))]
    for piece, score in zip(tokenizer.pieces, tokenizer.scores, strict=True):
        parts.append(struct.pack("<fi", score, len(piece)) + piece)
    write_file(path, b"".join(parts))
