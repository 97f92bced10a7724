"""Remembers the units that were dispatched last, by name and by number, to recognise a unit that is sent again."""

from __future__ import annotations

from collections.abc import Iterable


class RecentUnits:
    """A window over the last units dispatched; the oldest leaves first.

    Args:
        window: how many units are remembered.
    """

    def __init__(self, window: int, units: Iterable[tuple[str, int | None]] = ()) -> None:
        self.window = window
        self._numbers: dict[str, int | None] = {}
        self._names: dict[int, str] = {}
        for uow, number in units:
            self.add(uow, number)

    def __contains__(self, uow: str) -> bool:
        return uow in self._numbers

    def items(self) -> list[tuple[str, int | None]]:
        """Returns all remembered units with their numbers, oldest first."""
        return list(self._numbers.items())

    def holder(self, number: int) -> str | None:
        """Returns the unit that had the number; None when it is not remembered."""
        return self._names.get(number)

    def add(self, uow: str, number: int | None) -> None:
        """Remembers a unit; forgets the oldest one beyond the window."""
        self._numbers[uow] = number
        if number is not None:
            self._names[number] = uow
        while len(self._numbers) > self.window:
            oldest = next(iter(self._numbers))
            gone = self._numbers.pop(oldest)
            if gone is not None:
                self._names.pop(gone, None)
