"""A dispatched unit as the apply job knows it before any of its deltas is read."""

from __future__ import annotations

from dataclasses import dataclass

from kainite.uow.delta import UnitKind


@dataclass(frozen=True, slots=True)
class PendingUnit:
    """What the log's index says of a unit that is neither committed nor discarded.

    Attributes:
        tid: its transaction id.
        uow: its name.
        count: how many deltas it has; its weight.
        kind: normal, correction or reversal.
        written, read: its signatures.
        fragments: transaction ids of the FRAGMENT entries that hold its earlier deltas.
        attempt: how often the unit was retried after a failure.
    """

    tid: int
    uow: str
    count: int
    kind: UnitKind = UnitKind.NORMAL
    written: frozenset[int] = frozenset()
    read: frozenset[int] = frozenset()
    fragments: tuple[int, ...] = ()
    attempt: int = 0

    @property
    def overtakes(self) -> bool:
        """Returns whether the unit is a correction or reversal, which may pass failed units (docs/architecture.md)."""
        return self.kind is not UnitKind.NORMAL
