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
from dataclasses import dataclass
from typing import Final

from kainite.uow.delta import UnitEnd
from kainite.uow.identity import Identity

MOST_DELTAS: Final = 100_000
"""The most deltas and units that are remembered together: about 10 MB."""


@dataclass(slots=True)
class HandedOutUnit:
    """A dispatched unit.

    Attributes:
        end: its end, without a number where the log has taken the number from it.
        identities: those of its deltas.
    """

    end: UnitEnd
    identities: Collection[Identity]

    def known(self, identities: Iterable[Identity]) -> frozenset[Identity]:
        """Returns those of the identities that the unit has."""
        if not isinstance(self.identities, frozenset):  # most units are never asked
            self.identities = frozenset(self.identities)
        return self.identities.intersection(identities)

    def differs(self, end: UnitEnd) -> bool:
        """Tells whether another end says something else."""
        own = self.end
        return (own.count, own.kind) != (end.count, end.kind) or own.number not in (None, end.number)


class HandedOut:
    """The units that are remembered, oldest first."""

    def __init__(self) -> None:
        self._units: dict[str, HandedOutUnit] = {}
        self._deltas = 0

    def __len__(self) -> int:
        return len(self._units)

    def get(self, uow: str) -> HandedOutUnit | None:
        """Returns the unit; None when it is not remembered."""
        return self._units.get(uow)

    def add(self, uow: str, end: UnitEnd, identities: Collection[Identity]) -> None:
        """Remembers a whole unit, in the place of an earlier one with its name, and forgets the oldest ones."""
        units = self._units
        if (before := units.pop(uow, None)) is not None:
            self._deltas -= len(before.identities)
        units[uow] = HandedOutUnit(end, identities)
        self._deltas += len(identities)
        while self._deltas + len(units) > MOST_DELTAS:
            self._deltas -= len(units.pop(next(iter(units))).identities)
