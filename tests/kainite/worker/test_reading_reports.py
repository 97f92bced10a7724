"""What the daemon tells the log's owner of its reading."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

import pytest

from kainite.base.clock import boot_seconds
from kainite.kinesis.read.prefetch import Reached
from kainite.leases.keeper import LeaseKeeper
from kainite.log.client import ReadingReport
from kainite.log.collecting.waiting import NEAR_S
from kainite.peers.sharing.latest_reading import LatestReading
from kainite.peers.sharing.shared_log import SharedLog
from kainite.worker import reading_reports
from kainite.worker.consumers import Consumers
from kainite.worker.reading_reports import report_reading


@dataclass
class Reading:
    """The reading of one shard, as far as reports need it."""

    reached: Reached


@dataclass
class Daemon:
    """The lease keeper, the consumers and the log, as far as reports need them."""

    to_be_read: frozenset[str] | None = None
    behind_parents: frozenset[str] = frozenset({"s1"})
    seconds_since_round: float | None = None
    all_open: bool = True
    until: float | None = None
    reports: list[ReadingReport] = field(default_factory=list)
    reading: Callable[[], ReadingReport | None] | None = None

    latest_reading: LatestReading = field(default_factory=lambda: LatestReading(boot_seconds))

    def read_again(self) -> None:
        """Does nothing: no reader is there."""

    def collects(self, shard: str) -> bool:
        return shard != "plain"

    def readings(self) -> dict[str, Reading]:
        plain = Reading(Reached(self.until, 1_900, 48.0))
        return {"s0": Reading(Reached(self.until, 1_700, 48.0)), "s1": Reading(Reached()), "plain": plain}

    def report(self, report: ReadingReport) -> None:
        self.reports.append(report)


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_reports_name_all_shards_and_how_old_what_is_known_of_them_is(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 50.0
    monkeypatch.setattr(reading_reports, "boot_seconds", lambda: now)
    monkeypatch.setattr(reading_reports, "EVERY_S", 0.0)
    daemon = Daemon()
    task = asyncio.create_task(
        report_reading(
            cast(LeaseKeeper, daemon), cast(Consumers, daemon), cast(SharedLog, daemon), lambda: daemon.all_open
        )
    )
    await turns(5)
    assert daemon.reports == [], "the lease table has not been read"
    daemon.to_be_read, daemon.until = frozenset({"s0", "s1"}), 43.0
    daemon.seconds_since_round = 1.0
    await turns(5)
    assert daemon.reports[-1] == ReadingReport(
        frozenset({"s0", "s1"}), {"s0": 7.0}, {"s0": 2.0}, {"s0": 1_700}, frozenset({"s1"})
    )
    daemon.seconds_since_round = NEAR_S + 1.0
    await turns(5)
    daemon.reports.clear()
    await turns(5)
    assert daemon.reports == [], "the shards may be others by now"
    assert daemon.reading is not None
    assert daemon.reading() is None, "likewise where the owner asks"
    daemon.seconds_since_round, daemon.until, daemon.all_open = 1.0, 49.0, False
    assert daemon.reading() is None, "a stream of the settings is not open, and may have shards that nobody knows"
    daemon.all_open = True
    assert daemon.reading() == ReadingReport(
        frozenset({"s0", "s1"}), {"s0": 1.0}, {"s0": 2.0}, {"s0": 1_700}, frozenset({"s1"})
    )
    assert daemon.latest_reading.read_again == daemon.read_again
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert daemon.reading is None, "nobody is asked who does not report"
    assert daemon.latest_reading.read_again is None
