"""The conflict rule of units of work, and the indexes that answer it without comparing pairs. Pure.

Two units conflict when one writes what the other writes or reads; two that only read the same
signature do not conflict (docs/decisions.md, *The conflict rule*). The log's owner, the apply job's driver and its
tasks all decide by this module:

=========================  =============================================  ========================
question                   answered by                                    asked by
=========================  =============================================  ========================
do two units conflict?     :func:`conflict`                               corrections in the driver
do both write a row?       :func:`share_a_row`                            corrections
the latest conflict        :class:`LatestConflicts`                       dispatch, layers
the earliest conflict      :class:`EarliestConflicts`                     what failed units block
all connected units        :func:`components`                             job instances
=========================  =============================================  ========================

A look-up in an index takes time linear in the number of a unit's signatures, whatever the number of units in the index.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import Final, Protocol, TypeVar

from kainite.uow.touched.key import ROW


class ReadWriteSets(Protocol):
    """Anything with the signatures that it writes and those that it reads."""

    @property
    def written(self) -> AbstractSet[int]: ...

    @property
    def read(self) -> AbstractSet[int]: ...


T = TypeVar("T", bound=ReadWriteSets)

FEW: Final = 64
"""Signatures up to which a loop in Python is faster than the making of a set or a dictionary."""


def conflict(one: ReadWriteSets, other: ReadWriteSets) -> bool:
    """Returns whether one unit writes what the other writes or reads."""
    return not (
        one.written.isdisjoint(other.written)
        and one.written.isdisjoint(other.read)
        and one.read.isdisjoint(other.written)
    )


def share_a_row(one: ReadWriteSets, other: ReadWriteSets) -> bool:
    """Returns whether two units, signed by the same rules, certainly write one row, but for a collision of hashes."""
    return any(token & ROW for token in one.written & other.written)


class LatestConflicts:
    """The last writer and the last reader of each signature, by a rank that grows along conflicts.

    The rank of a unit is a number of at least 0 that is higher than the rank of every unit in the
    index that it conflicts with: its transaction id, or the number of its layer.

    Args:
        few: units with so many signatures are looked up and added in a loop.
    """

    def __init__(self, few: int = FEW) -> None:
        self._few = few
        self._writers: dict[int, int] = {}
        self._readers: dict[int, int] = {}
        self._disregarded = False

    def disregard(self) -> None:
        """Forgets everything, for good; :meth:`find` may not be called any more."""
        self._writers, self._readers, self._disregarded = {}, {}, True

    def find(self, written: Collection[int], read: Collection[int]) -> int | None:
        """Returns the highest rank of a unit that conflicts; None for no conflict."""
        assert not self._disregarded, "conflicts are disregarded"
        if len(written) + len(read) <= self._few:
            return self._find_few(written, read)
        # Without a loop in Python, and without making a set: a unit may have a million signatures, and nearly none
        # conflicts.
        ranks: list[int] = []
        for held, signatures in ((self._writers, written), (self._readers, written), (self._writers, read)):
            if not held.keys().isdisjoint(signatures):
                ranks += map(held.__getitem__, held.keys() & signatures)
        return max(ranks, default=None)

    def _find_few(self, written: Iterable[int], read: Iterable[int]) -> int | None:
        """Returns what :meth:`find` returns; loops over the signatures."""
        writers, readers, highest = self._writers, self._readers, -1
        for signature in written:
            if signature in writers and writers[signature] > highest:
                highest = writers[signature]
            if signature in readers and readers[signature] > highest:
                highest = readers[signature]
        for signature in read:
            if signature in writers and writers[signature] > highest:
                highest = writers[signature]
        return highest if highest >= 0 else None

    def add(self, rank: int, written: Collection[int], read: Iterable[int]) -> None:
        """Registers a unit under its rank."""
        if self._disregarded:
            return
        writers, readers = self._writers, self._readers
        if len(written) <= self._few:
            for signature in written:
                writers[signature] = rank
        else:
            writers.update(dict.fromkeys(written, rank))
        for signature in read:
            # Readers do not conflict with each other, so a reader's rank may be lower than that of one before it.
            if readers.get(signature, -1) < rank:
                readers[signature] = rank

    def widen(self, rank: int, written: Iterable[int], read: Iterable[int]) -> None:
        """Adds signatures to a unit that is in the index; units with higher ranks stay in front of it."""
        if self._disregarded:
            return
        for held, signatures in ((self._writers, written), (self._readers, read)):
            for signature in signatures:
                held[signature] = max(rank, held.get(signature, rank))

    def remove(self, rank: int, written: Iterable[int], read: Iterable[int]) -> None:
        """Forgets a unit. Earlier units whose place in the index it took are not found again."""
        if self._disregarded:
            return
        for held, signatures in ((self._writers, written), (self._readers, read)):
            for signature in signatures:
                if held.get(signature) == rank:
                    del held[signature]


class EarliestConflicts:
    """The first writer and the first reader of each signature, by transaction id."""

    def __init__(self) -> None:
        self._writers: dict[int, int] = {}
        self._readers: dict[int, int] = {}

    def find(self, tid: int, written: Collection[int], read: Collection[int]) -> int | None:
        """Returns the earliest unit before ``tid`` that conflicts with unit ``tid``; None for no conflict."""
        writers, readers = self._writers, self._readers
        if not writers and not readers:
            return None
        found = [writers[signature] for signature in chain(written, read) if signature in writers]
        found += [readers[signature] for signature in written if signature in readers]
        earliest = min(found, default=tid)
        return earliest if earliest < tid else None

    def add(self, tid: int, written: Iterable[int], read: Iterable[int]) -> None:
        """Registers a unit; units may come in any order."""
        for held, signatures in ((self._writers, written), (self._readers, read)):
            for signature in signatures:
                held[signature] = min(tid, held.get(signature, tid))


def components(units: Sequence[T]) -> list[list[T]]:
    """Returns the connected components of the conflict graph, in the order of their first units.

    Args:
        units: the units in log order; every component keeps this order.
    """
    parents = list(range(len(units)))
    writers: dict[int, int] = {}
    for index, unit in enumerate(units):
        for signature in unit.written:
            _join(parents, index, writers.setdefault(signature, index))
    # A unit that writes a signature connects all units that read it, before or after the writer.
    for index, unit in enumerate(units):
        for signature in unit.read:
            _join(parents, index, writers.get(signature, index))
    found: dict[int, list[T]] = {}
    for index, unit in enumerate(units):
        found.setdefault(_root(parents, index), []).append(unit)
    return list(found.values())


def _join(parents: list[int], one: int, other: int) -> None:
    if one != other:
        one, other = _root(parents, one), _root(parents, other)
        parents[max(one, other)] = min(one, other)


def _root(parents: list[int], index: int) -> int:
    while parents[index] != index:
        parents[index] = parents[parents[index]]
        index = parents[index]
    return index
