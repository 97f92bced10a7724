"""Remembers units that were dispatched, by name and by number, to recognise a unit that its source sends again.

Names take memory, so they leave, the oldest first. The order of all names is cut in two:

=========  ===========================================  ===========================  =================================
part       holds                                        in a snapshot                in the store, beside the log
=========  ===========================================  ===========================  =================================
segments   the older names, as 128-bit digests          the keys of the segments     the digests, an item a segment
the tail   the names since, with the units' numbers     all of it                    nothing
=========  ===========================================  ===========================  =================================

A segment never changes. Its item is written before the CONTROL entry (``names``) that makes it a part of the log, and
deleted after the entry by which it leaves. These entries alone move names: which ones, the owner decides by
the settings' ``dedup_window`` (:mod:`kainite.owner.names`), and everybody who folds the log gets the same state.

=================================  ==================================================================================
crash                              leaves
=================================  ==================================================================================
after the item, before its entry   an item that nothing names: the next owner finds it *stale* and deletes it
after the entry                    the segment
after the entry by which a         its item, stale as well
segment leaves
=================================  ==================================================================================

Numbers take nearly no memory (:mod:`kainite.log.state.number_set`), so they are remembered for ever, but for those of
units that only stand for numbers that did not come. ``forgotten`` is the highest number of a unit whose name has left:
a unit with a number above it and a name that is not known is not one that was dispatched.

A process that only reads the log (the apply job, a view) needs no names: after :meth:`RecentUnits.disregard` it keeps
only the tail.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeGuard

from kainite.base.errors import LogCorruptError
from kainite.log.state.digest_set import DIGEST_BYTES, DigestSet, digest_of
from kainite.log.state.number_set import NumberSet


@dataclass(frozen=True, slots=True)
class Segment:
    """Names that were dispatched one after the other.

    Attributes:
        key: the key of the item that holds the names' digests.
        count: how many names the segment has.
        highest: the highest number of the names' units; None without numbers.
    """

    key: str
    count: int
    highest: int | None = None


class RecentUnits:
    """The names and numbers of dispatched units.

    Args:
        tail: names with their numbers, oldest first.
        segments: the older names, oldest first; their digests are unknown before :meth:`recall`.
        numbers: the numbers of all dispatched units.
        forgotten: the highest number of a unit whose name has left.
        first: how many names were dispatched before those of the tail.
    """

    def __init__(
        self,
        tail: Iterable[tuple[str, int | None]] = (),
        segments: Iterable[Segment] = (),
        numbers: NumberSet | None = None,
        forgotten: int | None = None,
        first: int = 0,
    ) -> None:
        self.segments = deque(segments)
        self.numbers = numbers or NumberSet()
        self.forgotten = forgotten
        self.first = first
        self.stale: set[str] = set()
        """The keys of items in the store that are not, or no longer, a part of the log."""
        self._tail = deque((uow, number) for uow, number in tail)
        self._holders = {number: uow for uow, number in self._tail if number is not None}
        self._fresh = bytearray(b"".join(digest_of(uow) for uow, _ in self._tail))
        self._digests = None if self.segments else self._with(())
        self._disregarded = False

    def __len__(self) -> int:
        return len(self._tail) + sum(segment.count for segment in self.segments)

    def __contains__(self, uow: str) -> bool:
        if self._digests is None:
            raise RuntimeError("the names of dispatched units were not read from the store")
        return digest_of(uow) in self._digests

    @property
    def tail_length(self) -> int:
        """Returns how many names are in no segment."""
        return len(self._tail)

    def tail(self) -> list[tuple[str, int | None]]:
        """Returns the names that are in no segment with their numbers, oldest first."""
        return list(self._tail)

    def holder(self, number: int) -> str | None:
        """Returns the unit that had the number; None when its name is not in the tail."""
        return self._holders.get(number)

    def had(self, number: int | None) -> bool:
        """Returns whether a unit had the number whose name has left."""
        return self._is_old(number) and number in self.numbers

    def may_have_had(self, number: int | None) -> bool:
        """Returns whether a unit had the number, or may have had it, whose name has left."""
        return self._is_old(number) and self.numbers.may_have(number)

    def _is_old(self, number: int | None) -> TypeGuard[int]:
        return number is not None and self.forgotten is not None and number <= self.forgotten

    def add(self, uow: str, number: int | None, *, real: bool = True) -> None:
        """Remembers a unit.

        Args:
            uow: the unit's name.
            number: the unit's number; None without one.
            real: whether the number is the unit's own, and not that of units that did not come.
        """
        self._tail.append((uow, number))
        if number is not None:
            self._holders[number] = uow
            if real:
                self.numbers.add(number)
        if not self._disregarded:
            digest = digest_of(uow)
            self._fresh += digest
            if self._digests is not None:
                self._digests.extend(digest)

    def oldest(self, count: int) -> bytes:
        """Returns the digests of the first ``count`` names of the tail: what a segment's item holds."""
        return bytes(self._fresh[: count * DIGEST_BYTES])

    def move(self, count: int, key: str | None, forget: int) -> None:
        """Moves names on, as a CONTROL entry says.

        Args:
            count: how many of the tail's oldest names leave the tail.
            key: the segment that these names become; None means that they are forgotten, and all segments too.
            forget: how many of the oldest segments are forgotten before the new segment is added.
        """
        for _ in range(len(self.segments) if key is None and count else min(forget, len(self.segments))):
            self._forget(self.segments.popleft())
        if (count := min(count, len(self._tail))) > 0:
            moved = Segment(key or "", count, self._leave_tail(count))
            if key is None:
                self._forget(moved)
            else:
                self.segments.append(moved)

    def recall(self, items: Iterable[tuple[str, bytes]]) -> None:
        """Takes the contents of all segments.

        Args:
            items: key and digests of each item in the store, in order of keys.

        Raises:
            LogCorruptError: the item of a segment is missing, or holds another number of digests.
        """
        wanted = {segment.key: segment for segment in self.segments}
        found: dict[str, bytes] = {}
        for key, data in items:
            if key not in wanted:
                self.stale.add(key)
            elif len(data) == wanted[key].count * DIGEST_BYTES:
                found[key] = data
        if missing := [key for key in wanted if key not in found]:
            raise LogCorruptError(f"the log's names of dispatched units are missing or broken: item {missing[0]}")
        self._digests = self._with(found.pop(segment.key) for segment in self.segments)

    def disregard(self) -> None:
        """Forgets the digests of all names, for good: nobody can ask any more whether a name is known."""
        self._digests, self._disregarded = None, True
        self._fresh.clear()

    def _with(self, segments: Iterable[bytes]) -> DigestSet:
        digests = DigestSet()
        for data in segments:
            digests.extend(data)
        digests.extend(bytes(self._fresh))
        return digests

    def _leave_tail(self, count: int) -> int | None:
        """Removes the oldest names from the tail; returns the highest number among them."""
        highest = max(self._numbers_of(count), default=None)
        del self._fresh[: count * DIGEST_BYTES]
        self.first += count
        return highest

    def _numbers_of(self, count: int) -> Iterator[int]:
        for _ in range(count):
            uow, number = self._tail.popleft()
            if number is not None:
                yield number
                if self._holders.get(number) == uow:
                    del self._holders[number]

    def _forget(self, segment: Segment) -> None:
        if segment.highest is not None:
            self.forgotten = max(segment.highest, segment.highest if self.forgotten is None else self.forgotten)
        if self._digests is not None:
            self._digests.forget(segment.count)
        if segment.key and not self._disregarded:
            self.stale.add(segment.key)
