"""The apply job's own log partition: outcomes of units become durable in it before anybody is told of them.

The main log has one owner, the daemon, so the apply job cannot append to it. The apply job appends outcomes
to a log partition of its own, ``<partition>:outcomes``, which is mounted, fenced and appended to by the same
code (:mod:`kainite.owner.append`). The owner copies the outcomes into the main log and notes how far
(``StatusMeta.through``); the apply job truncates the entries up to this id.

Entries with commits also say how far the target had come (:mod:`kainite_spark.targets.mark`). The latest such entry
stays, also when the main log has copied it: the next apply job compares the target with it.

What a crash leaves behind:

* before the put   the target's acknowledgements alone; the units are tried again and found applied;
* after the put    outcomes that the owner copies at its next look, and that the next apply
                   job reads back (:meth:`Outcomes.read_from`);
* in a truncation  slots below the low-water mark that HEAD names already; a later truncation deletes them.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Final, Self

from kainite.base.errors import LogFencedError, LogHeldError, LogUnavailableError
from kainite.base.logs import event
from kainite.log.contract import LogStore
from kainite.log.format.entry import Entry, EntryKind, Outcome, StatusMeta, UnitStatus
from kainite.log.state.outcomes import outcomes_of
from kainite.owner.append import PartitionWriter, take_steps
from kainite.owner.mount import LeaseWatch, Mount, mount
from kainite_spark.targets.mark import TargetMark

_LOG = logging.getLogger(__name__)

LOOK_S: Final = 0.25
"""The most seconds between two looks whether another apply job's lease has run out."""

SHORTEST_S: Final = 0.01
"""The least seconds between two looks: another one that waits may just have been faster."""


class Outcomes:
    """A mounted outcomes partition; a thread writes heartbeats while the context is entered.

    Args:
        store: the partition's store.
        mounted: the hold on the partition.
        stop: ends the wait for a store that does not answer.
    """

    def __init__(self, store: LogStore, mounted: Mount, stop: threading.Event) -> None:
        self._store = store
        self._mount = mounted
        self._writer = PartitionWriter(store, mounted, mounted.first_id, "outcomes", _LOG)
        self._truncated = mounted.head.low_water_mark
        self._marked: int | None = None  # the id of the latest entry with a mark
        self._stop = stop
        self._closing = threading.Event()
        self._lost: LogFencedError | None = None
        self._heartbeats = threading.Thread(target=self._beat, name="outcomes-heartbeat", daemon=True)

    @property
    def generation(self) -> int:
        """Returns the generation of this apply job; it also fences the target."""
        return self._mount.generation

    @property
    def last_id(self) -> int:
        """Returns the id of the last durable entry; -1 if there is none."""
        return self._writer.next_id - 1

    def __enter__(self) -> Self:
        self._heartbeats.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Releases the partition, unless another apply job has it."""
        self._closing.set()
        self._heartbeats.join()
        if self._lost is None and not isinstance(error, LogFencedError):
            try:
                self._mount.release()
            except (LogFencedError, LogUnavailableError) as failure:
                event(_LOG, logging.WARNING, "outcomes partition not released", error=failure)

    def check(self) -> None:
        """Raises LogFencedError once a heartbeat found that another apply job has mounted the partition."""
        if self._lost is not None:
            raise self._lost

    def read_from(self, first_id: int) -> tuple[Outcome, ...]:
        """Returns all outcomes in entries from ``first_id`` on, in order; nobody else can append any."""
        batches = self._store.read_batches(self._mount.partition, first_id, data=False, strong=True)
        return outcomes_of(batches, first_id)

    def read_mark(self) -> TargetMark | None:
        """Returns how far the target had come when units were committed last; None if no unit was."""
        mark, self._marked = latest_mark(self._store, self._mount.partition, self._truncated)
        return mark

    def append(self, outcomes: Iterable[Outcome], mark: TargetMark) -> None:
        """Makes outcomes durable; nothing happens for an empty iterable.

        Args:
            outcomes: the outcomes.
            mark: how far the target has come.

        Raises:
            LogFencedError: another apply job has mounted the partition.
            LogUnavailableError: ``stop`` was set while the store did not answer.
        """
        changes = tuple(outcomes)
        commits = bool(_committed(changes))
        if changes:
            meta = StatusMeta(changes, mark=(mark.generation, mark.micro_batch) if commits else None)
            take_steps(self._writer.append_steps((Entry(EntryKind.STATUS, meta),)), self._stop)
            if commits:
                self._marked = self.last_id

    def truncate(self, below: int) -> None:
        """Truncates the entries below ``below``, which the main log has copied, but not the latest with a mark."""
        if self._marked is not None:
            below = min(below, self._marked)
        if below > self._truncated:
            self._mount.renew(self._writer.next_id - 1, below)
            self._store.truncate(self._mount.partition, below)
            self._truncated = below

    def _beat(self) -> None:
        interval = self._mount.head.lease_ms / 1000 / 4
        try:
            take_steps(self._writer.heartbeat_steps(interval), self._closing)
        except LogFencedError as error:
            self._lost = error


def latest_mark(store: LogStore, partition: str, first_id: int) -> tuple[TargetMark | None, int | None]:
    """Returns the latest mark in an outcomes partition, and the id of its entry; None and None if there is none.

    Args:
        store, partition: the outcomes partition.
        first_id: the first id that is not truncated.
    """
    mark, marked = None, None
    for batch in store.read_batches(partition, first_id, data=False, strong=True):
        for tid, entry in batch.entries_from(first_id):
            if isinstance(entry.meta, StatusMeta) and entry.meta.mark is not None:
                mark, marked = TargetMark(*entry.meta.mark, tids=_committed(entry.meta.outcomes)), tid
    return mark, marked


def _committed(outcomes: Iterable[Outcome]) -> tuple[int, ...]:
    return tuple(outcome.tid for outcome in outcomes if outcome.status is UnitStatus.COMMITTED)


def mount_outcomes(
    store: LogStore,
    partition: str,
    owner: str,
    lease: float,
    stop: threading.Event,
    watch: LeaseWatch | None = None,
    late: Callable[[], None] = lambda: None,
) -> Outcomes | None:
    """Mounts an outcomes partition; waits while another apply job's lease runs.

    Args:
        store: the partition's store.
        partition: the partition's name.
        owner: this apply job's name, which no other process has.
        lease: seconds without a heartbeat after which another apply job may mount.
        stop: ends the wait.
        watch: has observed another apply job's lease before (:func:`begin_to_watch`).
        late: called at each look while another apply job's heartbeats fail to come: makes ready for the mount.

    Returns:
        The mounted partition; None when ``stop`` was set before.

    Raises:
        LogFencedError: another apply job mounted the partition at the same time.
    """
    watch = watch or LeaseWatch()
    told = False
    while not stop.is_set():
        try:
            return Outcomes(store, mount(store, partition, owner, lease, watch), stop)
        except LogHeldError as error:
            if not told:
                event(_LOG, logging.WARNING, "waiting for another apply job to end", error=error)
            told = True
            if watch.is_late:
                late()
            # A lease counts from the look that has first seen the latest heartbeat, so looks are close together; and it
            # may end before the next one.
            stop.wait(max(min(lease / 10, LOOK_S, watch.left), SHORTEST_S))
    return None


def begin_to_watch(store: LogStore, partition: str) -> LeaseWatch:
    """Returns a watch that has seen the partition's lease, so that the time until the mount counts too."""
    watch = LeaseWatch()
    head = store.read_head(partition)
    if head is not None:
        watch.remaining(head)
    return watch
