"""Llama's tokenizer: byte-pair encoding by score, with bytes where no piece fits.

Token 0 is unknown, 1 begins a text, 2 ends it; ``<0x41>`` spells a byte that may be anything.
"""

import heapq
import re
from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from sim_models.transformer.checkpoint import CheckpointError

__all__ = ["BOS", "EOS", "Tokenizer", "byte_pieces", "is_byte"]

UNKNOWN, BOS, EOS = 0, 1, 2
_BYTE = re.compile(rb"<0x([0-9A-F]{2})>")


def is_byte(piece: bytes) -> bool:
    """Whether a piece spells a byte, as ``<0x41>`` does."""
    return _BYTE.fullmatch(piece) is not None


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
    begin, space: bool
        Whether the begin token, and a space, are put in front of a text.
    control: collection of int
        Tokens beside 0 to 2 that no text spells.
    whole: collection of int
        Tokens that a text is cut at before it is merged. That is not done here: a text that holds one is refused.

    Raises
    ------
    CheckpointError
        Fewer than three pieces, pieces and scores of different number, an empty piece, a score that is NaN.
    """

    def __init__(self, pieces: list[bytes], scores: NDArray[np.float32], *, begin: bool = True, space: bool = True,
                 control: Collection[int] = (), whole: Collection[int] = ()) -> None:
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
        self.begin, self.space = begin, space
        self._silent = {UNKNOWN, BOS, EOS, *control}
        self._whole = sorted(whole)
        self._ids: dict[bytes, int] = {}
        self._bytes: dict[int, int] = {}
        for token, piece in enumerate(pieces):
            spelt = _BYTE.fullmatch(piece)
            if spelt:
                self._bytes.setdefault(int(spelt[1], 16), token)
            elif token not in self._silent:
                self._ids.setdefault(piece, token)
        self._byte_of = {t: b for b, t in self._bytes.items()}

    @property
    def vocab_size(self) -> int:
        """Number of tokens."""
        return len(self.pieces)

    @property
    def is_plain(self) -> bool:
        """Whether it works as llama2.c's: begin token and space before a text, no tokens of other kinds."""
        return self.begin and self.space and not self._whole and len(self._silent) == 3

    def encode(self, text: str | bytes) -> list[int]:
        """Tokens of a text, a begin token and a space in front of it (no space where it is empty).

        Bytes that are no UTF-8 (in a string: as ``surrogateescape`` has them) are spelt byte by byte.

        Raises
        ------
        CheckpointError
            A character has no piece and the vocabulary has no token for one of its bytes. Or the text holds a piece
            that it would have to be cut at.
        """
        try:
            raw = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
        except UnicodeEncodeError as error:
            raise CheckpointError(f"a text must be characters or bytes, not the lone surrogate "
                                  f"{text[error.start]!r} at {error.start}") from None
        for token in self._whole:
            if self.pieces[token] in raw:
                raise CheckpointError(f"a text cannot hold {self.pieces[token]!r}, a user-defined token, at which "
                                      f"texts are not cut yet")
        return [BOS] * self.begin + self.merge(b" " + raw if raw and self.space else raw)

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
        """Bytes of ``tokens``; control tokens give none, and the space that was put after begin goes.

        Raises
        ------
        CheckpointError
            A token is not in the vocabulary.
        """
        out = b""
        for token in map(int, tokens):
            if not 0 <= token < len(self.pieces):
                raise CheckpointError(f"a token must be from 0 to {len(self.pieces) - 1}, not {token}")
            if token not in self._silent:
                byte = self._byte_of.get(token)
                out += self.pieces[token] if byte is None else bytes([byte])
        return out.removeprefix(b" ") if self.space and len(tokens) and tokens[0] == BOS else out


def _characters(raw: bytes) -> list[bytes]:
    """Split at UTF-8 boundaries; a byte that is no UTF-8 stands alone."""
    return [c.encode("utf-8", "surrogateescape") for c in raw.decode("utf-8", "surrogateescape")]
