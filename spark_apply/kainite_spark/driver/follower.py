"""Follows the main log for the apply job.

The log is folded (:mod:`kainite.log.state.folded`). Beside that, its entries tell
:class:`~kainite_spark.plan.backlog.Backlog`

* of schemes of signatures (SCHEME);
* of new units (UNIT), which are failed already when they were malformed or did not fit the catalogue;
* of parts that came late for a failed unit (FRAGMENT): it holds back what they touch, too;
* of decisions (STATUS without ``through``): retry, also of a unit that was judged anew (REFIT), and discard.

A STATUS entry with ``through`` has our own outcomes, and says up to which id the owner has copied
them. After a start the outcomes that the owner has not copied yet are applied on top of the folded log;
the outcomes partition is ours by then, so nobody else can append to it.

New entries come by the feed of the log's owner where there is one (:mod:`kainite.peers.feed`), and are read where
it lacks some. Both say the same of an id, and each id is folded once, in order, so it does not matter which came first:
the state after id n is the fold of the log up to n, whatever the feed left out, repeated or sent late.
"""

from __future__ import annotations

from collections.abc import Iterable

from kainite.base.errors import LogCorruptError
from kainite.log.contract import LogStore
from kainite.log.format.entry import Batch, FragmentMeta, Outcome, SchemeMeta, StatusMeta, UnitMeta, UnitStatus
from kainite.log.state.folded import FoldedLog
from kainite.log.state.loading import load_state
from kainite.log.state.unit_state import RESOLVED, UnitState
from kainite.peers.feed.buffer import EVERYTHING
from kainite.peers.sharing.following import LogFeed
from kainite_spark.driver.payloads import Payloads
from kainite_spark.plan.backlog import Backlog
from kainite_spark.plan.pending_unit import PendingUnit


class LogFollower:
    """The main log as the apply job reads it.

    Args:
        store: where the log is.
        partition: the main log's partition.
        backlog: gets new units and a person's decisions.
        feed: brings new entries; None: they are read.
        payloads: keeps the deltas that the feed brings.
    """

    def __init__(
        self,
        store: LogStore,
        partition: str,
        backlog: Backlog,
        feed: LogFeed | None = None,
        payloads: Payloads | None = None,
    ) -> None:
        self._store = store
        self._partition = partition
        self._backlog = backlog
        self._feed = feed
        self._payloads = payloads or Payloads(0)
        self._state = FoldedLog()
        self.schemes = 0
        """How many schemes of signatures were new since the start."""

    @property
    def next_id(self) -> int:
        """Returns the transaction id of the entry that is read next."""
        return self._state.next_id

    @property
    def through(self) -> int:
        """Returns the id up to which the owner has copied our outcomes."""
        return self._state.through

    def start(self) -> None:
        """Reads the log up to its present tail."""
        self._state = load_state(self._store, self._partition, strong=True)

    def resume(self, outcomes: Iterable[Outcome]) -> None:
        """Tells of all unresolved units, with the status that the log or a later outcome gives them."""
        for scheme_id, scheme in self._state.schemes.items():
            self._backlog.know(scheme_id, scheme)
        since = {outcome.tid: outcome for outcome in outcomes}
        for tid, unit in self._state.units.items():
            latest = since.get(tid) or Outcome(tid, unit.status, cause=unit.cause)
            if latest.status not in RESOLVED:
                in_progress = latest.status is UnitStatus.IN_PROGRESS
                self._backlog.add(pending_unit(unit), latest.status, None if in_progress else latest.cause)

    def poll(self, *, strong: bool = False) -> bool:
        """Folds new entries. Returns False when the owner truncated entries before they were read: start anew.

        The owner truncates nothing that an unresolved unit needs, so a new start misses no unit.

        Raises:
            LogCorruptError: entries are missing that were not truncated.
        """
        while (missing := self._fold_fed()) is not None:
            if not self._read(strong=strong or missing != EVERYTHING):
                return False
            if missing == EVERYTHING:
                break
            if self._feed is not None and self.next_id < missing:
                self._feed.doubt(f"entries up to {missing - 1} were said to be durable, and are not in the log")
        return True

    def _fold_fed(self) -> int | None:
        """Folds what the feed brought; returns up to where entries are then to be read, as a step of the feed says."""
        if self._feed is None:
            return EVERYTHING
        step = self._feed.take(self.next_id)
        for fed in step.batches:
            self._take(fed.batch)
            if fed.has_data:
                self._payloads.keep(fed.batch)
        return step.missing

    def _read(self, *, strong: bool) -> bool:
        try:
            for batch in self._store.read_batches(self._partition, self.next_id, data=False, strong=strong):
                self._take(batch)
        except LogCorruptError:
            head = self._store.read_head(self._partition)
            if head is None or head.low_water_mark <= self.next_id:
                raise
            return False
        return True

    def _take(self, batch: Batch) -> None:
        for tid, entry in batch.entries_from(self.next_id):
            self._state.apply(tid, entry, batch.time_ms)
            if isinstance(entry.meta, SchemeMeta):
                self.schemes += 1
                self._backlog.know(entry.meta.scheme, self._state.schemes[entry.meta.scheme])
            elif isinstance(entry.meta, UnitMeta):
                unit = self._state.units[tid]
                self._backlog.add(pending_unit(unit), unit.status, unit.cause)
            elif isinstance(entry.meta, FragmentMeta) and (late := self._state.failed(entry.meta.uow)) is not None:
                self._backlog.widen(pending_unit(late), entry.touched.written, entry.touched.read)
            elif isinstance(entry.meta, StatusMeta) and entry.meta.through is None:
                self._decided(entry.meta.outcomes)

    def _decided(self, outcomes: Iterable[Outcome]) -> None:
        """Applies retries and discards; a unit that we resolved ourselves meanwhile does not change."""
        for outcome in outcomes:
            if outcome.status is UnitStatus.DISCARDED:
                self._backlog.discard(outcome.tid)
            elif outcome.status is UnitStatus.IN_PROGRESS and outcome.tid in self._backlog.failed:
                unit = self._state.units[outcome.tid]
                self._backlog.retry(unit.tid, unit.attempt, pending_unit(unit))


def pending_unit(unit: UnitState) -> PendingUnit:
    """Returns what scheduling needs of a unit."""
    return PendingUnit(
        tid=unit.tid,
        uow=unit.uow,
        count=unit.count,
        kind=unit.kind,
        written=unit.written,
        read=unit.read,
        fragments=unit.fragments,
        attempt=unit.attempt,
        tables=unit.tables,
        unsigned=unit.unsigned,
        scheme=unit.scheme,
        refit=unit.refit,
    )
