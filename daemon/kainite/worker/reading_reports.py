"""Tells the log's owner how far this daemon's shards are read: a unit whose parts are unread does not time out or end.

The daemon reports once a second, and when the owner asks because a unit waits for nothing else. Then readers also read
again that have had records last (:mod:`kainite.kinesis.read.polling`).

While the lease table does not answer, the daemon reports nothing: shards may have ended since its last scan, and others
begun. Its report would replace the reports of daemons whose scan is younger. Nor does it report while a stream that its
settings name is not open, since it is misspelled, refused or not asked yet: a part of a unit may stand there. Streams
that carry no units of work are left out of all that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from kainite.base.clock import boot_seconds
from kainite.leases.keeper import LeaseKeeper
from kainite.log.client import ReadingReport
from kainite.log.collecting.waiting import NEAR_S
from kainite.worker.consumers import Consumers

if TYPE_CHECKING:
    from kainite.peers.sharing.shared_log import SharedLog

EVERY_S: Final = 1.0
"""The seconds between two reports that nobody asks for."""


async def report_reading(
    keeper: LeaseKeeper, consumers: Consumers, log: SharedLog, all_open: Callable[[], bool]
) -> None:
    """Reports until it is cancelled; leaves reports out while it is not known which shards there are.

    Args:
        keeper, consumers, log: what is reported, and to whom.
        all_open: tells whether each stream of the settings that carries units of work is open.
    """
    log.reading = partial(_reading, keeper, consumers, all_open)
    log.latest_reading.read_again = consumers.read_again
    try:
        while True:
            if (report := log.reading()) is not None:
                log.report(report)
            await asyncio.sleep(EVERY_S)
    finally:
        log.reading = log.latest_reading.read_again = None


def _reading(keeper: LeaseKeeper, consumers: Consumers, all_open: Callable[[], bool]) -> ReadingReport | None:
    """Returns how far this daemon's shards are read; None while it is not known which shards there are."""
    shards, since_round = keeper.to_be_read, keeper.seconds_since_round
    if shards is None or since_round is None or since_round > NEAR_S or not all_open():
        return None
    now = boot_seconds()
    readings = consumers.readings().items()
    reached = {shard: reading.reached for shard, reading in readings if keeper.collects(shard)}
    ages = {shard: now - far.until for shard, far in reached.items() if far.until is not None}
    tips = {shard: now - far.at_tip for shard, far in reached.items() if far.at_tip is not None}
    arrived = {shard: far.arrived_ms for shard, far in reached.items() if far.arrived_ms is not None}
    return ReadingReport(shards, ages, tips, arrived, keeper.behind_parents)
