"""A set of ordinals in little memory, as a dictionary that a snapshot can hold: pages of 64 ordinals, a bit for each.

A source numbers a transaction's deltas from 0, so nearly every page of a large unit is full, or will be: an ordinal
takes about three bytes then. A Python set takes about 60 bytes for each. An ordinal far from all others takes a page
alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from kainite.log.format.entry import Natural

OrdinalPages: TypeAlias = dict[str, Natural]
"""The bits of each page that has an ordinal, by the page's number in hexadecimal: msgspec sorts no other keys."""

PAGE_BYTES: Final = 180
"""About how many bytes of memory a page takes."""

_SHIFT: Final = 6
_MASK: Final = 63


def add_ordinals(pages: OrdinalPages, ordinals: Iterable[int]) -> None:
    """Adds ordinals to a set; ordinals of one page that stand together are added together."""
    page, bits = 0, 0
    for ordinal in ordinals:
        if ordinal >> _SHIFT != page:
            _add(pages, page, bits)
            page, bits = ordinal >> _SHIFT, 0
        bits |= 1 << (ordinal & _MASK)
    _add(pages, page, bits)


def has_ordinal(pages: OrdinalPages, ordinal: int) -> bool:
    """Returns whether a set has an ordinal."""
    return bool(pages.get(f"{ordinal >> _SHIFT:x}", 0) >> (ordinal & _MASK) & 1)


def ordinals_in(pages: OrdinalPages) -> Iterator[int]:
    """Yields the ordinals of a set, page by page."""
    for name, bits in pages.items():
        first = int(name, 16) << _SHIFT
        while bits:
            lowest = bits & -bits
            yield first + lowest.bit_length() - 1
            bits ^= lowest


def _add(pages: OrdinalPages, page: int, bits: int) -> None:
    if bits:
        name = f"{page:x}"
        pages[name] = pages.get(name, 0) | bits
