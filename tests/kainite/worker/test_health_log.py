"""What the log tells of the daemon's health, look by look."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import pytest

from kainite.observe.health import HealthLimits, LogMountState, WorkerFacts, judge
from kainite.observe.shard_status import ShardStatus, Standstill
from kainite.worker.health_log import SUMMARY_S, HealthLog

LIMITS = HealthLimits(hung_after=300, poison_tries=3, unreached_after=60)
READY = WorkerFacts(leases=1, reached=0.0, log=LogMountState.MOUNTED)
BUSY = ShardStatus("s", "PROCESSING", pid=7, action="processRecords", silent=1.0, behind_ms=20, records=10)
HUNG = replace(BUSY, silent=301.0, stderr="connecting")


class Daemon:
    """A daemon whose health is what a test says, with the log's events."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        self._caplog = caplog
        self.now = 0.0
        self.statuses: list[ShardStatus] = []
        self.worker = READY
        self.told_ready = 0
        report = lambda: judge(self.statuses, self.worker, LIMITS)  # noqa: E731
        self._log = HealthLog(report, lambda: self.now, self._became_ready, stream="orders")

    def _became_ready(self) -> None:
        self.told_ready += 1

    def look(self, *statuses: ShardStatus, at: float = 0.0) -> list[tuple[str, str, dict[str, Any]]]:
        """Takes a look; returns the level, the name and the fields of each event."""
        self.statuses, self.now = list(statuses), at
        self._caplog.clear()
        self._log.look()
        return [(one.levelname, one.getMessage(), one.kainite_fields) for one in self._caplog.records]  # type: ignore[attr-defined]


@pytest.fixture
def daemon(caplog: pytest.LogCaptureFixture) -> Daemon:
    caplog.set_level(logging.INFO)
    return Daemon(caplog)


@pytest.mark.parametrize("missing", [{"reached": None}, {"log": LogMountState.WAITING}, {"reached": 61.0}])
def test_the_daemon_is_told_ready_once_it_is(daemon: Daemon, missing: dict[str, Any]) -> None:
    daemon.worker = replace(READY, **missing)
    assert daemon.look() == []
    assert daemon.told_ready == 0
    daemon.worker = READY
    assert daemon.look() == [("INFO", "daemon ready", {"stream": "orders"})]
    assert daemon.look() == []
    assert daemon.told_ready == 1


def test_a_daemon_at_work_says_so_each_minute_with_the_records_since(daemon: Daemon) -> None:
    daemon.look(BUSY)
    assert daemon.look(BUSY, at=SUMMARY_S - 1) == []
    figures = {"shards": 1, "records": 10, "behind_ms": 20, "log": "mounted"}
    assert daemon.look(BUSY, at=SUMMARY_S) == [("INFO", "daemon at work", figures)]
    ((_, _, later),) = daemon.look(replace(BUSY, records=25), at=2 * SUMMARY_S)
    assert later["records"] == 15
    ((_, _, anew),) = daemon.look(replace(BUSY, records=3), at=3 * SUMMARY_S)
    assert anew["records"] == 0
    ((_, _, idle),) = daemon.look(at=4 * SUMMARY_S)
    assert idle == {"shards": 0, "records": 0, "log": "mounted"}


def test_a_summary_names_the_problems(daemon: Daemon) -> None:
    daemon.look(replace(BUSY, failures=3))
    ((_, _, summary),) = daemon.look(replace(BUSY, failures=3), at=SUMMARY_S)
    assert summary["problems"] == "s: 3 children failed in a row"


def test_a_hung_child_is_told_once_and_when_it_is_over(daemon: Daemon) -> None:
    daemon.look(BUSY)
    ((level, name, fields),) = daemon.look(HUNG)
    assert (level, name, fields["shard"], fields["pid"], fields["silent"]) == ("ERROR", "child hangs", "s", 7, 301)
    assert (fields["action"], fields["stderr"]) == ("processRecords", "connecting")
    assert "timeoutInSeconds" in fields["advice"]
    assert daemon.look(HUNG) == []
    assert daemon.look(BUSY) == [("INFO", "child hangs no more", {"shard": "s", "pid": 7})]


def test_a_hung_child_whose_shard_has_gone_hangs_no_more(daemon: Daemon) -> None:
    daemon.look(BUSY)
    daemon.look(HUNG)
    assert [name for _, name, _ in daemon.look()] == ["child hangs no more"]


@pytest.mark.parametrize("stalled", [{"standstill": Standstill(301.0, "no reply")}, {"throttled": 301.0}])
def test_a_shard_that_does_not_get_on_is_told_once_and_when_it_does(daemon: Daemon, stalled: dict[str, Any]) -> None:
    at_rest = ShardStatus("s", "PROCESSING", pid=7, behind_ms=20)
    assert daemon.look(at_rest)[0][1] == "daemon ready"
    ((level, name, fields),) = daemon.look(replace(at_rest, **stalled))
    assert (level, name, fields["shard"]) == ("ERROR", "shard stalls", "s")
    assert "for 5 min" in fields["why"]
    assert daemon.look(replace(at_rest, **stalled)) == []
    assert daemon.look(at_rest) == [("INFO", "shard stalls no more", {"shard": "s"})]
