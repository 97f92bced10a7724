"""Units that were dispatched lately, by name and by number: a source may send one again."""

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
        """All units remembered with their numbers, oldest first."""
        return list(self._numbers.items())

    def holder(self, number: int) -> str | None:
        """The unit that had this number, if it is remembered."""
        return self._names.get(number)

    def add(self, uow: str, number: int | None) -> None:
        self._numbers[uow] = number
        if number is not None:
            self._names[number] = uow
        while len(self._numbers) > self.window:
            oldest = next(iter(self._numbers))
            gone = self._numbers.pop(oldest)
            if gone is not None:
                self._names.pop(gone, None)
