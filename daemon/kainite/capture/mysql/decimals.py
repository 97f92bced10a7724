"""Reads a decimal as MariaDB and MySQL store it: nine digits in four bytes, highest first; no I/O.

The first bit is inverted, and all others too where the number is negative. The digits that do not fill four bytes stand
first before the point, and last behind it.
"""

from __future__ import annotations

from typing import Final

_BYTES: Final = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
"""Bytes for so many digits."""


def decimal_size(precision: int, scale: int) -> int:
    """Returns how many bytes a decimal takes."""
    return sum(_BYTES[digits] for digits in _groups(precision, scale))


def decimal_text(data: bytes, precision: int, scale: int) -> str:
    """Returns a decimal's digits, with ``scale`` of them behind the point."""
    if not data:
        return "0"
    negative = not data[0] & 0x80
    flipped = 0xFF if negative else 0
    raw = bytes((data[0] ^ 0x80 ^ flipped, *(byte ^ flipped for byte in data[1:])))
    digits, at = "", 0
    for group in _groups(precision, scale):
        size = _BYTES[group]
        digits += f"{int.from_bytes(raw[at : at + size], 'big'):0{group}d}" if group else ""
        at += size
    whole, rest = digits[: len(digits) - scale].lstrip("0") or "0", digits[len(digits) - scale :]
    return f"{'-' if negative else ''}{whole}{'.' if rest else ''}{rest}"


def _groups(precision: int, scale: int) -> list[int]:
    before, behind = precision - scale, scale
    return [before % 9, *[9] * (before // 9), *[9] * (behind // 9), behind % 9]
