"""Measures the units that wait to be applied, and judges whether the owner may take more.

Every unit that was dispatched and is neither committed nor discarded takes memory in the owner and a place in each
snapshot. Beyond a bound (``logBacklogUnits``, ``logBacklogBytes``) the owner takes no more from the shards: appends
wait, children get no next batch, and reading stops. The backlog shrinks without these appends: outcomes of the apply
job, retries and discards are the owner's own entries, to which the bound does not apply.

Units that are still being collected have the same bound and another effect, since what they wait for is in records that
are not read yet: only shards that are ahead of others wait (:mod:`kainite.owner.reading_turn`).

A failed unit that holds back everything behind it is a backlog too, and only a person can end it: the description
names the first failed unit. A correction of this unit that is further behind in the stream is not read before
the backlog is smaller.
"""

from __future__ import annotations

from dataclasses import dataclass

from kainite.base.words import are, counted
from kainite.log.format.entry import UnitStatus
from kainite.log.state.folded import FoldedLog
from kainite.log.state.unit_state import DIGEST_BYTES, SIGNATURE_BYTES, UNIT_BYTES
from kainite.settings import LogSettings


@dataclass(frozen=True, slots=True)
class LogBacklog:
    """The units that wait to be applied, at a moment when they reach the bound.

    Attributes:
        units: how many units wait.
        size: about how many bytes of memory the units take.
        failed, blocked: how many of them have this status.
        in_progress: how many are left.
        first_failed: the name of the failed unit that is first in the log; None without one.
    """

    units: int
    size: int
    in_progress: int
    failed: int
    blocked: int
    first_failed: str | None

    def __str__(self) -> str:
        waits = (
            f"reading waits: {counted(self.units)} of about {self.size >> 20} MiB {are(self.units)} not applied"
            f" (logBacklogUnits, logBacklogBytes); {self.in_progress} {are(self.in_progress)} in progress,"
            f" {self.failed} failed, {self.blocked} {are(self.blocked)} blocked"
        )
        if self.first_failed is None:
            return f"{waits}; is the apply job running, and does it reach the target?"
        return f"{waits}; the first that failed is {self.first_failed}: kainite uow retry or discard"


@dataclass(frozen=True, slots=True)
class OpenBacklog:
    """The units that are being collected, at a moment when they reach the bound.

    Attributes:
        units: how many units are being collected.
        size: about how many bytes of memory the units take.
        held: what they wait for, as far as it is known.
    """

    units: int
    size: int
    held: str

    def __str__(self) -> str:
        return (
            f"reading of shards that are ahead of others waits: {counted(self.units)} of about {self.size >> 20} MiB"
            f" {are(self.units)} being collected (logBacklogUnits, logBacklogBytes); {self.held}"
        )


def open_bytes(state: FoldedLog) -> int:
    """Returns about how many bytes of memory the units take that are being collected."""
    return UNIT_BYTES * len(state.open) + (2 * SIGNATURE_BYTES + DIGEST_BYTES) * state.open_deltas


def collects_too_many(state: FoldedLog, settings: LogSettings) -> bool:
    """Returns whether the units that are being collected reach the bound."""
    return len(state.open) >= settings.backlog_units or open_bytes(state) >= settings.backlog_bytes


def is_full(state: FoldedLog, settings: LogSettings) -> bool:
    """Returns whether the units that wait to be applied reach the bound."""
    return len(state.units) >= settings.backlog_units or state.waiting_bytes >= settings.backlog_bytes


def backlog_of(state: FoldedLog) -> LogBacklog:
    """Returns a description of the waiting units; if a unit has failed, looks at all units before it to find it."""
    failed, blocked = (state.statuses.get(status, 0) for status in (UnitStatus.FAILED, UnitStatus.BLOCKED))
    in_progress = len(state.units) - failed - blocked
    units = state.units.values() if failed else ()
    first_failed = next((unit.uow for unit in units if unit.status is UnitStatus.FAILED), None)
    return LogBacklog(len(state.units), state.waiting_bytes, in_progress, failed, blocked, first_failed)
