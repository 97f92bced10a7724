"""Which rows of a long list stand on a page. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ListPage(Generic[T]):
    """A page of a list.

    Attributes:
        rows: what stands on it.
        number: its number, from 1.
        first: the place of its first row in the list, from 1.
        total: the length of the list.
    """

    rows: Sequence[T]
    number: int
    first: int
    total: int

    @property
    def last(self) -> int:
        """Returns the place of the last row in the list."""
        return self.first + len(self.rows) - 1

    @property
    def has_next(self) -> bool:
        return self.last < self.total


def page_number(text: str | None) -> int:
    """Returns the number of the page that a query asks for; 1 for what is no number."""
    return int(text) if text is not None and text.isdecimal() and 0 < len(text) < 8 and int(text) else 1


def page_of(rows: Sequence[T], number: int, size: int) -> ListPage[T]:
    """Returns a page of a list, or the last one where the list has become shorter."""
    number = min(number, max(1, -(-len(rows) // size)))
    begin = (number - 1) * size
    return ListPage(rows[begin : begin + size], number, begin + 1, len(rows))
