"""The exact map of signatures in progress: which unit wrote or read what last."""

from __future__ import annotations

from collections.abc import Iterable


class ConflictMap:
    """Answers the white paper's ``Conflict()``: which unit in progress a new one conflicts with.

    Two units conflict when one writes what the other writes or reads (DESIGN, *Conflicts*). Only
    the latest unit is kept for each signature: it is the one that a new unit must come after.
    """

    def __init__(self) -> None:
        self._writers: dict[int, int] = {}
        self._readers: dict[int, int] = {}

    def find(self, written: Iterable[int], read: Iterable[int]) -> int | None:
        """Transaction id of the latest unit in progress that conflicts; None for no conflict."""
        latest = -1
        for signature in written:
            latest = max(latest, self._writers.get(signature, -1), self._readers.get(signature, -1))
        for signature in read:
            latest = max(latest, self._writers.get(signature, -1))
        return latest if latest >= 0 else None

    def add(self, tid: int, written: Iterable[int], read: Iterable[int]) -> None:
        """Register a dispatched unit; ``tid`` is higher than any before it."""
        self._writers.update((signature, tid) for signature in written)
        self._readers.update((signature, tid) for signature in read)

    def remove(self, tid: int, written: Iterable[int], read: Iterable[int]) -> None:
        """Forget a unit that is committed or discarded."""
        for held, signatures in ((self._writers, written), (self._readers, read)):
            for signature in signatures:
                if held.get(signature) == tid:
                    del held[signature]
