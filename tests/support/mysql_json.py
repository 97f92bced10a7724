"""Writes MySQL's binary JSON by the description of its format, for tests without a server."""

from __future__ import annotations

import struct
from typing import Any

_INLINED = {4, 5, 6}
_INLINED_IN_LARGE = {4, 5, 6, 7, 8}


class Opaque:
    """A value of one of the server's own types: the number of a column's type, and bytes."""

    def __init__(self, column: int, data: bytes) -> None:
        self.column = column
        self.data = data


def document(value: Any, *, large: bool = False) -> bytes:
    """Returns a document; ``large`` gives its objects and arrays the form for what has 64 KiB or more."""
    kind, data = _value(value, large)
    return bytes([kind]) + data


def _value(value: Any, large: bool) -> tuple[int, bytes]:
    match value:
        case None | True | False:
            return 4, bytes([{None: 0, True: 1, False: 2}[value]])
        case int():
            kinds = ((5, "<h"), (6, "<H"), (7, "<i"), (8, "<I"), (9, "<q"), (10, "<Q"))
            for kind, form in kinds:
                try:
                    return kind, struct.pack(form, value)
                except struct.error:
                    continue
            raise ValueError(value)
        case float():
            return 11, struct.pack("<d", value)
        case str():
            return 12, _counted(value.encode())
        case Opaque():
            return 15, bytes([value.column]) + _counted(value.data)
        case dict():
            return (1 if large else 0), _container(list(value.values()), [key.encode() for key in value], large)
        case list():
            return (3 if large else 2), _container(value, None, large)
    raise TypeError(value)


def _container(values: list[Any], keys: list[bytes] | None, large: bool) -> bytes:
    width, form = (4, "<I") if large else (2, "<H")
    head = 2 * width + len(values) * (1 + width) + (len(values) * (width + 2) if keys is not None else 0)
    at, entries, tail = head, b"", b""
    for key in keys or ():
        entries += struct.pack(form, at) + struct.pack("<H", len(key))
        tail += key
        at += len(key)
    for value in values:
        kind, data = _value(value, large)
        if kind in (_INLINED_IN_LARGE if large else _INLINED):
            entries += bytes([kind]) + data.ljust(width, b"\0")
        else:
            entries += bytes([kind]) + struct.pack(form, at)
            tail += data
            at += len(data)
    return struct.pack(form, len(values)) + struct.pack(form, at) + entries + tail


def _counted(data: bytes) -> bytes:
    length, found = len(data), b""
    while length > 0x7F:
        found += bytes([length & 0x7F | 0x80])
        length >>= 7
    return found + bytes([length]) + data
