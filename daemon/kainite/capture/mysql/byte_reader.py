"""Reads numbers and texts from bytes, one behind the other. Pure."""

from __future__ import annotations

from kainite.base.errors import SourceError


class ByteReader:
    """Reads from the beginning to the end; raises SourceError where the bytes end too early."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data = data
        self.at = at

    @property
    def left(self) -> int:
        return len(self.data) - self.at

    def take(self, size: int) -> bytes:
        """Returns the next bytes."""
        if size > self.left:
            raise SourceError("binlog: an event ends too early")
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, size: int) -> int:
        """Returns the next number of ``size`` bytes, without a sign."""
        return int.from_bytes(self.take(size), "little")

    def packed(self) -> int:
        """Returns the next number whose first byte says how long it is (*length-encoded integer*)."""
        first = self.number(1)
        if first < 251:
            return first
        sizes = {252: 2, 253: 3, 254: 8}
        if first not in sizes:
            raise SourceError("binlog: a length that is none")
        return self.number(sizes[first])

    def text(self) -> bytes:
        """Returns the next bytes whose number stands before them."""
        return self.take(self.packed())
