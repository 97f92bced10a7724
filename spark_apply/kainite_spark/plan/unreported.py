"""Tracks which statuses of units the log does not show yet. Pure.

The log shows a status when the apply job has written the unit's outcome down, or when a person decided. A unit's status
may change several times between two writes; only the latest one is written, and nothing where the log shows it already.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from kainite.log.format.entry import Outcome, UnitStatus

StatusAndCause: TypeAlias = tuple[UnitStatus, str | None]

MOST_WAITING: Final = 200
"""The most commits that are told later: they make one small entry of the log."""

_PLAIN: Final[StatusAndCause] = (UnitStatus.IN_PROGRESS, None)


@dataclass(slots=True)
class Unreported:
    """The difference between the statuses that the log shows and those that the units have.

    Attributes:
        shown: the status and cause that the log shows of each unit, except units in progress without a cause.
        touched: the units whose status may differ from what the log shows, in the order in which it changed.
        gone: the outcomes of the units that were committed or discarded since the last :meth:`take`.
        causes: why the target did not take a unit in progress at its latest try.
    """

    shown: dict[int, StatusAndCause] = field(default_factory=dict)
    touched: dict[int, None] = field(default_factory=dict)
    gone: list[Outcome] = field(default_factory=list)
    causes: dict[int, str] = field(default_factory=dict)

    def published(self, tid: int, status: UnitStatus, cause: str | None) -> None:
        """Notes the status and cause that the log shows of a unit."""
        self.forget(tid)
        if (status, cause) != _PLAIN:
            self.shown[tid] = (status, cause)

    def forget(self, tid: int) -> None:
        """Notes that the log shows a unit as in progress, or no longer shows it."""
        self.shown.pop(tid, None)
        self.touched.pop(tid, None)

    def drop(self, tid: int) -> None:
        """Forgets a unit, which the log shows as resolved, or which runs no more."""
        self.forget(tid)
        self.causes.pop(tid, None)

    def met(self, result: Outcome) -> None:
        """Notes the cause that a unit in progress has met; a unit with another outcome has none any more."""
        if result.status is UnitStatus.IN_PROGRESS and result.cause is not None:
            self.causes[result.tid] = result.cause
            self.changed(result.tid)
        elif self.causes.pop(result.tid, None) is not None:
            self.changed(result.tid)

    def in_progress(self, tid: int) -> StatusAndCause:
        """Returns the status of a unit in progress, and the cause that it has met."""
        return UnitStatus.IN_PROGRESS, self.causes.get(tid)

    def changed(self, tid: int) -> None:
        """Notes that a unit's status has changed."""
        self.touched[tid] = None

    def examined(self, tid: int) -> None:
        """Notes that a unit runs: the log may show an outdated status of it."""
        if tid in self.shown:
            self.touched[tid] = None

    def resolved(self, outcome: Outcome) -> None:
        """Notes that a unit was committed or discarded."""
        self.forget(outcome.tid)
        self.gone.append(outcome)

    @property
    def may_wait(self) -> bool:
        """Tells whether the log may show these outcomes later: they are a few commits, for which nobody waits."""
        few = not self.touched and len(self.gone) < MOST_WAITING
        return few and all(outcome.status is UnitStatus.COMMITTED for outcome in self.gone)

    def take(self, status_of: Callable[[int], StatusAndCause]) -> tuple[Outcome, ...]:
        """Returns the outcomes that the log does not show yet; returns each only once.

        Args:
            status_of: returns a unit's present status, and its cause.
        """
        outcomes = self.gone
        for tid in self.touched:
            now = status_of(tid)
            if now != self.shown.pop(tid, _PLAIN):
                outcomes.append(Outcome(tid, now[0], cause=now[1]))
            if now != _PLAIN:
                self.shown[tid] = now
        self.gone, self.touched = [], {}
        return tuple(outcomes)
