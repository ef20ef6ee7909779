"""Streams inside a design: how two of them are joined."""

from typing import Any

__all__ = ["joined"]


def joined(source: Any, target: Any) -> list[Any]:
    """Assignments that pass a stream on: valid and payload to ``target``, ready back to ``source``.

    Parameters
    ----------
    source, target: streams
        With payloads of one width; one may be a structure and the other its bits.
    """
    return [target.valid.eq(source.valid), target.payload.eq(source.payload), source.ready.eq(target.ready)]
