"""Between numpy and packed payload bits, for every layout that crosses a block boundary.

A payload of b bits is ceil(b / 8) bytes, least significant first, the unused top bits zero.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from amaranth.hdl import Shape
from amaranth.lib import data

__all__ = ["Codec", "Leaf", "codec"]


@dataclasses.dataclass(frozen=True)
class Leaf:
    """A scalar field or an array of equal scalars without gaps; offset and width in bits."""

    path: tuple[str, ...]
    offset: int
    width: int
    signed: bool
    shape: tuple[int, ...]

    @property
    def count(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def bounds(self) -> tuple[int, int]:
        return (-(1 << (self.width - 1)), (1 << (self.width - 1)) - 1) if self.signed else (
            0, (1 << self.width) - 1)


class Codec:
    """Packs and unpacks many payloads of one layout at once.

    Parameters
    ----------
    layout:
        A struct or array layout of integers (nested as you like), or a plain shape.

    Raises
    ------
    TypeError
        The layout has overlapping members or one that is no integer.
    """

    def __init__(self, layout: Any) -> None:
        #: bits of a payload
        self.bits = Shape.cast(layout).width
        #: bytes of a payload
        self.nbytes = -(-self.bits // 8)
        #: fields in the order of their bits
        self.leaves = tuple(_leaves(layout, (), 0))
        self._plain = not isinstance(layout, data.StructLayout)

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the fields, nested ones with dots; one empty name for a payload without names."""
        return tuple(".".join(leaf.path) for leaf in self.leaves)

    def pack(self, values: Any = None, /, **fields: Any) -> np.ndarray:
        """Pack payloads.

        Parameters
        ----------
        values:
            Dictionary from field name to array, or the array itself for a layout without names. The first
            axis counts payloads; a value without it is repeated. Missing fields are an error.

        Returns
        -------
        numpy.ndarray
            uint8, shape (payloads, :attr:`nbytes`).

        Raises
        ------
        ValueError
            A field is missing, unknown, has the wrong shape, or a value that does not fit.
        """
        if self._plain:
            given: Mapping[str, Any] = {"": values}
        else:
            given = {**(values or {}), **fields}
        if set(given) != set(self.fields):
            raise ValueError(f"fields {', '.join(self.fields)} were wanted, "
                             f"{', '.join(given) or 'none'} came")
        arrays = [np.asarray(given[name]) for name in self.fields]
        payloads = [a.shape[0] for a, leaf in zip(arrays, self.leaves, strict=True)
                    if a.ndim == len(leaf.shape) + 1]
        n = max(payloads, default=1)
        bits = np.zeros((n, self.nbytes * 8), np.uint8)
        for array, leaf in zip(arrays, self.leaves, strict=True):
            bits[:, leaf.offset:leaf.offset + leaf.width * leaf.count] = _to_bits(array, leaf, n)
        return np.packbits(bits, axis=1, bitorder="little")

    def unpack(self, payloads: np.ndarray) -> Any:
        """Unpack payloads; inverse of :meth:`pack`.

        Parameters
        ----------
        payloads:
            uint8, shape (n, :attr:`nbytes`).

        Returns
        -------
        dict[str, numpy.ndarray] or numpy.ndarray
            Per field (n, ...) integers: int64, uint64 for unsigned fields of 64 bits, Python integers beyond.
        """
        raw = np.ascontiguousarray(payloads, np.uint8)
        if raw.ndim != 2 or raw.shape[1] != self.nbytes:
            raise ValueError(f"payloads of shape (n, {self.nbytes}) were wanted, {raw.shape} came")
        bits: np.ndarray | None = None
        out: dict[str, np.ndarray] = {}
        for name, leaf in zip(self.fields, self.leaves, strict=True):
            if leaf.offset % 8 == 0 and leaf.width in (8, 16, 32):
                size = leaf.width // 8
                part = np.ascontiguousarray(raw[:, leaf.offset // 8:leaf.offset // 8 + size * leaf.count])
                value = part.view(f"<{'i' if leaf.signed else 'u'}{size}").astype(np.int64)
            else:
                if bits is None:
                    bits = np.unpackbits(raw, axis=1, bitorder="little")
                value = _from_bits(bits[:, leaf.offset:leaf.offset + leaf.width * leaf.count], leaf)
            out[name] = value.reshape(len(raw), *leaf.shape)
        return out[""] if self._plain else out

    def to_ints(self, payloads: np.ndarray) -> list[int]:
        """Payload bytes as integers, for a simulator's ports."""
        text, size = np.ascontiguousarray(payloads, np.uint8).tobytes(), self.nbytes
        return [int.from_bytes(text[i:i + size], "little") for i in range(0, len(text), size)]

    def from_ints(self, numbers: list[int]) -> np.ndarray:
        """Integers from a simulator's ports as payload bytes, uint8 (n, :attr:`nbytes`)."""
        text = b"".join(number.to_bytes(self.nbytes, "little") for number in numbers)
        return np.frombuffer(text, np.uint8).reshape(len(numbers), self.nbytes)


def codec(layout: Any) -> Codec:
    """The codec of a layout; a codec is passed through."""
    return layout if isinstance(layout, Codec) else Codec(layout)


def _leaves(shape: Any, path: tuple[str, ...], offset: int) -> list[Leaf]:
    if isinstance(shape, data.StructLayout):
        return [leaf for name, field in shape
                for leaf in _leaves(field.shape, (*path, str(name)), offset + field.offset)]
    if isinstance(shape, data.ArrayLayout):
        inner = _leaves(shape.elem_shape, path, offset)
        if len(inner) != 1 or inner[0].path != path:
            raise TypeError(f"{'.'.join(path) or 'payload'}: an array of structs has no flat numpy form")
        leaf = inner[0]
        return [dataclasses.replace(leaf, shape=(shape.length, *leaf.shape))]
    if isinstance(shape, data.Layout):
        raise TypeError(f"{'.'.join(path) or 'payload'}: a {type(shape).__name__} has no flat numpy form")
    cast = Shape.cast(shape)
    return [Leaf(path, offset, cast.width, cast.signed, ())]


def _word(width: int) -> int:
    return next(size for size in (1, 2, 4, 8) if width <= 8 * size)


def _to_bits(array: np.ndarray, leaf: Leaf, n: int) -> np.ndarray:
    name = ".".join(leaf.path) or "payload"
    if array.dtype.kind not in "biuO":
        raise ValueError(f"{name}: integers were wanted, {array.dtype} came")
    try:
        full = np.broadcast_to(array, (n, *leaf.shape))
    except ValueError:
        raise ValueError(f"{name}: shape {(n, *leaf.shape)} was wanted, {array.shape} came") from None
    low, high = leaf.bounds
    if full.size and not (low <= int(full.min()) and int(full.max()) <= high):
        bad = int(full.min()) if int(full.min()) < low else int(full.max())
        raise ValueError(f"{name}: values from {low} to {high} were wanted, {bad} came")
    if leaf.width > 64:
        text = b"".join((int(v) & ((1 << leaf.width) - 1)).to_bytes(-(-leaf.width // 8), "little")
                        for v in full.reshape(-1))
        words = np.frombuffer(text, np.uint8).reshape(n * leaf.count, -1)
    else:
        size = _word(leaf.width)
        kind = "i" if leaf.signed else "u"
        words = np.ascontiguousarray(full).astype(f"<{kind}{size}").view(np.uint8)
        words = words.reshape(n * leaf.count, size)
    bits = np.unpackbits(words, axis=1, bitorder="little")[:, :leaf.width]
    return bits.reshape(n, leaf.count * leaf.width)


def _from_bits(bits: np.ndarray, leaf: Leaf) -> np.ndarray:
    n = len(bits)
    grouped = bits.reshape(n * leaf.count, leaf.width)
    if leaf.width > 64:
        rows = np.packbits(grouped, axis=1, bitorder="little")
        numbers = [int.from_bytes(row.tobytes(), "little") for row in rows]
        top = 1 << leaf.width
        return np.array([v - top if leaf.signed and v >> (leaf.width - 1) else v for v in numbers], object)
    size = _word(leaf.width)
    full = np.zeros((len(grouped), 8 * size), np.uint8)
    full[:, :leaf.width] = grouped
    if leaf.signed:
        full[:, leaf.width:] = grouped[:, -1:]
    kind = "i" if leaf.signed else "u"
    words = np.packbits(full, axis=1, bitorder="little").view(f"<{kind}{size}").reshape(-1)
    return words if words.dtype == np.uint64 else words.astype(np.int64)
