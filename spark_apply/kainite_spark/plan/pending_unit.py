"""A dispatched unit as the apply job knows it before any of its deltas is read."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from kainite.uow.delta import UnitKind


@dataclass(frozen=True, slots=True)
class PendingUnit:
    """The facts in the log's index about a unit that is neither committed nor discarded.

    Attributes:
        tid: its transaction id.
        uow: its name.
        count: how many deltas it has; its weight.
        kind: normal, correction or reversal.
        written, read: its signatures; of a unit that still collects they may grow.
        fragments: transaction ids of the FRAGMENT entries that hold its other deltas, in order.
        attempt: how often the unit was retried after a failure.
        tables: the tables that it touches.
        unsigned: those of them with a delta whose row is not known; only a failed unit has some.
        scheme: what its signatures depend on; None if the log does not say it.
        refit: transaction id of the REFIT entry, which has all its deltas; None if its own entries have them.
    """

    tid: int
    uow: str
    count: int
    kind: UnitKind = UnitKind.NORMAL
    written: AbstractSet[int] = frozenset()
    read: AbstractSet[int] = frozenset()
    fragments: Sequence[int] = ()
    attempt: int = 0
    tables: tuple[str, ...] = ()
    unsigned: tuple[str, ...] = ()
    scheme: str | None = None
    refit: int | None = None

    @property
    def entries(self) -> tuple[int, ...]:
        """Returns the transaction ids of the entries that hold the unit's deltas, in order."""
        return (*self.fragments, self.tid) if self.refit is None else (self.refit,)

    @property
    def overtakes(self) -> bool:
        """Returns whether the unit is a correction or reversal, which may pass failed units (docs/glossary.md)."""
        return self.kind is not UnitKind.NORMAL
