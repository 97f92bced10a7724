"""Fields in the body of a frame: big-endian integers, and arrays and strings behind a count; a count of −1 means None.

A reader checks each count against the bytes that are left before it reads the items.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import Final

from kainite.base.errors import LogProtocolError

_BYTE: Final = struct.Struct(">B")
_INT16: Final = struct.Struct(">h")
_INT32: Final = struct.Struct(">i")
_INT64: Final = struct.Struct(">q")
_UINT32: Final = struct.Struct(">I")


class FieldReader:
    """Reads the fields of a body from its beginning.

    Every method raises LogProtocolError when the body is too short for the field, or the field is malformed.
    """

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._at = 0

    def byte(self) -> int:
        return self._number(_BYTE)

    def int16(self) -> int:
        return self._number(_INT16)

    def int32(self) -> int:
        return self._number(_INT32)

    def int64(self) -> int:
        return self._number(_INT64)

    def boolean(self) -> bool:
        """Returns whether the next byte is 1; any other value means false."""
        return self.byte() == 1

    def optional_bytes(self) -> bytes | None:
        """Returns an array of bytes; None where its count is −1."""
        size = self.int32()
        if size == -1:
            return None
        begin = self._take(self._count(size, 1))
        return self._body[begin : begin + size]

    def byte_array(self) -> bytes:
        found = self.optional_bytes()
        if found is None:
            raise LogProtocolError("a message lacks an array of bytes")
        return found

    def text(self) -> str | None:
        """Returns a string; bytes that are not UTF-8 become replacement characters."""
        found = self.optional_bytes()
        return None if found is None else found.decode("utf-8", "replace")

    def int32_array(self) -> tuple[int, ...]:
        return self.int32s(self.count(_INT32.size))

    def int32s(self, count: int) -> tuple[int, ...]:
        begin = self._take(_INT32.size * count)
        return struct.unpack_from(f">{count}i", self._body, begin)

    def count(self, item_size: int) -> int:
        """Returns a count of items of at least ``item_size`` bytes each."""
        return self._count(self.int32(), item_size)

    def checked_data(self) -> bytes:
        """Returns an array of bytes, and checks it against the CRC-32 that follows it."""
        data = self.byte_array()
        begin = self._take(_UINT32.size)
        if _UINT32.unpack_from(self._body, begin)[0] != zlib.crc32(data):
            raise LogProtocolError("a transaction's data does not match its CRC-32")
        return data

    def finish(self) -> None:
        """Makes sure that the body has no further byte."""
        if self._at != len(self._body):
            raise LogProtocolError(f"a message has {len(self._body) - self._at} bytes behind its last field")

    def _count(self, count: int, item_size: int) -> int:
        if not 0 <= count <= (len(self._body) - self._at) // item_size:
            raise LogProtocolError(f"a message announces {count} items and has no bytes for them")
        return count

    def _number(self, layout: struct.Struct) -> int:
        begin = self._take(layout.size)
        number: int = layout.unpack_from(self._body, begin)[0]
        return number

    def _take(self, size: int) -> int:
        """Returns the offset of the next ``size`` bytes, and moves behind them."""
        begin = self._at
        if len(self._body) - begin < size:
            raise LogProtocolError(f"a message ends where {size} bytes more are needed")
        self._at = begin + size
        return begin


class FieldWriter:
    """Writes the fields of a body. A number that its field cannot hold raises struct.error."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def byte(self, value: int) -> None:
        self._parts.append(_BYTE.pack(value))

    def int16(self, value: int) -> None:
        self._parts.append(_INT16.pack(value))

    def int32(self, value: int) -> None:
        self._parts.append(_INT32.pack(value))

    def int64(self, value: int) -> None:
        self._parts.append(_INT64.pack(value))

    def boolean(self, value: bool) -> None:
        self.byte(1 if value else 0)

    def optional_bytes(self, value: bytes | None) -> None:
        if value is None:
            self.int32(-1)
        else:
            self._parts += (_INT32.pack(len(value)), value)

    def text(self, value: str | None) -> None:
        """Writes a string as UTF-8; a character that UTF-8 cannot encode becomes a question mark."""
        self.optional_bytes(None if value is None else value.encode("utf-8", "replace"))

    def int32s(self, *values: int) -> None:
        self._parts.append(struct.pack(f">{len(values)}i", *values))

    def int32_array(self, values: Sequence[int]) -> None:
        self._parts.append(struct.pack(f">i{len(values)}i", len(values), *values))

    def checked_data(self, data: bytes) -> None:
        """Writes an array of bytes, and its CRC-32 behind it."""
        self._parts += (_INT32.pack(len(data)), data, _UINT32.pack(zlib.crc32(data)))

    def body(self) -> bytes:
        return b"".join(self._parts)
