"""Follows the main log for the apply job.

The follower folds the log (:mod:`kainite.log.state.followed`); only the folded log keeps the facts of a unit. The
follower also tells :class:`~kainite_spark.plan.backlog.Backlog`

* of schemes of signatures (SCHEME);
* of new units (UNIT), which are failed already when they were malformed or did not fit the catalogue;
* of parts that came late for a failed unit (FRAGMENT): the unit holds back units that touch the same rows as these
  parts;
* of a person's decisions (STATUS without ``through``, or TARGET without it for the part in this target alone): retry,
  also of a unit that was judged again (REFIT), discard of a failed unit, and that another unit is to be discarded.

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

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from kainite.base.errors import LogCorruptError, SettingsError
from kainite.base.logs import event
from kainite.log.contract import LogStore
from kainite.log.format.entry import (
    TARGETS,
    Batch,
    ControlMeta,
    FragmentMeta,
    Meta,
    OperationMeta,
    Outcome,
    RefitMeta,
    SchemeMeta,
    StatusMeta,
    TargetMeta,
    UnitMeta,
    UnitStatus,
)
from kainite.log.state.followed import FollowedLog
from kainite.log.state.target_parts import seen_by, through_of, units_of
from kainite.log.state.unit_state import RESOLVED, UnitState
from kainite.peers.feed.buffer import EVERYTHING
from kainite.peers.feed.following import LogFeed
from kainite_spark.driver.early_read import EarlyRead
from kainite_spark.driver.payloads import Payloads
from kainite_spark.plan.backlog import Backlog

_LOG = logging.getLogger(__name__)
_FAILED: Final = UnitStatus.FAILED


class LogFollower:
    """The main log as the apply job reads it.

    Args:
        store: the log's store.
        partition: the main log's partition.
        new_backlog: returns the empty backlog of a folded log's units.
        feed: brings new entries; None means that all entries are read from the store.
        payloads: keeps the deltas that the feed brings.
        target: the target's name, where the log has several; empty for the only one.
        early: has read the log already, as far as it went while another job's lease ran out.
    """

    def __init__(
        self,
        store: LogStore,
        partition: str,
        new_backlog: Callable[[Mapping[int, UnitState]], Backlog] = Backlog,
        feed: LogFeed | None = None,
        payloads: Payloads | None = None,
        target: str = "",
        early: EarlyRead | None = None,
    ) -> None:
        self._target = target
        self._store = store
        self._partition = partition
        self._new_backlog = new_backlog
        self._feed = feed
        self._payloads = payloads or Payloads(0)
        self._early = early or EarlyRead(store, partition)
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
        return through_of(self._target, self._state.through, self._state.targets)

    @property
    def everywhere_below(self) -> int:
        """Returns the id below which each unit is applied or discarded in each target, as far as the log tells."""
        return min(self._state.units, default=self._state.next_id)

    def only(self, units: Iterable[UnitState]) -> Mapping[int, tuple[str, ...]]:
        """Returns this target's tables, for each of these units that has tables in another target too."""
        parts = ((unit.tid, self._state.targets.units.get(unit.tid, {})) for unit in units if self._target)
        return {tid: of[self._target].tables for tid, of in parts if len(of) > 1}

    def start(self, outcomes_from: Callable[[int], Iterable[Outcome]] = lambda _: ()) -> None:
        """Reads the log up to its present tail, and makes the backlog of its units.

        Args:
            outcomes_from: returns this job's outcomes from an id of the outcomes partition on, to be applied to the
                fold.
        """
        self._state = FollowedLog(self._early.take())
        self._backlog = self._new_backlog(self._state.units)
        for scheme_id, scheme in self._state.schemes.items():
            self._backlog.know(scheme_id, scheme)
        self._check_targets()
        since = {outcome.tid: outcome for outcome in outcomes_from(self.through + 1)}
        for unit in units_of(self._target, self._state.units, self._state.targets):
            latest = unit.settled(since[unit.tid]) if unit.tid in since else unit
            if not latest.resolved:
                self._backlog.add(unit.tid, latest.status, latest.cause)

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
            retried = self._retried(entry.meta) if isinstance(entry.meta, StatusMeta) else ()
            changing = self._changing(entry.meta) if self._target else None
            self._state.apply(tid, entry, batch.time_ms)
            if changing is not None:
                self._changed(*changing)
            if isinstance(entry.meta, SchemeMeta):
                self.schemes += 1
                self._backlog.know(entry.meta.scheme, self._state.schemes[entry.meta.scheme])
            elif isinstance(entry.meta, UnitMeta):
                if (unit := self._seen(tid)) is not None:
                    self._backlog.add(tid, unit.status, unit.cause)
            elif isinstance(entry.meta, FragmentMeta) and (late := self._state.failed(entry.meta.uow)) is not None:
                self._backlog.widen(late.tid, entry.touched)
            elif isinstance(entry.meta, StatusMeta):
                self._decided(entry.meta, retried)
            elif isinstance(entry.meta, TargetMeta) and entry.meta.target == self._target:
                self._forget_resolved(entry.meta.outcomes)
                if entry.meta.through is None:
                    self._retry(entry.meta.outcomes)
            elif isinstance(entry.meta, ControlMeta) and entry.meta.what == TARGETS:
                self._check_targets()

    def _seen(self, tid: int) -> UnitState | None:
        """Returns an unresolved unit as this target has it; None where this target has nothing of it to do."""
        unit = self._state.units.get(tid)
        return None if unit is None else seen_by(self._target, unit, self._state.targets)

    def _changing(self, meta: Meta) -> tuple[int, bool] | None:
        """Returns the failed unit of which an entry may change the tables, and whether this target has some of them."""
        late = self._state.failed(meta.uow) if isinstance(meta, FragmentMeta) else None
        tid = meta.unit if isinstance(meta, RefitMeta) else late.tid if late is not None else None
        return None if tid is None else (tid, self._seen(tid) is not None)

    def _changed(self, tid: int, before: bool) -> None:
        """Adds a failed unit of which this target has some table now; drops one of which it has none any more."""
        seen = self._seen(tid)
        if seen is not None and not before:
            self._backlog.add(tid, seen.status, seen.cause)
        elif seen is None and before:
            self._backlog.forget_resolved((tid,))

    def _check_targets(self) -> None:
        """Refuses a log of several targets where the job serves the only one; tells of one without this job's target.

        Raises:
            SettingsError: the log has several targets, and this job was started for one without a name.
        """
        known = self._state.targets.assignment.names
        names = ", ".join(known)
        if self._target and self._target not in known:
            event(
                _LOG, logging.WARNING, "log has no such target", target=self._target, has=names or "one, without a name"
            )
        if known and not self._target:
            raise SettingsError(
                f"the log's units belong to several targets ({names}), each of which has an apply job of its own; this"
                " settings file names one target alone, or has targetCommit=atomic: start the apply job with the"
                " settings file of the daemons, and --target NAME; to change that, start the daemons with it first"
            )

    def _retried(self, status: StatusMeta) -> Collection[int]:
        """Returns the units that a person's decision retries in this target: by the log they failed there before it.

        A unit that failed in this target after the person looked, and failed in another one before, is not among them:
        the log shows it as failed here only after the decision, so a discard of it must find that no job tries it.
        """
        if status.through is not None:
            return ()
        seen = [self._seen(one.tid) for one in status.outcomes if one.status is UnitStatus.IN_PROGRESS]
        return {unit.tid for unit in seen if unit is not None and (not self._target or unit.status is _FAILED)}

    def _retry(self, outcomes: Iterable[Outcome]) -> None:
        """Tries units again whose part in this target a person retries: the log has it as failed before."""
        for outcome in outcomes:
            if outcome.status is UnitStatus.IN_PROGRESS and outcome.tid in self._backlog.failed:
                self._backlog.retry(outcome.tid)

    def _forget_resolved(self, outcomes: Iterable[Outcome]) -> None:
        self._backlog.forget_resolved(one.tid for one in outcomes if one.status in RESOLVED)

    def _decided(self, status: StatusMeta, retried: Collection[int]) -> None:
        """Applies what a person or an apply job has decided; a unit that we resolved ourselves does not change."""
        # The folded log has forgotten all resolved units, so the backlog forgets them all before it looks one up.
        self._forget_resolved(status.outcomes)
        if status.through is not None:
            return  # outcomes of an apply job: what it found to be failed or blocked, we find out ourselves
        for outcome in status.outcomes:
            if outcome.tid in retried and outcome.tid in self._backlog.failed:
                self._backlog.retry(outcome.tid)
            elif outcome.status is UnitStatus.DISCARDING:
                self._backlog.withdraw(outcome.tid, outcome.cause)
