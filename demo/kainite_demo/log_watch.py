"""Counts units and deltas in the serialization log, for the progress display and the summary.

The log is read from its first entry, as any reader may read it, without a call to the daemon or to
the apply job. The counts therefore go on while these are dead, and contain only what is durable.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kainite.log.contract import LogStore
from kainite.log.format.entry import Entry, FragmentMeta, Outcome, StatusMeta, UnitMeta, UnitStatus
from kainite.log.state.folded import FoldedLog
from kainite.log.state.units import UnitFold
from kainite.log.views.unit_conflicts import UnitConflicts


@dataclass(slots=True)
class LogCounts:
    """Counts up to some entry of the log.

    Attributes:
        deltas: deltas that have been collected.
        collected: units of work that are whole: dispatched, or waiting for their number.
        dispatched: units that have a transaction id.
        conflicts: dispatched units that conflicted with a unit that was still in progress.
        committed: units whose commit is in the log.
        failed: units that failed or are blocked, with their cause.
        instances: job instances that have applied something.
    """

    deltas: int = 0
    collected: int = 0
    dispatched: int = 0
    conflicts: int = 0
    committed: int = 0
    failed: dict[int, str] = field(default_factory=dict)
    instances: set[int] = field(default_factory=set)

    @property
    def records(self) -> int:
        """Returns how many records the counts stem from: one for each delta, and one for the end of each whole unit."""
        return self.deltas + self.collected


class LogWatch:
    """Follows one log partition; :meth:`poll` brings :attr:`counts` up to date."""

    def __init__(self, store: LogStore, partition: str) -> None:
        self.counts = LogCounts()
        self._store = store
        self._partition = partition
        self._state = FoldedLog()
        self._conflicts = UnitConflicts(UnitFold())

    def poll(self) -> LogCounts:
        """Reads the entries since the last call.

        Raises:
            LogUnavailableError: the store did not answer.
        """
        for batch in self._store.read_batches(self._partition, self._state.next_id, data=False):
            for tid, entry in batch.entries_from(self._state.next_id):
                self._count(tid, entry)
                self._state.apply(tid, entry, batch.time_ms)
                self.counts.conflicts += self._conflicts.apply(tid, entry, batch.time_ms) is not None
        self.counts.collected = self.counts.dispatched + len(self._state.ready)
        return self.counts

    def _count(self, tid: int, entry: Entry) -> None:
        match entry.meta:
            case FragmentMeta() as meta:
                self.counts.deltas += meta.count
            case UnitMeta() as meta:
                self._unit(tid, meta)
            case StatusMeta(outcomes=outcomes):
                for outcome in outcomes:
                    self._outcome(outcome)

    def _unit(self, tid: int, meta: UnitMeta) -> None:
        opened = self._state.open.get(meta.uow)
        self.counts.deltas += meta.count - (opened.count if opened else 0)
        self.counts.dispatched += 1
        if meta.cause is not None:
            self.counts.failed[tid] = meta.cause

    def _outcome(self, outcome: Outcome) -> None:
        if outcome.instance is not None:
            self.counts.instances.add(outcome.instance)
        if outcome.status is UnitStatus.COMMITTED:
            self.counts.committed += 1
        elif outcome.status in (UnitStatus.FAILED, UnitStatus.BLOCKED):
            self.counts.failed[outcome.tid] = outcome.cause or outcome.status.value
