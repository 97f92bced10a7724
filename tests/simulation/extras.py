"""What a source of units without ends says late: one row more of a transaction, or a transaction of its own.

An *extra* is a row of ``journal`` that comes to the stream by itself, some time after all records of its transaction.
The row of an extra that comes within the grace must be there with its transaction. One that comes later must get into
the target, too, once, but never by itself: an operator has retried what failed.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from simulation.schema import JOURNAL

ORDINAL = 900
"""More than a transaction has deltas."""

MARGIN_S = 1.0
"""Between what comes within the grace and what comes after it, seconds."""


@dataclass(frozen=True, slots=True)
class Extra:
    """One more row of a transaction.

    Attributes:
        number: the transaction's.
        own: the row is a transaction of its own, committed right after that one.
        gap: seconds between the transaction's last record and this one.
        again: seconds after which the record comes again; 0 for never.
    """

    number: int
    own: bool
    gap: float
    again: float = 0.0

    @property
    def uow(self) -> str:
        """Returns the unit of the row."""
        return f"{'X' if self.own else 'T'}-{self.number}"

    @property
    def what(self) -> str:
        """Returns what the row says."""
        return f"{self.uow} extra"

    def message(self, time: str) -> bytes:
        """Returns the payload of the row's record; ``time`` is the transaction's commit time."""
        delta = {"uow": self.uow, "table": JOURNAL, "op": "insert", "row": {"what": self.what}, "ordinal": ORDINAL}
        return json.dumps({"action": "emit", "deltas": [{**delta, "time": time}]}).encode()


@dataclass
class Extras:
    """What the oracle knows of extras.

    Attributes:
        planned: all that there will be.
        grace: ``uowGraceMillis``, seconds.
        on_time: the units of their own that have come within the grace after their commit.
        retried: the units that failed, and that an operator has asked to retry.
        there: the rows that are in the target.
    """

    planned: Sequence[Extra] = ()
    grace: float = 0.0
    on_time: set[str] = field(default_factory=set)
    retried: set[str] = field(default_factory=set)
    there: set[str] = field(default_factory=set)

    def may_fail(self, uow: str) -> bool:
        """Returns whether a unit is there for what came late, or is late itself."""
        late = {f"{one.uow}+late" for one in self.planned if not one.own and not self._together(one)}
        return uow in late | {one.uow for one in self.planned if one.own and one.uow not in self.on_time}

    def missing(self) -> list[str]:
        """Returns the rows that are not there."""
        return [one.what for one in self.planned if one.what not in self.there]

    def look(self, names: Sequence[str], before: Collection[str]) -> str | None:
        """Looks at the target; returns what is wrong.

        Args:
            names: the names that the journal has now.
            before: the transactions that were there already.
        """
        found = [name for name in names if name not in before]
        if unknown := {name for name in names if name.endswith(" extra")} - {one.what for one in self.planned}:
            return f"the target has {min(unknown)}, which the source never said"
        for one in self.planned:
            if wrong := self._judged(one, names, before, found):
                return wrong
        self.there |= {one.what for one in self.planned if one.what in names}
        return None

    def _judged(self, one: Extra, names: Sequence[str], before: Collection[str], found: Sequence[str]) -> str | None:
        is_new = one.what in names and one.what not in self.there
        if names.count(one.what) > 1:
            return f"{one.what} is applied twice"
        if self._together(one) and one.uow in found and one.what not in names:
            return f"{one.uow} is applied without what came within the grace"
        if not is_new or self._was_retried(one):
            return None
        if one.own:
            later = [name for name in before if int(name.partition("-")[2]) > one.number]
            return f"{one.what} is applied after {later[0]}, and was not retried" if later else None
        return f"{one.what} is applied by itself, and was not retried" if one.uow in before else None

    def _together(self, one: Extra) -> bool:
        return not one.own and one.gap <= self.grace - MARGIN_S

    def _was_retried(self, one: Extra) -> bool:
        return bool(self.retried & {one.uow, f"{one.uow}+late"})
