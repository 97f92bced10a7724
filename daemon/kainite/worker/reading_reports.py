"""Tells the log's owner how far this daemon's shards are read, so that units whose parts are unread do not time out."""

from __future__ import annotations

import asyncio
from typing import Final

from kainite.base.clock import boot_seconds
from kainite.leases.keeper import LeaseKeeper
from kainite.log.client import LogClient, ReadingReport
from kainite.worker.consumers import Consumers

EVERY_S: Final = 1.0
"""The seconds between two reports."""


async def report_reading(keeper: LeaseKeeper, consumers: Consumers, log: LogClient) -> None:
    """Reports until cancelled; begins when the lease table has told which shards there are."""
    while True:
        shards = keeper.to_be_read
        if shards is not None:
            now = boot_seconds()
            ages = {shard: now - until for shard, until in consumers.done_until().items()}
            log.report(ReadingReport(shards, ages))
        await asyncio.sleep(EVERY_S)
