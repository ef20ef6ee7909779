"""GGUF files, versions 2 and 3: keys with values, and F32, F16, Q8_0, Q4_0 and Q4_1 tensors, dequantised.

Nothing is read but the description and the tensors that are asked for. Source: the GGUF specification and block
formats of ggml.
"""

import dataclasses
import itertools
import math
import os
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim_models.transformer.checkpoint import CheckpointError, times
from sim_models.transformer.formats.files import Raw as Bytes
from sim_models.transformer.formats.files import map_file, named

__all__ = ["GGUF", "read_gguf", "shown"]

Float = NDArray[np.float32]
Raw = NDArray[np.uint8]

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "B", 10: "Q", 11: "q", 12: "d"}
_BOOL, _STRING, _ARRAY = 7, 8, 9
_MAX_DIMS, _MAX_ELEMENTS, _MAX_NESTING = 4, 1 << 36, 8


def _half(raw: Raw) -> Float:
    return np.ascontiguousarray(raw).view("<f2").astype(np.float32)


def _nibbles(raw: Raw) -> Float:
    """Sixteen bytes hold elements 0..15 in their low halves and 16..31 in their high halves."""
    return np.concatenate((raw & 15, raw >> 4), axis=1).astype(np.float32)


def _q8_0(block: Raw) -> Float:
    return _half(block[:, :2]) * np.ascontiguousarray(block[:, 2:]).view(np.int8).astype(np.float32)


def _q4_0(block: Raw) -> Float:
    return _half(block[:, :2]) * (_nibbles(block[:, 2:]) - 8)


def _q4_1(block: Raw) -> Float:
    return _half(block[:, :2]) * _nibbles(block[:, 4:]) + _half(block[:, 2:4])


@dataclasses.dataclass(frozen=True)
class _Format:
    name: str
    elements: int                           # per block
    size: int                               # bytes per block
    decode: Callable[[Raw], Float]          # uint8 [blocks, size] -> float32 [blocks, elements]


_FORMATS = {
    0: _Format("F32", 1, 4, lambda b: np.ascontiguousarray(b).view("<f4").astype(np.float32)),
    1: _Format("F16", 1, 2, _half),
    2: _Format("Q4_0", 32, 18, _q4_0),
    3: _Format("Q4_1", 32, 20, _q4_1),
    8: _Format("Q8_0", 32, 34, _q8_0),
}
_OTHER_FORMATS = {
    6: "Q5_0", 7: "Q5_1", 9: "Q8_1", 10: "Q2_K", 11: "Q3_K", 12: "Q4_K", 13: "Q5_K", 14: "Q6_K", 15: "Q8_K",
    16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S", 20: "IQ4_NL", 21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS",
    24: "I8", 25: "I16", 26: "I32", 27: "I64", 28: "F64", 29: "IQ1_M", 30: "BF16", 34: "TQ1_0", 35: "TQ2_0",
    39: "MXFP4", 40: "NVFP4", 41: "Q1_0"}
"""Formats that are known by name and not read."""


@dataclasses.dataclass(frozen=True)
class _Tensor:
    shape: tuple[int, ...]                  # slowest dimension first
    format: _Format
    offset: int

    @property
    def size(self) -> int:
        return math.prod(self.shape) // self.format.elements * self.format.size


def shown(value: object) -> str:
    """Something from a file as a message can show it: one line, and not a long one."""
    text = value if isinstance(value, str) and value.isprintable() else " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:80]}..."


class _Reader:
    """Little-endian fields, one after the other."""

    def __init__(self, raw: Bytes) -> None:
        self.raw, self.at = raw, 0

    def take(self, size: int, what: str) -> bytes:
        if size > len(self.raw) - self.at:
            raise CheckpointError(f"{what} needs {size} bytes at {self.at}, the file has {len(self.raw)}")
        self.at += size
        return self.raw[self.at - size:self.at]

    def scalar(self, code: str, what: str) -> Any:
        return struct.unpack("<" + code, self.take(struct.calcsize("<" + code), what))[0]

    def string(self, what: str) -> str:
        """Text; bytes that are no UTF-8 become lone surrogates."""
        return self.take(self.scalar("Q", what), what).decode("utf-8", "surrogateescape")

    def name(self, what: str) -> str:
        text = self.string(what)
        try:
            text.encode()
        except UnicodeEncodeError:
            raw = text.encode("utf-8", "surrogateescape")
            raise CheckpointError(f"{what} must be UTF-8 text, not {raw[:32]!r}") from None
        return text

    def value(self, kind: int, what: str, nesting: int = 0) -> Any:
        if kind in _SCALARS:
            value = self.scalar(_SCALARS[kind], what)
            return bool(value) if kind == _BOOL else value
        if kind == _STRING:
            return self.string(what)
        if kind != _ARRAY:
            raise CheckpointError(f"{what} must have a value type from 0 to 12, not {kind}")
        if nesting == _MAX_NESTING:
            raise CheckpointError(f"{what} must nest at most {_MAX_NESTING} arrays")
        inner, count = self.scalar("I", what), self.scalar("Q", what)
        if inner in _SCALARS:
            code = "<" + _SCALARS[inner]
            array = np.frombuffer(self.take(count * struct.calcsize(code), what), code)
            return array.astype(bool) if inner == _BOOL else array
        return [self.value(inner, what, nesting + 1) for _ in range(count)]


class GGUF:
    """A parsed file.

    Members
    -------
    metadata: dict
        Keys and values as the file has them; arrays of numbers are numpy's, other arrays are lists.
    tensors: list of str
        Names.

    Raises
    ------
    CheckpointError
        The file ends early, or a field is not what it may be.
    """

    def __init__(self, raw: Bytes) -> None:
        reader = _Reader(raw)
        magic = reader.take(4, "the magic number")
        if magic != b"GGUF":
            raise CheckpointError(f"a GGUF file starts with b'GGUF', this file with {magic!r}")
        version = reader.scalar("I", "the version")
        if version not in (2, 3):
            order = ", its byte order is big-endian" if version in (2 << 24, 3 << 24) else ""
            raise CheckpointError(f"the GGUF version must be 2 or 3, not {version}{order}")
        tensors, keys = reader.scalar("Q", "the number of tensors"), reader.scalar("Q", "the number of keys")
        self.metadata: dict[str, Any] = {}
        for _ in range(keys):
            key = reader.name("a key")
            if key in self.metadata:
                raise CheckpointError(f"the key {shown(key)} is there twice")
            self.metadata[key] = reader.value(reader.scalar("I", shown(key)), shown(key))
        self._tensors: dict[str, _Tensor] = {}
        for _ in range(tensors):
            self._describe(reader)
        self._place(reader)

    def _describe(self, reader: _Reader) -> None:
        name = reader.name("a tensor's name")
        what = f"tensor {shown(name)}"
        if name in self._tensors:
            raise CheckpointError(f"{what} is there twice")
        dims = reader.scalar("I", what)
        if not 1 <= dims <= _MAX_DIMS:
            raise CheckpointError(f"{what} must have from 1 to {_MAX_DIMS} dimensions, not {dims}")
        sizes = tuple(reader.scalar("Q", what) for _ in range(dims))
        if not 1 <= math.prod(sizes) <= _MAX_ELEMENTS:
            raise CheckpointError(f"{what} must have from 1 to 2**36 elements, not {times(sizes)}")
        kind, offset = reader.scalar("I", what), reader.scalar("Q", what)
        if kind not in _FORMATS:
            known = ", ".join(f"{f.name} ({k})" for k, f in _FORMATS.items())
            other = f"{_OTHER_FORMATS[kind]} ({kind}), which is not read yet" if kind in _OTHER_FORMATS else kind
            raise CheckpointError(f"{what} must have one of the types {known}, not {other}")
        if sizes[0] % _FORMATS[kind].elements:
            raise CheckpointError(f"{what} must have rows of a multiple of {_FORMATS[kind].elements} "
                                  f"elements for {_FORMATS[kind].name}, not {sizes[0]}")
        self._tensors[name] = _Tensor(sizes[::-1], _FORMATS[kind], offset)

    def _place(self, reader: _Reader) -> None:
        align = self.metadata.get("general.alignment", 32)
        if not isinstance(align, int) or align < 1 or align % 8:
            raise CheckpointError(f"general.alignment must be a multiple of 8, not {shown(align)}")
        self._raw, self._start = reader.raw, -(-reader.at // align) * align
        for name, tensor in self._tensors.items():
            if tensor.offset % align:
                raise CheckpointError(f"tensor {shown(name)} must have an offset of a multiple of {align}, "
                                      f"not {tensor.offset}")
            end = self._start + tensor.offset + tensor.size
            if end > len(reader.raw):
                raise CheckpointError(f"tensor {shown(name)} ends at byte {end}, the file has {len(reader.raw)}")
        # a file that says the same bytes again and again could ask for any amount of memory
        placed = sorted(self._tensors.items(), key=lambda item: item[1].offset)
        for (name, tensor), (following, other) in itertools.pairwise(placed):
            if tensor.offset + tensor.size > other.offset:
                raise CheckpointError(f"tensor {shown(following)} begins at {other.offset}, inside of tensor "
                                      f"{shown(name)}, which has {tensor.size} bytes from {tensor.offset} on")

    @property
    def tensors(self) -> list[str]:
        """Names of the tensors."""
        return list(self._tensors)

    @property
    def quantised(self) -> bool:
        """Whether a tensor is stored in blocks."""
        return any(t.format.elements > 1 for t in self._tensors.values())

    def shape(self, name: str) -> tuple[int, ...]:
        """Shape of a tensor, slowest dimension first."""
        if name not in self._tensors:
            raise CheckpointError(f"tensor {name} is missing")
        return self._tensors[name].shape

    def tensor(self, name: str, wanted: tuple[int, ...] | None = None, rows: int | None = None) -> Float:
        """A tensor, dequantised: float32, slowest dimension first.

        Parameters
        ----------
        wanted: tuple of int or None
            The shape that it must have but for dimensions of 1, and that is returned.
        rows: int or None
            Read its first rows only.

        Raises
        ------
        CheckpointError
            There is no such tensor, or it has another shape.
        """
        found = self.shape(name)
        wanted = found if wanted is None else wanted
        if [n for n in found if n > 1] != [n for n in wanted if n > 1]:
            raise CheckpointError(f"tensor {name} must have shape {times(wanted)}, not {times(found)}")
        t = self._tensors[name]
        if rows is not None:
            wanted = (rows, *wanted[1:])
        size = math.prod(wanted) // t.format.elements * t.format.size
        raw = np.frombuffer(self._raw, np.uint8, size, self._start + t.offset).reshape(-1, t.format.size)
        with np.errstate(invalid="ignore"):         # a scale may be infinite: what comes of it is refused later
            return t.format.decode(raw).reshape(wanted)


def read_gguf(path: str | os.PathLike[str]) -> GGUF:
    """Parse a GGUF file.

    Raises
    ------
    CheckpointError
        The file cannot be read, or as :class:`GGUF`.
    """
    raw = map_file(path)
    with named(path):
        return GGUF(raw)
