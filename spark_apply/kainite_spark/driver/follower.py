"""Follows the main log for the apply job.

The follower folds the log (:mod:`kainite.log.state.followed`); only the folded log keeps the facts of a unit. The
follower also tells :class:`~kainite_spark.plan.backlog.Backlog`

* of schemes of signatures (SCHEME);
* of new units (UNIT), which are failed already when they were malformed or did not fit the catalogue;
* of parts that came late for a failed unit (FRAGMENT): the unit holds back units that touch the same rows as these
  parts;
* of a person's decisions (STATUS without ``through``): retry, also of a unit that was judged again (REFIT), discard of
  a failed unit, and that another unit is to be discarded.

A STATUS entry with ``through`` has an apply job's outcomes, and says up to which id the owner has copied them. They are
this job's own outcomes, unless this job stood still and another apply job took over. After a start the follower applies
the outcomes that the owner has not copied yet on top of the folded log; this job has mounted the outcomes partition by
then, so nobody else can append to it.

Invariant: the folded log has each unit that the backlog has. A unit leaves the folded log by an outcome of this job,
before which the backlog has dropped the unit; or by a discard or another apply job's outcome, which the follower passes
on to the backlog.

New entries come by the feed of the log's owner, if there is a feed (:mod:`kainite.peers.feed`); the follower reads from
the store the entries that the feed lacks. Both have the same entry for an id, and the follower folds each id once, in
order, so it does not matter which source was faster:
the state after id n is the fold of the log up to n, whatever the feed left out, repeated or sent late.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from kainite.base.errors import LogCorruptError
from kainite.log.contract import LogStore
from kainite.log.format.entry import (
    Batch,
    FragmentMeta,
    OperationMeta,
    Outcome,
    SchemeMeta,
    StatusMeta,
    UnitMeta,
    UnitStatus,
)
from kainite.log.state.followed import FollowedLog
from kainite.log.state.loading import load_state
from kainite.log.state.unit_state import RESOLVED, UnitState
from kainite.peers.feed.buffer import EVERYTHING
from kainite.peers.feed.following import LogFeed
from kainite_spark.driver.payloads import Payloads
from kainite_spark.plan.backlog import Backlog


class LogFollower:
    """The main log as the apply job reads it.

    Args:
        store: the log's store.
        partition: the main log's partition.
        new_backlog: returns the empty backlog of a folded log's units.
        feed: brings new entries; None means that all entries are read from the store.
        payloads: keeps the deltas that the feed brings.
    """

    def __init__(
        self,
        store: LogStore,
        partition: str,
        new_backlog: Callable[[Mapping[int, UnitState]], Backlog] = Backlog,
        feed: LogFeed | None = None,
        payloads: Payloads | None = None,
    ) -> None:
        self._store = store
        self._partition = partition
        self._new_backlog = new_backlog
        self._feed = feed
        self._payloads = payloads or Payloads(0)
        self._state = FollowedLog()
        self._backlog = new_backlog(self._state.units)
        self.schemes = 0
        """How many new schemes of signatures came since the start."""

    @property
    def units(self) -> Mapping[int, UnitState]:
        """Returns the folded states of the unresolved units, by transaction id."""
        return self._state.units

    @property
    def backlog(self) -> Backlog:
        """Returns the backlog of unresolved units; each :meth:`start` makes a new backlog."""
        return self._backlog

    @property
    def next_id(self) -> int:
        """Returns the transaction id of the entry that is read next."""
        return self._state.next_id

    @property
    def pause(self) -> OperationMeta | None:
        """Returns the operation of a person that has paused applying; None while units are to be applied."""
        return self._state.operations.pause

    @property
    def through(self) -> int:
        """Returns the id up to which the owner has copied our outcomes."""
        return self._state.through

    def start(self, outcomes_from: Callable[[int], Iterable[Outcome]] = lambda _: ()) -> None:
        """Reads the log up to its present tail, and makes the backlog of its units.

        Args:
            outcomes_from: returns this job's outcomes from an id of the outcomes partition on, to be applied to the
                fold.
        """
        self._state = FollowedLog(load_state(self._store, self._partition, strong=True))
        self._backlog = self._new_backlog(self._state.units)
        for scheme_id, scheme in self._state.schemes.items():
            self._backlog.know(scheme_id, scheme)
        since = {outcome.tid: outcome for outcome in outcomes_from(self.through + 1)}
        for tid, unit in self._state.units.items():
            latest = unit.settled(since[tid]) if tid in since else unit
            if not latest.resolved:
                self._backlog.add(tid, latest.status, latest.cause)

    def poll(self, *, strong: bool = False) -> bool:
        """Folds new entries; returns False if the owner truncated entries before they were read: call :meth:`start`.

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
        """Folds the feed's batches; returns the id up to which to read the store then, as a step of the feed has it."""
        if self._feed is None:
            return EVERYTHING
        step = self._feed.take(self.next_id)
        for fed in step.batches:
            self._fold(fed.batch)
            if fed.has_data:
                self._payloads.keep(fed.batch)
        return step.missing

    def _read(self, *, strong: bool) -> bool:
        """Reads and folds entries of the store; returns False when entries were truncated before they were read."""
        try:
            for batch in self._store.read_batches(self._partition, self.next_id, data=False, strong=strong):
                self._fold(batch)
        except LogCorruptError:
            head = self._store.read_head(self._partition)
            if head is None or head.low_water_mark <= self.next_id:
                raise
            return False
        return True

    def _fold(self, batch: Batch) -> None:
        """Folds the entries of a batch that are new, and tells the backlog of each."""
        for tid, entry in batch.entries_from(self.next_id):
            self._state.apply(tid, entry, batch.time_ms)
            if isinstance(entry.meta, SchemeMeta):
                self.schemes += 1
                self._backlog.know(entry.meta.scheme, self._state.schemes[entry.meta.scheme])
            elif isinstance(entry.meta, UnitMeta):
                unit = self._state.units[tid]
                self._backlog.add(tid, unit.status, unit.cause)
            elif isinstance(entry.meta, FragmentMeta) and (late := self._state.failed(entry.meta.uow)) is not None:
                self._backlog.widen(late.tid, entry.touched)
            elif isinstance(entry.meta, StatusMeta):
                self._decided(entry.meta)

    def _decided(self, status: StatusMeta) -> None:
        """Applies what a person or an apply job has decided; a unit that we resolved ourselves does not change."""
        # The folded log has forgotten all resolved units, so the backlog forgets them all before it looks one up.
        self._backlog.forget_resolved(one.tid for one in status.outcomes if one.status in RESOLVED)
        if status.through is not None:
            return  # outcomes of an apply job: what it found to be failed or blocked, we find out ourselves
        for outcome in status.outcomes:
            if outcome.status is UnitStatus.IN_PROGRESS and outcome.tid in self._backlog.failed:
                self._backlog.retry(outcome.tid)
            elif outcome.status is UnitStatus.DISCARDING:
                self._backlog.withdraw(outcome.tid, outcome.cause)
