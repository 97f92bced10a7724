"""The audit trail, in a folder and on S3: units are in it before they leave the log, also after a fault."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import boto3
import orjson
import pytest

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

from kainite.base.errors import LogUnavailableError
from kainite.base.position import Position
from kainite.log.contract import LogStore
from kainite.log.format.entry import Outcome, UnitStatus
from kainite.log.views.unit_table import LogRow, read_rows
from kainite.observe.meter import Meter
from kainite.observe.metric import LOG_UPKEEP_FAILURES
from kainite.owner.audit.opening import open_audit
from kainite.owner.audit.trail import AuditTrail
from kainite.owner.owner import LogOwner
from kainite.settings import AwsSettings, LogSettings, S3Folder, UowSettings
from kainite.store.memory import MemoryStore
from support.log_builders import fragment
from support.metric_sums import Sums
from support.names import unique
from support.next_append import append_next
from support.outcomes_log import LIMIT, OutcomesLog
from support.owned_log import owned_log
from support.waiting import until

SETTINGS = LogSettings(table="t", owner="a", enabled=True, put_interval=0.0, poll=0.02, snapshot_entries=10)
P = SETTINGS.partition


class Place(Protocol):
    """An audit trail, with functions that read it and break it."""

    @property
    def settings(self) -> Path | S3Folder: ...

    @property
    def aws(self) -> AwsSettings: ...

    def writes(self) -> Sequence[bytes]: ...
    def mend(self) -> None:
        """Makes the place writable."""


@dataclass
class InFolder:
    settings: Path
    aws: AwsSettings
    in_way: Path

    def writes(self) -> Sequence[bytes]:
        return [path.read_bytes() for path in sorted(self.settings.glob("audit-*.jsonl.zst"))]

    def mend(self) -> None:
        self.in_way.unlink()


@dataclass
class OnS3:
    settings: S3Folder
    aws: AwsSettings
    s3: Any

    def objects(self) -> list[str]:
        """Returns the keys in the order of a listing."""
        return [each["Key"] for each in self.s3.list_objects_v2(Bucket=self.settings.bucket).get("Contents", [])]

    def get(self, key: str) -> Any:
        return self.s3.get_object(Bucket=self.settings.bucket, Key=key)

    def writes(self) -> Sequence[bytes]:
        return [self.get(key)["Body"].read() for key in self.objects()]

    def mend(self) -> None:
        self.s3.create_bucket(Bucket=self.settings.bucket)


def on_s3(endpoint: str, prefix: str = "trail") -> OnS3:
    s3 = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1")
    return OnS3(S3Folder(unique("audit"), prefix), AwsSettings("us-east-1", s3_endpoint=endpoint, tries=1), s3)


@pytest.fixture(params=["folder", "s3"])
def broken(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Returns a place that cannot be written: a file is in the folder's way, or the bucket is missing."""
    if request.param == "s3":
        return on_s3(request.getfixturevalue("moto_endpoint"))
    in_way = tmp_path / "file"
    in_way.touch()
    return InFolder(in_way / "audit", AwsSettings(), in_way)


@pytest.fixture
def place(broken: Place) -> Place:
    broken.mend()
    return broken


def trail_in(place: Place) -> AuditTrail:
    trail = open_audit(replace(SETTINGS, audit_trail=place.settings), place.aws)
    assert trail is not None
    return trail


def lines(place: Place) -> list[dict[str, Any]]:
    """Returns all lines as ``zstdcat`` shows them, which reads concatenated frames as one file."""
    return [orjson.loads(line) for line in zstd.decompress(b"".join(place.writes())).splitlines()]


def statuses(place: Place) -> dict[int, str]:
    """Returns the status of each unit as a reader finds it: the last line of an id counts."""
    return {line["id"]: line["status"] for line in lines(place)}


def row(tid: int, **more: Any) -> LogRow:
    return LogRow(f"T-{tid}", id=tid, status=UnitStatus.COMMITTED, **more)


async def work(log: LogOwner, store: LogStore, units: int = 60) -> list[int]:
    """Appends units and commits them; returns their ids."""
    tids = []
    outcomes = OutcomesLog(store)
    for n in range(units):
        tids.append(log.state.next_id)
        position = Position(log.state.next_id)
        await append_next(log, "s0", position, position, [fragment(f"T-{tids[-1]}", [n], count=1)])
        outcomes.report(Outcome(tids[-1], UnitStatus.COMMITTED, 0))
    await until(lambda: log.state.units == {})
    return tids


async def go_on_until(log: LogOwner, condition: Callable[[], bool]) -> None:
    """Appends entries, and thereby causes snapshots, until the condition holds."""
    async with asyncio.timeout(LIMIT):
        while not condition():
            position = Position(log.state.next_id)
            await append_next(log, "s0", position, position, [])
            await asyncio.sleep(0.001)


def low_water_mark(store: LogStore) -> int:
    head = store.read_head(P)
    assert head is not None
    return head.low_water_mark


def test_rows_come_back_whole_and_in_order(place: Place) -> None:
    first = row(7, queue=["s0", "s1"], signature=["t(1)"], trans_in=2, trans_out=2, instance=3)
    second = row(12, number=5)
    trail_in(place).write([first], 0, 10)
    trail_in(place).write([second, row(13)], 10, 20)

    assert [LogRow(**line) for line in lines(place)] == [first, second, row(13)]


def test_no_rows_write_nothing(place: Place) -> None:
    trail_in(place).write([], 0, 10)

    assert place.writes() == []


async def test_units_are_in_it_before_they_leave_the_log(place: Place) -> None:
    store = MemoryStore()
    async with owned_log(store, SETTINGS, UowSettings(), audit=trail_in(place)) as log:
        tids = await work(log, store)
        await go_on_until(log, lambda: low_water_mark(store) > tids[-1])

    assert read_rows(store, P) == []
    assert [line["id"] for line in lines(place)] == tids
    assert statuses(place) == dict.fromkeys(tids, "committed")


class CrashesOnce:
    """An audit trail that is durable, and whose owner is gone before it truncates."""

    def __init__(self, trail: AuditTrail) -> None:
        self._trail = trail
        self.crashed = False

    def write(self, rows: Iterable[LogRow], low: int, high: int) -> None:
        if not self.crashed:
            self._trail.write(rows, low, high)
            self.crashed = True
        raise LogUnavailableError("crashed")


async def test_a_crash_before_the_truncation_writes_units_again_and_loses_none(place: Place) -> None:
    store = MemoryStore()
    dying = CrashesOnce(trail_in(place))
    async with owned_log(store, SETTINGS, UowSettings(), audit=dying) as log:
        tids = await work(log, store)
        await go_on_until(log, lambda: dying.crashed)
    written = statuses(place)
    assert low_water_mark(store) == 0
    async with owned_log(store, SETTINGS, UowSettings(), audit=trail_in(place)) as log:
        await go_on_until(log, lambda: low_water_mark(store) > tids[-1])

    assert written
    assert statuses(place) == dict.fromkeys(tids, "committed")


async def test_one_that_cannot_be_written_truncates_nothing_and_stops_nobody_until_it_is_mended(
    broken: Place, caplog: pytest.LogCaptureFixture
) -> None:
    store, sums = MemoryStore(), Sums()
    async with owned_log(store, SETTINGS, UowSettings(), audit=trail_in(broken), meter=Meter(sums)) as log:
        tids = await work(log, store)
        await go_on_until(log, lambda: "log upkeep put off" in caplog.text)
        assert low_water_mark(store) == 0
        assert sums.values[LOG_UPKEEP_FAILURES] >= 1
        assert [row.id for row in read_rows(store, P)] == tids
        broken.mend()
        await go_on_until(log, lambda: low_water_mark(store) > tids[-1])

    assert statuses(broken) == dict.fromkeys(tids, "committed")
