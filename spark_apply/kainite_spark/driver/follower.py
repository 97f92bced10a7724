"""Follows the main log for the apply job.

The log is folded (:mod:`kainite.log.state.folded`), and the folded log is the only place that has what the log says of
a unit. Beside that, its entries tell :class:`~kainite_spark.plan.backlog.Backlog`

* of schemes of signatures (SCHEME);
* of new units (UNIT), which are failed already when they were malformed or did not fit the catalogue;
* of parts that came late for a failed unit (FRAGMENT): it holds back what they touch, too;
* of decisions (STATUS without ``through``): retry, also of a unit that was judged anew (REFIT), and discard.

A STATUS entry with ``through`` has an apply job's outcomes, and says up to which id the owner has copied them. They
are ours, unless we stood still and another apply job took over. After a start the outcomes that the owner has not
copied yet are applied on top of the folded log; the outcomes partition is ours by then, so nobody else can append to
it.

Invariant: the folded log has each unit that the backlog has. A unit leaves the folded log by an outcome of ours, for
which the backlog has let go of the unit before; or by a discard or another apply job's outcome, of which the backlog
hears with the entry.

New entries come by the feed of the log's owner where there is one (:mod:`kainite.peers.feed`), and are read where
it lacks some. Both say the same of an id, and each id is folded once, in order, so it does not matter which came first:
the state after id n is the fold of the log up to n, whatever the feed left out, repeated or sent late.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from kainite.base.errors import LogCorruptError
from kainite.log.contract import LogStore
from kainite.log.format.entry import Batch, FragmentMeta, Outcome, SchemeMeta, StatusMeta, UnitMeta, UnitStatus
from kainite.log.state.folded import FoldedLog
from kainite.log.state.loading import load_state
from kainite.log.state.unit_state import RESOLVED, UnitState
from kainite.peers.feed.buffer import EVERYTHING
from kainite.peers.feed.following import LogFeed
from kainite_spark.driver.payloads import Payloads
from kainite_spark.plan.backlog import Backlog


class LogFollower:
    """The main log as the apply job reads it.

    Args:
        store: where the log is.
        partition: the main log's partition.
        new_backlog: returns the empty backlog of a folded log's units.
        feed: brings new entries; None: they are read.
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
        self._state = FoldedLog()
        self._backlog = new_backlog(self._state.units)
        self.schemes = 0
        """How many schemes of signatures were new since the start."""

    @property
    def units(self) -> Mapping[int, UnitState]:
        """Returns what the log says of the units that it does not show as resolved, by transaction id."""
        return self._state.units

    @property
    def backlog(self) -> Backlog:
        """Returns the units that are still to be applied; another one after each :meth:`start`."""
        return self._backlog

    @property
    def next_id(self) -> int:
        """Returns the transaction id of the entry that is read next."""
        return self._state.next_id

    @property
    def through(self) -> int:
        """Returns the id up to which the owner has copied our outcomes."""
        return self._state.through

    def start(self, outcomes_from: Callable[[int], Iterable[Outcome]] = lambda _: ()) -> None:
        """Reads the log up to its present tail, and makes the backlog of its units.

        Args:
            outcomes_from: returns our outcomes from an id of the outcomes partition on; they change what the log says.
        """
        self._state = load_state(self._store, self._partition, strong=True)
        self._backlog = self._new_backlog(self._state.units)
        for scheme_id, scheme in self._state.schemes.items():
            self._backlog.know(scheme_id, scheme)
        since = {outcome.tid: outcome for outcome in outcomes_from(self.through + 1)}
        for tid, unit in self._state.units.items():
            latest = since.get(tid) or Outcome(tid, unit.status, cause=unit.cause)
            if latest.status not in RESOLVED:
                in_progress = latest.status is UnitStatus.IN_PROGRESS
                self._backlog.add(tid, latest.status, None if in_progress else latest.cause)

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
            self._fold(fed.batch)
            if fed.has_data:
                self._payloads.keep(fed.batch)
        return step.missing

    def _read(self, *, strong: bool) -> bool:
        """Folds what the store has; returns False when entries were truncated before they were read."""
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
