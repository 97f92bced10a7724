"""What a unit of work touches, as one value: the fragment brings it, the log's entry holds it, the unit keeps it.

Two units conflict by their signatures (:mod:`kainite.uow.signature`); where these cannot be compared, by their tables
and schemes (:mod:`kainite.uow.scheme`). All that follows from a delta's values alone is worked out once, where the
delta is made; from there on the value is passed on as it is.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Final

import msgspec

from kainite.uow.scheme import merged


class Touched(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The rows and tables that deltas touch.

    Attributes:
        written, read: the 64-bit signatures of the deltas, each once.
        tables: the tables that the deltas touch.
        unsigned: those of ``tables`` with a delta whose row is not known.
        scheme: the id of what the signatures depend on; None where nobody compares units of different schemes.
    """

    written: frozenset[int] = frozenset()
    read: frozenset[int] = frozenset()
    tables: tuple[str, ...] = ()
    unsigned: tuple[str, ...] = ()
    scheme: str | None = None

    @property
    def size(self) -> int:
        """Returns how many signatures there are."""
        return len(self.written) + len(self.read)


NOTHING: Final = Touched()


class TouchedSoFar(msgspec.Struct, array_like=True, gc=False):
    """What the deltas touch of a unit that still collects; grows in place, so that a part costs what is in it.

    The sets of the first part are shared with its entry, and copied when a second part comes: most units have one.

    Attributes:
        written, read, tables, unsigned, scheme: as in :class:`Touched`.
    """

    written: AbstractSet[int] = frozenset()
    read: AbstractSet[int] = frozenset()
    tables: set[str] = set()
    unsigned: set[str] = set()
    scheme: str | None = None

    @classmethod
    def of(cls, touched: Touched) -> TouchedSoFar:
        """Returns a value that grows, and begins as ``touched``."""
        return cls(touched.written, touched.read, set(touched.tables), set(touched.unsigned), touched.scheme)

    def add(self, more: Touched, deltas: int, before: int) -> None:
        """Adds what further deltas touch.

        Args:
            more: what they touch.
            deltas: how many they are; without any, the scheme stays.
            before: how many deltas the unit had before.
        """
        self.written = _grown(self.written, more.written)
        self.read = _grown(self.read, more.read)
        self.tables.update(more.tables)
        self.unsigned.update(more.unsigned)
        if deltas:
            self.scheme = merged(self.scheme, more.scheme) if before else more.scheme

    @property
    def size(self) -> int:
        """Returns how many signatures there are."""
        return len(self.written) + len(self.read)

    def blur(self) -> None:
        """Forgets all signatures: of no table that the deltas touch is it known any more which rows."""
        self.written, self.read = frozenset(), frozenset()
        self.unsigned |= self.tables

    def with_(self, more: Touched, deltas: int, before: int) -> Touched:
        """Returns what the unit would touch with further deltas; this value stays. Arguments as in :meth:`add`."""
        scheme = self.scheme
        if deltas:
            scheme = merged(scheme, more.scheme) if before else more.scheme
        return Touched(
            more.written | self.written,
            more.read | self.read,
            _sorted(self.tables.union(more.tables)),
            _sorted(self.unsigned.union(more.unsigned)),
            scheme,
        )

    def frozen(self) -> Touched:
        """Returns the value as it is now."""
        return Touched(
            frozenset(self.written), frozenset(self.read), _sorted(self.tables), _sorted(self.unsigned), self.scheme
        )

    def copy(self) -> TouchedSoFar:
        """Returns a copy that grows by itself."""
        return TouchedSoFar(set(self.written), set(self.read), set(self.tables), set(self.unsigned), self.scheme)


def _grown(some: AbstractSet[int], more: frozenset[int]) -> AbstractSet[int]:
    """Returns both sets together: ``more`` itself where it is the first, else a set that is nobody else's and grows."""
    if not some:
        return more
    grown = some if isinstance(some, set) else set(some)
    grown |= more
    return grown


def _sorted(names: set[str]) -> tuple[str, ...]:
    return tuple(sorted(names)) if names else ()
