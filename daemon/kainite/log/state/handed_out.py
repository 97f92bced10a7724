"""Remembers what the units had that this owner dispatched lately, to tell what is sent again from what is more.

A unit whose end and deltas have come is dispatched: it may be applied at once. What comes under its name afterwards is
a copy, if its source says the truth. Where the end announced too few deltas, where two ends disagree, or where two
units have one name, it is none. Within one append such a unit fails, and how appends are cut is chance. So the end and
the identities of the deltas are remembered here.

This is no part of the fold: an entry of a whole unit does not tell its deltas' identities. A process that loads the log
knows nothing of the units before, nor does anybody of units that have left, the oldest first, beyond
:data:`MOST_DELTAS`. What comes under such a name counts as a copy, and is reported. What was decided stands in the log.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

import msgspec

from kainite.uow.delta import UnitEnd
from kainite.uow.fragment import Fragment, Reject
from kainite.uow.identity import Identity

MOST_DELTAS: Final = 100_000
"""The most deltas and units that are remembered together: about 10 MB."""

_TOLD: Final = 20
"""How many deltas another end, or a line that is no delta, counts for: a line has up to 2,000 characters."""


class HandedOutUnit(msgspec.Struct, gc=False):
    """A dispatched unit.

    Attributes:
        end: its end, without a number where the log has taken the number from it.
        identities: those of its deltas, and of its late parts.
        told: the other ends, and the lines that are no deltas, by which late parts have failed.
    """

    end: UnitEnd
    identities: Collection[Identity]
    told: set[UnitEnd | Reject] = set()

    @property
    def held(self) -> int:
        """Returns how much the unit counts for among all that are remembered."""
        return 1 + len(self.identities) + _TOLD * len(self.told)

    def known(self, identities: Iterable[Identity]) -> frozenset[Identity]:
        """Returns those of the identities that the unit has."""
        return frozenset(self._set().intersection(identities))

    def differs(self, end: UnitEnd) -> bool:
        """Tells whether another end says something else."""
        own = self.end
        differs = (own.count, own.kind) != (end.count, end.kind) or own.number not in (None, end.number)
        return differs and end not in self.told

    def add_late(self, part: Fragment) -> None:
        """Adds a late part."""
        self._set().update(part.identities)
        self.told.update(part.ends, part.rejects)

    def _set(self) -> set[Identity]:
        if not isinstance(self.identities, set):  # most units are never asked
            self.identities = set(self.identities)
        return self.identities


class HandedOut:
    """The units that are remembered, oldest first."""

    def __init__(self) -> None:
        self._units: dict[str, HandedOutUnit] = {}
        self._held = 0

    def __len__(self) -> int:
        return len(self._units)

    def get(self, uow: str) -> HandedOutUnit | None:
        """Returns the unit; None when it is not remembered."""
        return self._units.get(uow)

    def add(self, uow: str, end: UnitEnd, identities: Collection[Identity]) -> None:
        """Remembers a whole unit, in the place of an earlier one with its name, and forgets the oldest ones."""
        self._put(uow, HandedOutUnit(end, identities))

    def add_late(self, uow: str, part: Fragment) -> None:
        """Remembers a late part of a unit that is remembered."""
        if (unit := self._units.get(uow)) is not None:
            self.forget(uow)
            unit.add_late(part)
            self._put(uow, unit)

    def forget(self, uow: str) -> None:
        """Forgets a unit: another one with its name is dispatched, and is not remembered."""
        if (unit := self._units.pop(uow, None)) is not None:
            self._held -= unit.held

    def _put(self, uow: str, unit: HandedOutUnit) -> None:
        self.forget(uow)
        self._units[uow] = unit
        self._held += unit.held
        while self._held > MOST_DELTAS:
            self.forget(next(iter(self._units)))
