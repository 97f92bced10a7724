"""Renews the leases that are held, a third of the failover time apart, and ends hand-overs that take too long.

After each renewal it looks what people ask about the lease (:mod:`.lease_requests`).

The interval is that of KCL's ``DynamoDBLeaseRenewer``. A lease that this host has not managed to renew for the failover
time (the table was out of reach, the process was stopped) is lost without asking the table. Another worker may have
it by now, and a renewal that got through would only hide that.

Leases are renewed concurrently. So a call that is not answered (boto3 may wait for minutes) costs its own lease alone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from kainite.base.errors import LeaseTableUnavailableError
from kainite.base.logs import event
from kainite.leases.holding.held_leases import CurrentSettings, HeldLease, HeldLeases
from kainite.leases.holding.lease_requests import LeaseRequests
from kainite.leases.holding.writing import write, writing
from kainite.leases.table.lease import Lease
from kainite.leases.table.lease_table import LeaseTable
from kainite.observe.meter import Meter
from kainite.observe.metric import CURRENT_LEASES

logger = logging.getLogger(__name__)

MARGIN = 0.025
"""KCL's epsilon: seconds by which renewals come early and takers come late."""

SHORTEST_PAUSE = 0.05


def renewal_interval(failover: float) -> float:
    """Returns the seconds between renewals: KCL's 3308 ms for a failover time of ten seconds."""
    return max(failover / 3 - MARGIN, failover / 6)


class Renewer:
    """Renews all held leases until it is cancelled.

    Attributes:
        requests: carries out what people ask about them.
    """

    def __init__(
        self,
        table: LeaseTable,
        held_leases: HeldLeases,
        settings: CurrentSettings,
        clock: Callable[[], float],
        meter: Meter,
    ) -> None:
        self._table = table
        self._held_leases = held_leases
        self._settings = settings
        self._clock = clock
        self._meter = meter
        self.requests = LeaseRequests(table, held_leases, settings, clock)

    async def run(self) -> None:
        """Renews until cancelled.

        Raises:
            LeaseTableError: an error that waiting does not repair.
        """
        under_way: dict[HeldLease, asyncio.Task[None]] = {}
        try:
            while True:
                await asyncio.sleep(self._pause())
                for held in [held for held, task in under_way.items() if task.done()]:
                    under_way.pop(held).result()
                for held in self._held_leases.all:
                    if held not in under_way:
                        under_way[held] = asyncio.create_task(self._look_after(held))
                self._meter.observe(CURRENT_LEASES, len(self._held_leases.all))
        finally:
            for task in under_way.values():
                task.cancel()
            await asyncio.gather(*under_way.values(), return_exceptions=True)

    def _pause(self) -> float:
        """Returns the seconds until the next renewals, or until a lease that could not be renewed expires."""
        left = (self._held_leases.seconds_left(held) for held in self._held_leases.all)
        return max(SHORTEST_PAUSE, min([renewal_interval(self._settings.leases.failover), *left]))

    async def hand_over(self, held: HeldLease) -> bool:
        """Ends a hand-over, so that the next worker may take the lease at once; returns False when it was lost before.

        Raises:
            LeaseTableError: the table was not written; the leader or the failover time ends the hand-over.
        """
        async with writing(self._held_leases, held):
            if held.doubtful:  # the end of a hand-over is written only onto the counter that this worker knows
                await self._write_renewal(held)
            following = held.lease.owner
            if following is None or held.lease.checkpoint_owner is None or not self._held_leases.begin_release(held):
                return False
            try:
                assigned = await asyncio.to_thread(self._table.assign, held.lease, following)
            finally:
                self._held_leases.end_release(held.shard_id)
        event(
            logger, logging.INFO, "lease handed over",
            shard=held.shard_id, to=following, checkpoint=held.checkpoint, still_ours=assigned is not None,
        )  # fmt: skip
        return assigned is not None

    async def _look_after(self, held: HeldLease) -> None:
        if held.started:
            held.measure(self._clock())
        await self._renew(held)
        if held not in self._held_leases:
            return
        try:
            await self.requests.look(held)
        except LeaseTableUnavailableError as error:
            event(logger, logging.WARNING, "request about a lease not looked after", shard=held.shard_id, error=error)
        if held in self._held_leases and held.hand_over_by is not None:
            await self._end_hand_over(held)

    async def _end_hand_over(self, held: HeldLease) -> None:
        assert held.hand_over_by is not None
        try:
            if not held.started:
                await self.hand_over(held)
            elif self._clock() >= held.hand_over_by:
                # Reported as lost first: the consumer must not go on writing while the next worker begins.
                self._held_leases.lose(held)
        except LeaseTableUnavailableError as error:
            event(logger, logging.WARNING, "lease not handed over", shard=held.shard_id, error=error)

    async def _write_renewal(self, held: HeldLease) -> None:
        def renew(doubtful: bool) -> Lease | None:
            return self._table.renew(held.lease, doubtful=doubtful, throughput=held.throughput)

        await write(self._held_leases, held, renew, self._clock)

    async def _renew(self, held: HeldLease) -> None:
        try:
            async with writing(self._held_leases, held):
                age, failover = self._held_leases.age(held), self._settings.leases.failover
                # While this waited for the lock, a checkpoint has renewed the lease, or it was lost or expired.
                if held in self._held_leases and renewal_interval(failover) / 2 <= age < failover:
                    await self._write_renewal(held)
        except LeaseTableUnavailableError as error:
            event(logger, logging.WARNING, "lease not renewed", shard=held.shard_id, error=error)
        if self._held_leases.seconds_left(held) <= 0:
            self._held_leases.lose(held)
