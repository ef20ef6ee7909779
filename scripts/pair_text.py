"""The text that the shipped pair is trained on, and its vocabulary.

The text is the World English Bible with Deuterocanon, which its translators dedicated to the public domain,
as Debian's package ``sword-text-web`` carries it: a SWORD zText module (zlib blocks of OSIS markup).
"""

import collections
import hashlib
import itertools
import re
import struct
import subprocess
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sim_models.transformer.tokenizer import BOS, EOS, Tokenizer, byte_pieces

__all__ = ["TextError", "fetch_text", "held_out_prompts", "sentence_starts", "tokenise", "train_vocabulary"]

PACKAGE, VERSION = "sword-text-web", "426.0-1"
DIGEST = "68ae4062c22e66b66b11411fc62b2b2f87eabc74f147092601e0cf8491b06654"
MODULE = "usr/share/sword/modules/texts/ztext/engWEB2015eb"

_QUOTES = {0x201C: '"', 0x201D: '"', 0x2018: "'", 0x2019: "'", 0x2013: "-", 0x2014: "-"}

Stream = NDArray[np.int16]


class TextError(RuntimeError):
    """The text could not be fetched, is not the one the shipped pair was trained on, or is too little."""


def fetch_text(build: Path) -> list[str]:
    """Download the Debian package into ``build`` (once) and return its chapters as plain ASCII text.

    Raises
    ------
    TextError
        A command failed, or the text has another SHA-256 than the one the pair was trained on.
    """
    build.mkdir(parents=True, exist_ok=True)
    archive = build / f"{PACKAGE}_{VERSION}_all.deb"
    if not archive.exists():
        _run(["apt-get", "download", f"{PACKAGE}={VERSION}"], build)
    _run(["dpkg-deb", "-x", archive.name, PACKAGE], build)
    chapters = [c for part in ("ot", "nt") for c in _chapters(_read_ztext(build / PACKAGE / MODULE, part))]
    digest = hashlib.sha256("\f".join(chapters).encode()).hexdigest()
    print(f"text: Debian package {PACKAGE} {VERSION}, {len(chapters)} chapters, "
          f"{sum(map(len, chapters))} characters, sha256 {digest}", flush=True)
    if digest != DIGEST:
        raise TextError(f"the text must have SHA-256 {DIGEST}, not {digest}")
    return chapters


def _run(command: list[str], folder: Path) -> None:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    except OSError as error:
        raise TextError(f"{command[0]} cannot be run: {error.strerror}") from None
    if done.returncode:
        raise TextError(f"{' '.join(command)} failed: {' '.join(done.stderr.split())}")


def _read_ztext(module: Path, part: str) -> str:
    """One testament of a zText module: an index of (offset, packed size, size), and zlib blocks."""
    packed = (module / f"{part}.bzz").read_bytes()
    index = struct.iter_unpack("<III", (module / f"{part}.bzs").read_bytes())
    return "\n".join(zlib.decompress(packed[at:at + size]).decode() for at, size, _ in index if size)


def _chapters(osis: str) -> Iterator[str]:
    """Split OSIS markup into chapters; paragraphs become lines, notes and headings go."""
    osis = re.sub(r"(?s)<(note|title|speaker|list|rdg)\b[^>]*>.*?</\1>", " ", osis)
    osis = re.sub(r'<div [^>]*type="x-p"[^>]*>', "\0", osis)
    osis = osis.translate(str.maketrans(_QUOTES))
    for chapter in re.findall(r"(?s)<chapter [^>]*sID=[^>]*>(.*?)<chapter [^>]*eID=", osis):
        text = re.sub(r"<[^>]*>", "", chapter).encode("ascii", "ignore").decode()
        paragraphs = (re.sub(r"\s+", " ", p).strip() for p in text.split("\0"))
        text = "\n".join(re.sub(r" ([,.;:?!])", r"\1", p) for p in paragraphs if p)
        if len(text) > 200:
            yield text


WORD = re.compile(r" ?[A-Za-z]+| ?[0-9]+| ?[^A-Za-z0-9 \n]+| +|\n")


def train_vocabulary(chapters: list[str], size: int) -> Tokenizer:
    """Byte-fallback BPE: three control pieces, 256 byte pieces, the characters, then merges by frequency.

    Pieces lie within words, a word's leading space included.

    Raises
    ------
    TextError
        All words have become pieces before there are ``size``.
    """
    counts = collections.Counter(w for c in chapters for w in WORD.findall(" " + c))
    pieces = byte_pieces() + sorted({c.encode() for w in counts for c in w})
    words = {w: list(w) for w in counts}
    while len(pieces) < size:
        pairs: collections.Counter[tuple[str, str]] = collections.Counter()
        for word, parts in words.items():
            for pair in itertools.pairwise(parts):
                pairs[pair] += counts[word]
        if not pairs:
            raise TextError(f"the text must have pieces for a vocabulary of {size}, it has {len(pieces)}")
        best = min(pairs, key=lambda p: (-pairs[p], p))
        pieces.append("".join(best).encode())
        words = {word: _join(parts, best) for word, parts in words.items()}
    return Tokenizer(pieces, -np.arange(size, dtype=np.float32))


def _join(parts: list[str], pair: tuple[str, str]) -> list[str]:
    out: list[str] = []
    for part in parts:
        if out and (out[-1], part) == pair:
            out[-1] += part
        else:
            out.append(part)
    return out


def tokenise(chapters: Iterable[str], tokenizer: Tokenizer) -> Stream:
    """All chapters as one stream of tokens, each between BOS and EOS."""
    known: dict[str, list[int]] = {}
    stream: list[int] = []
    for chapter in chapters:
        stream.append(BOS)
        for word in WORD.findall(" " + chapter):
            if word not in known:
                known[word] = tokenizer.merge(word.encode())
            stream += known[word]
        stream.append(EOS)
    return np.array(stream, np.int16)


def sentence_starts(stream: Stream, tokenizer: Tokenizer, window: int) -> NDArray[np.int64]:
    """Positions after BOS, the end of a sentence or of a line, with ``window`` tokens left."""
    ends = [i for i, p in enumerate(tokenizer.pieces) if i == BOS or p[-1:] in b'.?!\n"']
    starts = np.flatnonzero(np.isin(stream, ends)) + 1
    return starts[starts <= len(stream) - window]


def held_out_prompts(chapters: list[str], count: int) -> list[str]:
    """Openings of chapters, cut at a word's end after 40 to 90 characters."""
    step = max(1, len(chapters) // count)
    openings = [c.replace("\n", " ") for c in chapters[::step][:count]]
    return [text[:40 + i * 37 % 51].rpartition(" ")[0] for i, text in enumerate(openings)]
