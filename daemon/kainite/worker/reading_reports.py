"""Tells the log's owner how far this daemon's shards are read: a unit whose parts are unread does not time out or end.

A daemon that the lease table does not answer tells nothing: shards may have ended since, and others begun. Its word
would take the place of what daemons with a young scan tell.
"""

from __future__ import annotations

import asyncio
from typing import Final

from kainite.base.clock import boot_seconds
from kainite.leases.keeper import LeaseKeeper
from kainite.log.client import LogClient, ReadingReport
from kainite.log.owner.waiting import NEAR_S
from kainite.worker.consumers import Consumers

EVERY_S: Final = 1.0
"""The seconds between two reports."""


async def report_reading(keeper: LeaseKeeper, consumers: Consumers, log: LogClient) -> None:
    """Reports until cancelled, while the lease table has told lately which shards there are."""
    while True:
        shards, since_round = keeper.to_be_read, keeper.seconds_since_round
        if shards is not None and since_round is not None and since_round <= NEAR_S:
            now = boot_seconds()
            ages = {shard: now - until for shard, until in consumers.done_until().items()}
            reached = consumers.reached()
            tips = {shard: now - far.at_tip for shard, far in reached.items() if far.at_tip is not None}
            arrived = {shard: far.arrived_ms for shard, far in reached.items() if far.arrived_ms is not None}
            log.report(ReadingReport(shards, ages, tips, arrived))
        await asyncio.sleep(EVERY_S)
