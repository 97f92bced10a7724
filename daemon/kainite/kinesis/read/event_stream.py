"""Cuts AWS's event stream (``application/vnd.amazon.eventstream``) into messages. Pure; no I/O.

::

    total length 4 | length of headers 4 | CRC-32 of these 8 | headers | payload | CRC-32 of all before 4

All numbers are big-endian. A header is the length of its name (1), the name, the type of its value (1) and the value.
Only headers with text are kept: all that Kinesis sends are such.

The bytes are a peer's, so each length is checked before it is used, and nothing waits for more than
:data:`MOST_BYTES`.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

MOST_BYTES: Final = 25 * 2**20
"""The longest message; AWS's limit for payloads is 24 MiB."""

MOST_HEADERS: Final = 2**17
"""The most bytes of headers, as AWS defines it."""

_PRELUDE: Final = struct.Struct(">III")
_CRC: Final = struct.Struct(">I")
_LENGTH: Final = struct.Struct(">H")
_LEAST: Final = _PRELUDE.size + _CRC.size

_BYTES, _TEXT = 6, 7
_SIZES: Final[Mapping[int, int]] = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
"""The size of a header's value by its type, where it has always the same: flags, integers, a time, a UUID."""


class FramingError(ValueError):
    """Raised for bytes that are no event stream, or a damaged one."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a stream: the headers that are texts, and the payload."""

    headers: Mapping[str, str]
    payload: bytes


class EventStreamReader:
    """Takes the bytes of one stream, and hands out its messages."""

    def __init__(self) -> None:
        self._held = bytearray()

    @property
    def is_inside_message(self) -> bool:
        """Tells whether a message has begun and is not complete."""
        return bool(self._held)

    def feed(self, data: bytes) -> Iterator[Message]:
        """Takes further bytes; yields the messages that they complete.

        Raises:
            FramingError: the bytes are no event stream; nothing can be read behind them.
        """
        self._held += data
        while (length := self._next_length()) is not None:
            whole = bytes(memoryview(self._held)[:length])
            del self._held[:length]
            yield _message(whole)

    def _next_length(self) -> int | None:
        """Returns the length of the first message; None while it is not complete."""
        if len(self._held) < _PRELUDE.size:
            return None
        total, headers, crc = _PRELUDE.unpack_from(self._held)
        if crc != zlib.crc32(memoryview(self._held)[:8]):
            raise FramingError("the checksum of a message's beginning is wrong")
        if not _LEAST + headers <= total <= MOST_BYTES or headers > MOST_HEADERS:
            raise FramingError(f"a message has {total} bytes, {headers} of them headers")
        return int(total) if len(self._held) >= total else None


def _message(whole: bytes) -> Message:
    if _CRC.unpack_from(whole, len(whole) - _CRC.size)[0] != zlib.crc32(memoryview(whole)[: -_CRC.size]):
        raise FramingError("the checksum of a message is wrong")
    begin = _PRELUDE.size + _PRELUDE.unpack_from(whole)[1]
    return Message(dict(_headers(whole[_PRELUDE.size : begin])), whole[begin : -_CRC.size])


def _headers(data: bytes) -> Iterator[tuple[str, str]]:
    """Yields the headers that are texts."""
    place = 0
    while place < len(data):
        try:
            name, place = _cut(data, place + 1, data[place])
            kind, place = data[place], place + 1
            if kind in (_BYTES, _TEXT):
                value, place = _cut(data, place + 2, _LENGTH.unpack_from(data, place)[0])
            else:
                value, place = _cut(data, place, _SIZES[kind])
            if kind == _TEXT:
                yield name.decode(), value.decode()
        except (IndexError, KeyError, struct.error, UnicodeDecodeError) as error:
            raise FramingError(f"a message's headers cannot be read: {error!r}") from error


def _cut(data: bytes, begin: int, size: int) -> tuple[bytes, int]:
    """Returns ``size`` bytes from ``begin`` on, and the place behind them."""
    end = begin + size
    if end > len(data):
        raise IndexError(end)
    return data[begin:end], end
