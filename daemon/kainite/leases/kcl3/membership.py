"""The membership of this worker in its fleet: the fleet's client version, and this worker's stance that follows from
it.

========================================  ========  =====================================================
the fleet                                 stance    reports worker metrics
========================================  ========  =====================================================
own or 2.x (no items), ``…_2X``           SHARE     no
``…_UPGRADE_FROM_2X``                     SHARE     yes, or the upgrade never completes
``…_3X_WITH_ROLLBACK``, ``…_3X``, leader  ASSIGNED  yes, or the leader assigns nothing here
the same, without a live leader           SHARE     yes, or no later leader would count this worker in
========================================  ========  =====================================================

A fleet changes its version while it runs, in both directions, so the version is read again and again.

Any stance is safe at any time: a lease changes hands by its counter alone, whoever wants it and why
(:mod:`kainite.leases.table.lease_table`). A worker in the wrong stance for a while costs leases that move twice. It
never makes two workers believe to hold one lease. So a fleet whose Java workers are all gone shares its leases among
the workers that are left. A leader that comes back finds leases that are held and renewed like any others.

Without an answer from DynamoDB the stance stays as it is. Nothing is created. The worker's entry is deleted on exit.
KCL leaves its entry behind, and until that is stale its leader assigns leases to a worker that has gone. A crash leaves
the entry behind here too.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, NoReturn

from kainite.base.clock import boot_seconds, epoch_ms
from kainite.base.errors import KainiteError, LeaseTableError
from kainite.base.logs import event
from kainite.base.outage import OutageNotes
from kainite.base.retry import AWS_BACKOFF, retry_async
from kainite.base.time_limit import time_limit
from kainite.leases.kcl3.coordinator_items import CoordinatorLayout
from kainite.leases.kcl3.coordinator_table import OWNER_INDEX, AccessDeniedError, CoordinatorTable, FleetState
from kainite.leases.kcl3.leader_liveness import LeaderHeartbeats, alive, observe_leader
from kainite.leases.stance import Stance
from kainite.settings import LeaseSettings

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

logger = logging.getLogger(__name__)

SHORTEST_POLL_S = 1.0
LONGEST_POLL_S = 10.0
LONGEST_WITHDRAWAL_S = 5.0


class Membership:
    """Reads the fleet's state again and again, decides this worker's stance, and reports to the fleet.

    Args:
        dynamodb: a client.
        settings: this worker's id, the tables, how often it reports.
    """

    def __init__(self, dynamodb: DynamoDBClient, settings: LeaseSettings) -> None:
        self._coordinator = CoordinatorTable(dynamodb, settings)
        self._settings = settings
        self._stance = Stance.ASSIGNED
        self._fleet: FleetState | None = None
        self._leader: LeaderHeartbeats | None = None
        self._report_due = boot_seconds()
        self._reported: CoordinatorLayout | None = None
        self._told: set[str] = set()

    def stance(self) -> Stance:
        """Returns the stance; before the first look ASSIGNED, which takes nothing from other workers."""
        return self._stance

    async def begin(self) -> None:
        """Takes the first look, so that the stance is known; to be awaited before leases are taken.

        A table that is away is waited for.

        Raises:
            LeaseTableError: the kind of the fleet could not be read, and waiting does not repair that.
        """
        await retry_async(self._look, AWS_BACKOFF, failed=OutageNotes("DynamoDB, for the kind of the fleet"))

    async def run(self) -> NoReturn:
        """Looks and reports until cancelled; then deletes this worker's entry."""
        poll = min(max(self._settings.failover, SHORTEST_POLL_S), LONGEST_POLL_S)
        try:
            while True:
                await self._look_and_report()
                await asyncio.sleep(pause(poll, self._report_due - boot_seconds() if self._reports() else None))
        finally:
            await self._withdraw()

    async def _look_and_report(self) -> None:
        try:
            await self._look()
            await self._report()
        except KainiteError as error:
            # The stance stays: that the fleet cannot be read for a moment does not mean that it has changed.
            self._tell_once("fleet not looked at, or not told", error=error)
        else:
            self._told.discard("fleet not looked at, or not told")

    async def _look(self) -> None:
        fleet = await asyncio.to_thread(self._read)
        now = boot_seconds()
        if fleet is None or not fleet.version.assigns:
            self._leader, stance = None, Stance.SHARE
        else:
            self._leader = observe_leader(self._leader, fleet.lock, fleet.leader_report, now, epoch_ms() / 1000)
            duration = fleet.lock.duration if fleet.lock else 0.0
            led = alive(self._leader, duration, 2 * self._settings.report_interval, now)
            stance = Stance.ASSIGNED if led else Stance.SHARE
        self._note(fleet, stance)

    def _read(self) -> FleetState | None:
        """Reads the coordinator items. Runs in a thread."""
        try:
            return self._coordinator.read()
        except AccessDeniedError as denied:
            if self._coordinator.has_owner_index():
                raise LeaseTableError(f"{denied}; index {OWNER_INDEX} shows that this is a KCL 3 fleet") from denied
            self._tell_once("coordinator table not readable: taken for a 2.x fleet", error=denied)
            return None

    def _note(self, fleet: FleetState | None, stance: Stance) -> None:
        version = fleet and fleet.version
        if (version, stance) != (self._fleet and self._fleet.version, self._stance):
            leader = fleet.lock.owner if fleet and fleet.lock else None
            event(logger, logging.INFO, "fleet", version=version, stance=stance.name, leader=leader)
        self._fleet, self._stance = fleet, stance

    def _reports(self) -> bool:
        """Returns whether the fleet wants this worker to report, and the settings allow it."""
        wanted = self._fleet is not None and self._fleet.version.reports
        if wanted and not self._settings.report_worker_metrics:
            self._tell_once("worker metrics are off (disableWorkerMetrics): the fleet's leader assigns nothing here")
        return wanted and self._settings.report_worker_metrics

    async def _report(self) -> None:
        if self._fleet is None or not self._reports() or boot_seconds() < self._report_due:
            return
        self._reported = self._fleet.layout
        await asyncio.to_thread(self._coordinator.report, self._fleet.layout, epoch_ms() / 1000)
        self._report_due = boot_seconds() + self._settings.report_interval

    async def _withdraw(self) -> None:
        if self._reported is None:
            return
        try:
            async with time_limit(LONGEST_WITHDRAWAL_S):
                await asyncio.to_thread(self._coordinator.withdraw, self._reported)
        except (KainiteError, TimeoutError) as error:
            event(logger, logging.WARNING, "worker entry not deleted: it goes stale by itself", error=repr(error))

    def _tell_once(self, name: str, **fields: object) -> None:
        """Logs a warning about a lasting condition once."""
        if name not in self._told:
            self._told.add(name)
            event(logger, logging.WARNING, name, **fields)


def pause(poll: float, report_in: float | None) -> float:
    """Returns the seconds until the next look.

    Args:
        poll: seconds between two looks where nothing else is due.
        report_in: seconds until this worker's next report; None when it makes none.
    """
    return poll if report_in is None else min(poll, max(report_in, SHORTEST_POLL_S))
