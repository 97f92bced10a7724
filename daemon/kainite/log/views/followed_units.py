"""All units of a log, held in memory and kept up to date: for a viewer that asks again and again.

The first :meth:`FollowedUnits.refresh` reads the log's index from the low-water mark on, later ones read what has come
since: the outcomes that the owner has not copied yet, HEAD, and the log's tail, one read each. A refresh ends when its
time is over, so that a viewer of a long log sees how far the reading is, and the next one goes on from there.

The outcomes are read before the log. So whatever was decided on a unit before an outcome stands in the log when the
outcome is laid over it. Outcomes that are not copied change nothing but :meth:`FollowedUnits.dispatched`.

Of several targets each has outcomes of its own; what each has of a unit is :mod:`kainite.log.views.followed_targets`.

===============================================  =======================================================================
what happens                                     effect
===============================================  =======================================================================
the owner truncates what was read                the resolved units below the low-water mark are forgotten
the owner truncates what was not read yet        all is read anew from the low-water mark on
the log is another one (its generation is lower) the same
the store does not answer                        an error; what was read stays, and the next refresh goes on
===============================================  =======================================================================

Not safe for several threads at once.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from kainite.base.errors import LogCorruptError
from kainite.log.contract import LogHead, LogStore
from kainite.log.format.entry import Batch, Entry, FragmentMeta, Outcome, StatusMeta, UnitStatus
from kainite.log.state.loading import load_state, low_water_mark
from kainite.log.state.open_unit import OpenUnit
from kainite.log.state.summary import from_text
from kainite.log.state.unit_state import UnitState
from kainite.log.views.followed_outcomes import FollowedOutcomes
from kainite.log.views.followed_targets import FollowedParts, TargetStanding
from kainite.log.views.unit_table import LogRow, dispatched_row, open_row
from kainite.log.views.unit_times import TimedUnits

ENOUGH_S: Final = 1.0
"""Seconds after which a refresh leaves the rest of a long log to the next one."""


@dataclass(frozen=True, slots=True)
class AppliedUnit:
    """A unit that a refresh saw committed.

    Attributes:
        at_ms: when it was applied, milliseconds since the epoch.
        took_s: seconds from its arrival on the stream, or from its dispatch where that is not known; None without both.
    """

    at_ms: int
    took_s: float | None


@dataclass(frozen=True, slots=True)
class Refreshed:
    """What a refresh read.

    Attributes:
        complete: whether the log is read up to its tail.
        anew: whether the reading began anew, so that ``applied`` repeats what earlier refreshes gave.
        applied: the units that were committed, in the log's order.
        outcomes: by target, the batches of outcomes that came, in order; one that was truncated before it was read is
            missing. The name is empty for an only target.
    """

    complete: bool
    anew: bool = False
    applied: tuple[AppliedUnit, ...] = ()
    outcomes: Mapping[str, Sequence[Batch]] = field(default_factory=dict)


class FollowedUnits:
    """The units of a log partition.

    Args:
        store: the log's store.
        partition: the partition's name.
        targets: the names of several targets; none for an only one.

    Attributes:
        parts: what each of several targets has of the units; None for an only target.
    """

    def __init__(self, store: LogStore, partition: str, targets: tuple[str, ...] = ()) -> None:
        self._store = store
        self._partition = partition
        self._outcomes = {name: FollowedOutcomes(store, partition, name) for name in targets or ("",)}
        self.parts = FollowedParts(store, partition) if targets else None
        self._begin(0)
        self.next_id = 0
        self.head: LogHead | None = None
        """HEAD as the last refresh read it; None for a partition that was never mounted."""

    @property
    def open(self) -> dict[str, OpenUnit]:
        """Returns the units that are being collected, by name, oldest first."""
        return self._units.fold.open

    def __len__(self) -> int:
        """Returns how many dispatched units there are."""
        return len(self._units.units)

    def counts(self) -> Counter[str]:
        """Returns how many dispatched units have each status now."""
        found = Counter({status.value: number for status, number in self._units.fold.statuses.items() if number})
        for tid, unit in self._settled.items():
            found[self._units.units[tid].status.value] -= 1
            found[unit.status.value] += 1
        return found

    def latest(self) -> Iterator[UnitState]:
        """Yields all dispatched units as they are now, the latest first."""
        for tid, unit in reversed(self._units.units.items()):
            yield self._settled.get(tid, unit)

    def dispatched(self) -> Iterator[UnitState]:
        """Yields all dispatched units as they are now, in the log's order."""
        over = self._settled
        if not over:
            yield from self._units.units.values()
            return
        for tid, unit in self._units.units.items():
            yield over.get(tid, unit)

    def unit(self, tid: int) -> UnitState | None:
        """Returns a dispatched unit as it is now; None for one that is not in the log any more."""
        return self._settled.get(tid) or self._units.units.get(tid)

    def named(self, name: str) -> UnitState | OpenUnit | None:
        """Returns the unit with a name; None without one. Looks at all units."""
        if (opened := self.open.get(name)) is not None:
            return opened
        found = next((unit for unit in reversed(self._units.units.values()) if unit.uow == name), None)
        return None if found is None else self._settled.get(found.tid, found)

    def standings(self) -> tuple[TargetStanding, ...]:
        """Returns how each of several targets stands; nothing for an only one."""
        return () if self.parts is None else self.parts.standings(self._units.fold, self.next_id)

    def in_target(self, target: str) -> Iterator[UnitState]:
        """Yields the units that are not resolved in one of several targets, as they are there, in the log's order."""
        if self.parts is None:
            return
        for tid, part in self.parts.unresolved(target):
            if (unit := self.unit(tid)) is not None:
                yield msgspec.structs.replace(unit, status=part.status, cause=part.cause, instance=part.instance)

    def row(self, unit: UnitState | OpenUnit) -> LogRow:
        """Returns a unit's row, with the columns that the log's index has."""
        if isinstance(unit, OpenUnit):
            return open_row(unit, [], self._units.of_open(unit.uow))
        row = dispatched_row(unit, self._units)
        if unit.tid in self._applied_ms:
            row.applied_ms = self._applied_ms[unit.tid]
        return row

    def refresh(self, enough: float = ENOUGH_S) -> Refreshed:
        """Reads what has come.

        Args:
            enough: seconds after which the rest is left to the next refresh.

        Raises:
            LogUnavailableError: the store does not answer.
            LogCorruptError: the log does not read back as written.
        """
        fresh = {name: outcomes.read() for name, outcomes in self._outcomes.items()}
        before, self.head = self.head, self._store.read_head(self._partition)
        head = self.head
        if head is None:
            self._begin(0)
            return Refreshed(True, before is not None)
        lost = self.next_id < head.low_water_mark or self.next_id == 0
        anew = lost or (before is not None and head.generation < before.generation)
        if anew:
            self._begin(0)  # where the parts cannot be read now, the next refresh begins anew, too
            if self.parts is not None:
                self.parts.begin()
            self.next_id = head.low_water_mark
        applied: list[AppliedUnit] = []
        complete = self._read_log(head, applied, time.monotonic() + enough)
        self._units.forget_below(head.low_water_mark)
        if self.parts is not None:
            self.parts.forget_below(head.low_water_mark)
        self._lay_over(self._not_copied(head))
        return Refreshed(complete, anew, tuple(applied), {name: batches for name, batches in fresh.items() if batches})

    def _begin(self, low: int) -> None:
        self._units = TimedUnits()
        self._settled: dict[int, UnitState] = {}
        self._applied_ms: dict[int, int | None] = {}
        self._through: int | None = None
        self._rest: Iterator[Batch] | None = None  # what a refresh that was out of time left to read
        self.next_id = low

    def _read_log(self, head: LogHead, applied: list[AppliedUnit], end: float) -> bool:
        """Reads the log's index to its tail, or until the time is over; returns whether the tail was reached."""
        if self._rest is None:
            self._rest = iter(self._store.read_batches(self._partition, self.next_id, data=False, strong=True))
        reading, self._rest = self._rest, None  # after an error, the next refresh reads anew
        try:
            for batch in reading:
                self._take(batch, applied)
                if time.monotonic() >= end:
                    self._rest = reading
                    return False
        except LogCorruptError:
            if low_water_mark(self._store, self._partition) == head.low_water_mark:
                raise
            self._begin(0)  # truncated while it was read: the next refresh begins at the new low-water mark
            return False
        return True

    def _take(self, batch: Batch, applied: list[AppliedUnit]) -> None:
        for tid, entry in batch.entries_from(self.next_id):
            if isinstance(entry.meta, StatusMeta):
                self._through = entry.meta.through if entry.meta.through is not None else self._through
                applied += self._commits(entry.meta.outcomes, batch.time_ms)
            self._apply(tid, entry, batch.time_ms)
        self.next_id = batch.last_id + 1

    def _apply(self, tid: int, entry: Entry, time_ms: int) -> None:
        fold = self._units.fold
        late = fold.failed(entry.meta.uow) if self.parts is not None and isinstance(entry.meta, FragmentMeta) else None
        self._units.apply(tid, entry, time_ms)
        if self.parts is not None:
            self.parts.take(tid, entry, fold, late)

    def _commits(self, outcomes: tuple[Outcome, ...], time_ms: int) -> Iterator[AppliedUnit]:
        for outcome in outcomes:
            unit = self._units.units.get(outcome.tid)
            if outcome.status is UnitStatus.COMMITTED and unit is not None and unit.status is not outcome.status:
                at, times = outcome.at_ms or time_ms, self._units.of(outcome.tid)
                since = times.arrived_ms if times.arrived_ms is not None else times.dispatched_ms
                yield AppliedUnit(at, None if since is None else max(0, at - since) / 1000)

    def _not_copied(self, head: LogHead) -> tuple[Outcome, ...]:
        """Returns the outcomes of units that the log does not have yet."""
        if self.parts is not None:
            fresh = {name: outcomes.beyond(self.parts.through(name)) for name, outcomes in self._outcomes.items()}
            return self.parts.lay_over(fresh)
        (outcomes,) = self._outcomes.values()
        if self._through is None and outcomes:
            summary = from_text(head.summary)
            known = summary.mark.through if summary is not None else load_state(self._store, self._partition).through
            self._through = known
        return outcomes.beyond(-1 if self._through is None else self._through)

    def _lay_over(self, outcomes: tuple[Outcome, ...]) -> None:
        """Settles units by outcomes that the log does not have."""
        self._settled, self._applied_ms = {}, {}
        for outcome in outcomes:
            unit = self.unit(outcome.tid)
            if unit is not None:
                self._settled[outcome.tid] = unit.settled(outcome)
                if outcome.status is UnitStatus.COMMITTED:
                    self._applied_ms[outcome.tid] = outcome.at_ms
