"""Renews the leases that are held, a third of the failover time apart, and ends hand-overs that take too long.

KCL's ``DynamoDBLeaseRenewer``, with its interval. A lease that this host has not managed to renew for the failover time
(the table was out of reach, the process was stopped) is lost without asking: another worker may have
it by now, and a renewal that came through would only hide that.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from kainite.errors import KainiteError, LeaseTableUnavailableError
from kainite.leases.held import HeldLease, Holdings, Using
from kainite.leases.lease import Lease
from kainite.leases.table import LeaseTable
from kainite.logs import event
from kainite.metrics.meter import Meter
from kainite.metrics.metric import CURRENT_LEASES

logger = logging.getLogger(__name__)

MARGIN = 0.025
"""KCL's epsilon: seconds by which renewals come early and takers come late."""


def renewal_interval(failover: float) -> float:
    """Seconds between renewals: KCL's 3308 ms for a failover time of ten seconds."""
    return max(failover / 3 - MARGIN, failover / 6)


async def write(
    holdings: Holdings, held: HeldLease, call: Callable[[bool], Lease | None], clock: Callable[[], float]
) -> Lease | None:
    """Make one write to a held lease; its lock is to be held. None when the lease is lost.

    Args:
        holdings: what is told the outcome.
        held: the lease.
        call: the write, blocking; its argument says whether an earlier write's answer was lost.
        clock: as the holdings'.
    """
    began = clock()
    # Doubtful until answered: this may raise, or be cancelled while the thread goes on.
    doubtful, held.doubtful = held.doubtful, True
    stored = await asyncio.to_thread(call, doubtful)
    held.doubtful = False
    holdings.written(held, stored, began)
    return stored


class Renewer:
    """See the module."""

    def __init__(
        self, table: LeaseTable, holdings: Holdings, using: Using, clock: Callable[[], float], meter: Meter
    ) -> None:
        self._table = table
        self._holdings = holdings
        self._using = using
        self._clock = clock
        self._meter = meter

    async def run(self) -> None:
        """Renew until cancelled.

        Raises:
            LeaseTableError: something that waiting does not mend.
        """
        while True:
            await asyncio.sleep(renewal_interval(self._using.leases.failover))
            await asyncio.gather(*(self._look_after(held) for held in self._holdings.all))
            self._meter.observe(CURRENT_LEASES, len(self._holdings.all))

    async def hand_over(self, held: HeldLease) -> bool:
        """End a hand-over: the next worker may take the lease at once. False when it was lost before.

        Raises:
            LeaseTableError: it could not be told; the leader or the failover time ends it.
        """
        async with held.lock:
            following = held.lease.owner
            if following is None or held.lease.checkpoint_owner is None or not self._holdings.drop(held):
                return False
            try:
                assigned = await asyncio.to_thread(self._table.assign, held.lease, following)
            finally:
                self._holdings.rest(held.shard_id)
        event(
            logger, logging.INFO, "lease handed over",
            shard=held.shard_id, to=following, checkpoint=held.checkpoint, still_ours=assigned is not None,
        )  # fmt: skip
        return assigned is not None

    async def _look_after(self, held: HeldLease) -> None:
        if held.started:
            held.measure(self._clock())
        await self._renew(held)
        if held not in self._holdings or held.hand_over_by is None:
            return
        try:
            if not held.started:
                await self.hand_over(held)
            elif self._clock() >= held.hand_over_by:
                # Told as lost first: the consumer must not write on while the next worker begins.
                self._holdings.lose(held)
        except LeaseTableUnavailableError as error:
            event(logger, logging.WARNING, "lease not handed over", shard=held.shard_id, error=error)

    async def _renew(self, held: HeldLease) -> None:
        failover = self._using.leases.failover
        async with held.lock:
            age = self._holdings.age(held)
            # A checkpoint has renewed it, or it has gone while this waited for the lock.
            if age < renewal_interval(failover) / 2 or held not in self._holdings:
                return
            if age >= failover:
                self._holdings.lose(held)
                return

            def renew(doubtful: bool) -> Lease | None:
                return self._table.renew(held.lease, doubtful=doubtful, throughput=held.throughput)

            try:
                async with asyncio.timeout(failover - age):
                    await write(self._holdings, held, renew, self._clock)
            except (LeaseTableUnavailableError, TimeoutError) as error:
                cause = error if isinstance(error, KainiteError) else "no answer within the failover time"
                event(logger, logging.WARNING, "lease not renewed", shard=held.shard_id, error=cause)
