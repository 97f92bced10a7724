"""A dispatched unit as the apply job sees it before it reads any delta."""

from __future__ import annotations

from dataclasses import dataclass

from kainite.uow.delta import UnitKind


@dataclass(frozen=True, slots=True)
class PendingUnit:
    """What the log's index says of a unit that is not resolved.

    Attributes:
        tid: its transaction id.
        uow: its name.
        count: how many deltas it has; its weight.
        kind: normal, correction or reversal.
        written, read: its signatures.
        fragments: transaction ids of the FRAGMENT entries that hold its earlier deltas.
        attempt: how often a failure of it has been sent back for another try.
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
        """Whether it may pass failed units (white paper, *Load*, c)."""
        return self.kind is not UnitKind.NORMAL
