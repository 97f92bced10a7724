"""CRC-32C (Castagnoli), which Aurora DSQL gives for a row that it sends in pieces. Pure.

Python's standard library has CRC-32 only, with another polynomial. Rows in pieces are rare, so a table will do: a few
MB a second.
"""

from __future__ import annotations

from typing import Final

_REFLECTED_POLYNOMIAL: Final = 0x82F63B78


def _entry(number: int) -> int:
    for _ in range(8):
        number = number >> 1 ^ (_REFLECTED_POLYNOMIAL if number & 1 else 0)
    return number


_TABLE: Final = tuple(map(_entry, range(256)))


def crc32c(data: bytes) -> int:
    """Returns the checksum of ``data``."""
    table, crc = _TABLE, 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF
