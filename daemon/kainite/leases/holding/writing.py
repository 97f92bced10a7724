"""Writes to held leases one after the other, and only as long as they are this worker's by its own clock."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from kainite.base.errors import LeaseTableUnavailableError
from kainite.base.time_limit import time_limit
from kainite.leases.holding.held_leases import HeldLease, HeldLeases
from kainite.leases.table.lease import Lease


@asynccontextmanager
async def writing(held_leases: HeldLeases, held: HeldLease) -> AsyncIterator[None]:
    """Takes a held lease's lock, for no longer than the lease is this worker's by this host's clock.

    Raises:
        LeaseTableUnavailableError: that time is over. A request that was sent may still reach the table.
    """
    try:
        async with time_limit(held_leases.seconds_left(held)), held.lock:
            yield
    except TimeoutError:
        raise LeaseTableUnavailableError(
            f"the lease table has not answered about shard {held.shard_id} within the failover time"
        ) from None


async def write(
    held_leases: HeldLeases, held: HeldLease, call: Callable[[bool], Lease | None], clock: Callable[[], float]
) -> Lease | None:
    """Makes one write to a held lease, whose lock the caller has; returns None when the lease is lost.

    Args:
        held_leases: records the outcome.
        held: the lease.
        call: the write, blocking; its argument says whether an earlier write's answer was lost.
        clock: the same as that of ``held_leases``.
    """
    began = clock()
    # Doubtful until answered: the call may raise, or be cancelled while its thread goes on.
    doubtful, held.doubtful = held.doubtful, True
    stored = await asyncio.to_thread(call, doubtful)
    held.doubtful = False
    held_leases.record_write(held, stored, began)
    return stored
