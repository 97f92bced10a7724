"""The taker: in rounds, it scans the table, takes leases, and starts the shards that may be read.

A round is made each ``leaseAssignmentIntervalMillis`` (twice the failover time, as KCL's taker), and at once when

* a lease was lost or released,
* another worker's lease may have expired,
* shard sync or cleanup is due (:mod:`~kainite.leases.shard_sync.schedule`),
* a held shard waits for its parents (each ``parentShardPollIntervalMillis``),
* a lease is being moved here (:mod:`.moves_here`).

No lease is taken while another worker collects into another log (:mod:`kainite.leases.other_log`).

Stealing keeps to the interval. Otherwise two workers that start together would take more from a third than they need.

A shard is reported as gained only when every parent that has a lease stands at SHARD_END, and was released if it was
read here. A lease that itself stands at SHARD_END is held, where the leader has assigned it (KCL 3), and never
reported.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from random import Random

from kainite.base.checkpoint import SHARD_END
from kainite.base.errors import KainiteError, LeaseTableUnavailableError
from kainite.base.liveness import Sighting
from kainite.base.logs import event
from kainite.base.outage import OutageNotes
from kainite.base.retry import AWS_BACKOFF
from kainite.base.time_limit import time_limit
from kainite.base.waiting import wait_until_set
from kainite.leases.foreign_streams import ForeignStream, foreign_streams
from kainite.leases.holding.held_leases import CurrentSettings, HeldLeases
from kainite.leases.holding.renewer import MARGIN
from kainite.leases.lineage import may_start
from kainite.leases.other_log import OtherLog, other_log
from kainite.leases.shard_sync.schedule import ShardSyncSchedule
from kainite.leases.stance import Stance
from kainite.leases.streams import all_covered, of_streams, refuse_other_mode, to_be_collected
from kainite.leases.table.lease import Lease
from kainite.leases.table.lease_table import LeaseTable
from kainite.leases.taking.choice import (
    Choice,
    TakerCounts,
    TakingLimits,
    assigned,
    choose,
    live_owners,
    observe_leases,
)
from kainite.leases.taking.kcl2_leader import elect_leader
from kainite.leases.taking.moves_here import MovesHere
from kainite.observe.meter import Meter
from kainite.observe.metric import (
    EXPIRED_LEASES,
    LEASE_SPILLOVER,
    LEASES_TO_TAKE,
    NEEDED_LEASES,
    NUM_WORKERS,
    TAKEN_LEASES,
    TOTAL_LEASES,
    UNTAKEN_LEASES,
    VERY_OLD_LEASES,
)

logger = logging.getLogger(__name__)

SHORTEST_REST = 0.05
"""Seconds between two rounds, at least."""


class LeaseTaker:
    """Takes leases in rounds until it is cancelled.

    Args:
        table: the lease table.
        shard_sync: what is due for the table as a whole, done in each round.
        held_leases: where taken leases go.
        settings: the settings in use.
        stance: asked in each round.
        clock: the same as that of ``held_leases``.
        meter: receives the metrics.
        rng: chooses among equal leases.
    """

    def __init__(
        self,
        table: LeaseTable,
        shard_sync: ShardSyncSchedule,
        held_leases: HeldLeases,
        settings: CurrentSettings,
        *,
        stance: Callable[[], Stance],
        clock: Callable[[], float],
        meter: Meter,
        rng: Random,
    ) -> None:
        self._table = table
        self._shard_sync = shard_sync
        self._held_leases = held_leases
        self._settings = settings
        self._stance = stance
        self._clock = clock
        self._meter = meter
        self._rng = rng
        self._moves = MovesHere(table, held_leases, settings, clock)
        self._seen: dict[str, Sighting[int]] = {}
        self._steal_due = clock()
        self._last_round_at: float | None = None
        self._stopped = False
        self.to_be_read: frozenset[str] | None = None
        """The shards whose leases were not at SHARD_END at the last scan, whoever held them; none of plain streams.

        None before the first scan, since a stream was added, and while these leases leave hash keys of a stream
        uncovered: leases are still to be created.
        """
        self._behind_parents: frozenset[str] = frozenset()
        self.foreign: Mapping[str, ForeignStream] = {}
        """The streams that other workers read and the settings do not name, as of the last scan, by their ids."""
        self.other_log: OtherLog | None = None
        """A worker that collects into another log, as of the last scan: while there is one, no lease is taken."""

    @property
    def seconds_since_round(self) -> float | None:
        """Returns the seconds since the table last answered a whole round; None before the first."""
        return None if self._last_round_at is None else self._clock() - self._last_round_at

    @property
    def behind_parents(self) -> frozenset[str]:
        """Returns those of :attr:`to_be_read` that are not read yet, because a parent is to be read first."""
        return self._behind_parents

    def stop(self) -> None:
        """Takes no lease from now on; rounds go on, for shard sync and for shards that wait for their parents."""
        self._stopped = True

    async def run(self) -> None:
        """Makes rounds until cancelled.

        Raises:
            KainiteError: an error that waiting does not repair.
        """
        failures, succeeded, notes = 0, False, OutageNotes("the lease table")
        while True:
            self._held_leases.wake.clear()
            try:
                wait = await self._round(create=not succeeded)
                failures, succeeded, self._last_round_at = 0, True, self._clock()
            except KainiteError as error:
                failures += 1
                if not error.retryable:
                    raise
                wait = AWS_BACKOFF.after(failures) if succeeded else self._settings.leases.init_backoff
                notes(error, failures, wait)
            await wait_until_set(self._held_leases.wake, wait)

    async def _round(self, *, create: bool) -> float:
        """Syncs shards if that is due, takes leases, starts shards; returns the seconds until the next round."""
        if create:
            await asyncio.to_thread(self._create)
        leases = await self._scan()
        live = live_owners(leases, self._seen, self._settings.leases.failover, self._clock())
        if await self._shard_sync.run_due(leases, elect_leader(live)):
            leases = await self._scan()
        choice = self._choose(of_streams(leases, self._settings.streams))
        # All takes are waited for: a take that is answered after the next scan would undo what was taken again by then.
        taken = await asyncio.gather(*(self._take(lease) for lease in choice.take), return_exceptions=True)
        if choice.stealing:
            self._steal_due = self._clock() + self._interval
        self._report(choice, taken.count(True))
        self._give_up_former()
        self._start_ready(leases)
        await self._moves.answer(leases, self._refusal())
        for failure in taken:
            if isinstance(failure, BaseException):
                raise failure
        return self._rest(choice.wait)

    def _create(self) -> None:
        settings = self._settings.leases
        self._table.create(
            deletion_protection=settings.deletion_protection, point_in_time_recovery=settings.point_in_time_recovery
        )

    async def _scan(self) -> tuple[Lease, ...]:
        leases = await asyncio.to_thread(self._table.scan)
        self._seen = observe_leases(self._seen, leases, self._clock())
        streams, settings = self._settings.streams, self._settings.leases
        self.foreign = foreign_streams(
            self.foreign, leases, self._seen, streams, settings.worker_id, settings.failover, self._clock()
        )
        self._look_for_other_log(leases)
        refuse_other_mode(self._table.name, leases, streams)
        counted, collected = to_be_collected(leases, streams)
        active = [lease for lease in counted if lease.checkpoint != SHARD_END]
        covered = all_covered(counted, collected)
        self.to_be_read = frozenset(lease.key for lease in active) if covered else None
        keys = {lease.key for lease in active}
        self._behind_parents = frozenset(lease.key for lease in active if not lease.parents.isdisjoint(keys))
        return leases

    def _look_for_other_log(self, leases: Sequence[Lease]) -> None:
        settings, own, before = self._settings.leases, self._table.log, self.other_log
        found = other_log(leases, self._seen, own, settings.worker_id, settings.failover, self._clock())
        if found is not None and found != before:
            event(logger, logging.ERROR, "no lease taken: another worker collects into another log",
                  worker=found.worker, their_log=found.log, own_log=own)  # fmt: skip
        elif found is None and before is not None:
            event(logger, logging.INFO, "leases taken again: no worker collects into another log any more")
        self.other_log = found

    def _choose(self, leases: Sequence[Lease]) -> Choice:
        settings, now = self._settings.leases, self._clock()
        if self.other_log is not None:
            return Choice(wait=settings.failover)  # the other worker may have stopped by then
        if self._stopped or self._stance() is Stance.ABSTAIN:
            return Choice()
        # A lease that stands still is free: a leader (KCL 3) has assigned it here again, or the namesake has gone.
        namesakes = self._held_leases.namesakes(leases)
        contested = {key for key in namesakes if not self._seen[key].expired(now, settings.failover)}
        if self._stance() is Stance.ASSIGNED:
            return assigned(leases, self._held_leases.keys, settings.worker_id, contested)
        steal = settings.steal_at_once if now >= self._steal_due else 0
        return choose(
            leases,
            self._seen,
            self._held_leases.keys,
            worker=settings.worker_id,
            limits=TakingLimits(settings.failover, settings.max_leases, steal, settings.priority),
            now=now,
            rng=self._rng,
            avoid=self._held_leases.pauses().keys(),
            contested=contested,
        )

    def _refusal(self) -> str | None:
        """Returns why this worker takes no lease that a person moves here; None when it does."""
        if self._stopped:
            return "it is stopping"
        if self.other_log is not None:
            return f"it collects units of work into another log than worker {self.other_log.worker}"
        stance = self._stance()
        if stance is Stance.ASSIGNED:
            return "the leader of this KCL 3 fleet assigns the leases"
        return "it does not reach the log's owner" if stance is Stance.ABSTAIN else None

    async def _take(self, lease: Lease) -> bool:
        began = self._clock()
        try:
            async with time_limit(self._settings.leases.failover):
                taken = await asyncio.to_thread(self._table.take, lease, self._settings.leases.worker_id)
        except TimeoutError:
            raise LeaseTableUnavailableError(
                f"the take of {lease.key} was not answered within the failover time"
            ) from None
        if taken is not None:
            self._held_leases.add(taken, began)
            event(logger, logging.INFO, "lease taken", shard=lease.key, checkpoint=taken.checkpoint, before=lease.owner)
        return taken is not None

    def _give_up_former(self) -> None:
        """Gives up the leases of streams that the settings do not name any more."""
        for held in self._held_leases.all:
            if held.lease.stream not in self._settings.streams:
                self._held_leases.give_up(held)

    def _start_ready(self, leases: Sequence[Lease]) -> None:
        checkpoints = {lease.key: lease.checkpoint for lease in leases}
        # A parent that stands at SHARD_END may still be held: its record processor is ending here.
        at_work = {held.shard_id for held in self._held_leases.all if held.started}
        for held in self._held_leases.all:
            waiting = not held.started and held.hand_over_by is None and held.checkpoint != SHARD_END
            if waiting and at_work.isdisjoint(held.lease.parents) and may_start(held.lease.parents, checkpoints):
                self._held_leases.start(held)

    def _report(self, choice: Choice, taken: int) -> None:
        counts: TakerCounts = choice.counts
        for metric, value in (
            (TOTAL_LEASES, counts.leases),
            (NUM_WORKERS, counts.workers),
            (NEEDED_LEASES, counts.needed),
            (LEASES_TO_TAKE, len(choice.take)),
            (TAKEN_LEASES, taken),
            (UNTAKEN_LEASES, len(choice.take) - taken),
            (EXPIRED_LEASES, counts.expired),
            (VERY_OLD_LEASES, counts.very_old),
            (LEASE_SPILLOVER, counts.spillover),
        ):
            self._meter.observe(metric, value)

    @property
    def _interval(self) -> float:
        return self._settings.leases.assignment_interval or 2 * (self._settings.leases.failover + MARGIN)

    def _rest(self, until_expiry: float | None) -> float:
        # KCL 3's discovery runs twice as often as the leader's assignment.
        waits = [self._interval if self._stance() is Stance.SHARE else self._interval / 2 - MARGIN]
        waits += [self._shard_sync.due - self._clock(), *self._held_leases.pauses().values()]
        waits += [wait for wait in (until_expiry, self._moves.rest) if wait is not None]
        if any(not held.started and held.checkpoint != SHARD_END for held in self._held_leases.all):
            waits.append(self._settings.stream.parent_poll)
        return max(min(waits), SHORTEST_REST)
