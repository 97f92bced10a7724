"""What the serialization log says of the run: counts for the progress display and the summary.

The log is followed from its first entry, as any reader may; nothing is asked of the daemon or of
the apply job. That works through their deaths, and shows only what is durable.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kainite.log.format.entry import Entry, FragmentMeta, Outcome, StatusMeta, UnitMeta, UnitStatus
from kainite.log.state.folded import FoldedLog
from kainite.log.store.contract import LogStore


@dataclass(slots=True)
class LogCounts:
    """What the log holds up to some entry.

    Attributes:
        deltas: how many have been collected.
        collected: units of work that are whole, dispatched or waiting for their number.
        dispatched: units that were given a transaction id.
        conflicts: dispatched units that touched a row of one that was still in progress.
        committed: units whose outcome is in the log.
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
        """Records behind that: one for each delta, and the end of each whole unit."""
        return self.deltas + self.collected


class LogWatch:
    """Follows one log partition; :meth:`poll` brings :attr:`counts` up to date."""

    def __init__(self, store: LogStore, partition: str) -> None:
        self.counts = LogCounts()
        self._store = store
        self._partition = partition
        self._state = FoldedLog()

    def poll(self) -> LogCounts:
        """Read what has come since the last call.

        Raises:
            LogUnavailableError: the store did not answer.
        """
        for batch in self._store.read_batches(self._partition, self._state.next_id, data=False):
            for tid, entry in batch.entries_from(self._state.next_id):
                self._count(tid, entry)
                self._state.apply(tid, entry, batch.time_ms)
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
        self.counts.conflicts += meta.conflict is not None
        if meta.cause is not None:
            self.counts.failed[tid] = meta.cause

    def _outcome(self, outcome: Outcome) -> None:
        if outcome.instance is not None:
            self.counts.instances.add(outcome.instance)
        if outcome.status is UnitStatus.COMMITTED:
            self.counts.committed += 1
        elif outcome.status in (UnitStatus.FAILED, UnitStatus.BLOCKED):
            self.counts.failed[outcome.tid] = outcome.cause or outcome.status.value
