"""The contract of the coordination table: one read, one conditional write, one history.

A write is a :class:`FleetCommit`: all of its changes or none. Each change is conditional on the version that its writer
has read, so nobody overwrites what he has not seen; a leader's commit is also conditional on its generation being the
present one, so a former leader changes nothing. What a commit changes and the lines of history that tell of it are
one step.

Invariants of every store, which the conformance suite checks:

* I1  of two commits that change the version which both have read, one returns False and changes nothing;
* I2  a commit of a leader changes nothing when another generation leads, or the lead was given back;
* I3  a commit whose request was sent again because its answer was lost returns True if the first one succeeded;
* I4  a read sees every commit that has returned True;
* I5  a record of a kind that the store does not know is passed over, and kept.

A commit that raises may have succeeded; the writer reads and decides anew. All calls block, and may raise
:class:`~kainite.base.errors.FleetUnavailableError` (the same call may be made again) or
:class:`~kainite.base.errors.FleetError` (the table is missing, or refuses).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias

from kainite.fleet.model.records import HistoryLine, Lead, Picture, Record, Subject

MOST_CHANGES = 9
"""The most changes and events of one commit together: with the check of the leader's generation, 10 items in a
transaction, which every double takes. DynamoDB takes 100, but fewer cost next to nothing: an idle fleet writes no
transactions, and 100 duties are given out with 25 of them, not 5."""


@dataclass(frozen=True, slots=True)
class PutRecord:
    """Writes a record, if its version is still the one in the table; a record without a version must be new."""

    record: Record


@dataclass(frozen=True, slots=True)
class DeleteRecord:
    """Deletes a record, if its version is still the one in the table."""

    record: Record


@dataclass(frozen=True, slots=True)
class CheckRecord:
    """Changes nothing; the commit succeeds only if the table still has this version of the record."""

    record: Record


RecordChange: TypeAlias = PutRecord | DeleteRecord | CheckRecord


@dataclass(frozen=True, slots=True)
class FleetCommit:
    """Changes that happen together or not at all.

    Attributes:
        changes: the changes, each of another record.
        led: the leader that writes; None for a worker about itself and its duties, and for an operator.
        events: lines of history.
    """

    changes: tuple[RecordChange, ...]
    led: Lead | None = None
    events: tuple[HistoryLine, ...] = ()


class FleetStore(Protocol):
    """A coordination table; threads may share it."""

    def create(self) -> None:
        """Creates the table where it is missing, and waits until it is usable."""

    def read(self) -> Picture:
        """Returns everything but the histories."""

    def commit(self, commit: FleetCommit) -> bool:
        """Makes all changes; or makes none and returns False: another has written one of the records, or leads now."""

    def history(self, subject: Subject, name: str, limit: int) -> tuple[HistoryLine, ...]:
        """Returns the last lines of a history, the latest first."""
