"""Two streams with equal shard ids, one daemon, one log, one target: units through either or both, kills, SIGHUP."""

from __future__ import annotations

import itertools
import signal
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from kainite.base.shard_key import ShardKey, StreamId
from kainite.leases.table.lease_table import LeaseTable
from kainite.store.dynamodb import DynamoDBStore
from support.names import unique
from support.pipeline import LIMIT, SHARDS, Pipeline, emit
from support.stores import SHOP, Database
from support.waiting import eventually

MORTAL = str(Path(__file__).with_name("mortal_daemon.py"))
UNITS = 6
NUMBERS = itertools.count()


class Streams:
    """The pipeline's own stream and another one, with equal shard ids."""

    def __init__(self, pipeline: Pipeline, dynamodb: Any) -> None:
        self.pipeline = pipeline
        self.names = (pipeline.name, f"{pipeline.name}.too")
        self.table = LeaseTable(dynamodb, pipeline.name)
        self.table.create()
        pipeline.kinesis.create_stream(StreamName=self.names[1], ShardCount=SHARDS)

    def properties(self, *names: str, **more: str) -> Path:
        """Writes the settings of an application that reads the named streams, or both."""
        return self.pipeline.properties(streamName="", streamNames=", ".join(names or self.names), **more)

    def put(self, stream: int, lines: Iterable[bytes], shard: int = 0) -> None:
        key = str(2**128 // SHARDS * shard)
        for line in lines:
            self.pipeline.kinesis.put_record(
                StreamName=self.names[stream], Data=line, PartitionKey="k", ExplicitHashKey=key
            )

    def id(self, stream: int) -> StreamId:
        summary = self.pipeline.kinesis.describe_stream_summary(StreamName=self.names[stream])
        found = summary["StreamDescriptionSummary"]
        return StreamId.of(found["StreamARN"], int(found["StreamCreationTimestamp"].timestamp()))

    def checkpoints(self, stream: int) -> list[str]:
        """Returns the checkpoints of a stream's leases; digits are greater than the words of KCL."""
        of = str(self.id(stream))
        return [ls.checkpoint.sequence.replace("TRIM_HORIZON", "") for ls in self.table.scan() if ls.stream == of]

    def leases(self, stream: int) -> dict[str, str | None]:
        """Returns the leases of a stream: shard id to owner."""
        of = str(self.id(stream))
        return {ShardKey.of(ls.key).shard_id: ls.owner for ls in self.table.scan() if ls.stream == of}


@pytest.fixture
def streams(kinesis: Any, dynamodb: Any, moto_endpoint: str, tmp_path: Path) -> Streams:
    name = unique("several")
    path = tmp_path / "target.db"
    path.touch()
    database = Database(f"sqlite:///{path}")
    database.run(SHOP)
    store = DynamoDBStore(dynamodb, f"{name}-log")
    return Streams(Pipeline(kinesis, store, name, moto_endpoint, database, tmp_path), dynamodb)


def audit(uow: str, at: int) -> dict[str, Any]:
    """Returns a delta without an ordinal: only the shard's position tells whether its record comes again."""
    return {"uow": uow, "table": "audit", "op": "insert", "row": {"what": uow, "at": at}}


def timed(uow: str) -> dict[str, Any]:
    """Returns a delta that tells when its transaction was committed, and no other delta is like it."""
    return {**audit(uow, next(NUMBERS)), "time": time.time_ns()}


def put_through_both(streams: Streams, uow: str, place: int) -> None:
    """Puts two deltas of a unit on one shard of one stream, and the last and the end on a shard of the other one."""
    one, other = place % 2, (place + 1) % 2
    shard = place // 2 % SHARDS
    streams.put(one, [emit(audit(uow, 0)), emit(audit(uow, 1))], shard)
    streams.put(other, [emit(audit(uow, 2), {"uow": uow, "end": True, "count": 3})], shard)


def applied(streams: Streams) -> list[tuple[str, int]]:
    rows = streams.pipeline.database.rows("SELECT what, at FROM audit ORDER BY what, at")
    return [(what, at) for what, at in rows]


@pytest.mark.parametrize("effect", ["after append", "before checkpoint", "after checkpoint"])
def test_units_through_two_streams_are_applied_once_and_whole_through_a_kill(streams: Streams, effect: str) -> None:
    names = [f"unit {place}" for place in range(UNITS)]
    for place, uow in enumerate(names):
        put_through_both(streams, uow, place)
    properties = streams.properties(logLeaseMillis="1000")

    with streams.pipeline.daemon(properties, MORTAL, effect) as process:
        assert process.wait(LIMIT) == -signal.SIGKILL
    with streams.pipeline.daemon(properties):
        eventually(lambda: list(streams.pipeline.statuses().values()) == ["in progress"] * UNITS)
    streams.pipeline.apply()

    assert applied(streams) == [(uow, at) for uow in names for at in range(3)]


def test_the_table_has_kcls_keys_and_items_and_a_log_of_one_stream_is_refused(streams: Streams) -> None:
    for place in range(4):
        put_through_both(streams, f"unit {place}", place)
    with streams.pipeline.daemon(streams.properties(logLeaseMillis="1000")):
        eventually(lambda: list(streams.pipeline.statuses().values()) == ["in progress"] * 4)
        eventually(lambda: [*streams.leases(0).values(), *streams.leases(1).values()] == ["w"] * 2 * SHARDS)
    ids = {f"shardId-{n:012}" for n in range(SHARDS)}
    assert {lease.key for lease in streams.table.scan()} == {
        f"{streams.id(n)}:{shard}" for n in (0, 1) for shard in ids
    }

    single = streams.pipeline.properties(logLeaseMillis="1000")
    with streams.pipeline.daemon(single) as process:
        assert process.wait(LIMIT) == 1
    said = (streams.pipeline.folder / "stderr").read_text()
    assert "has collected the stream several streams in us-east-1, and this is arn:aws:kinesis:us-east-1:" in said


def test_streams_are_added_and_removed_by_sighup_and_a_former_ones_leases_go_in_time(streams: Streams) -> None:
    put_through_both(streams, "unit 0", 0)
    kept = {"logLeaseMillis": "1000", "shardSyncIntervalMillis": "100"}
    streams.properties(streams.names[0], **kept)
    with streams.pipeline.daemon(streams.pipeline.folder / "app.properties") as process:
        eventually(lambda: list(streams.leases(0).values()) == ["w"] * SHARDS)
        assert not streams.leases(1)
        streams.properties(**kept)
        process.send_signal(signal.SIGHUP)
        eventually(lambda: list(streams.pipeline.statuses().values()) == ["in progress"])

        streams.properties(streams.names[0], **kept)
        process.send_signal(signal.SIGHUP)
        eventually(lambda: list(streams.leases(1).values()) == [None] * SHARDS)
        put_through_both(streams, "unit 1", 0)

        streams.properties(**kept)  # put back: goes on where it stood
        process.send_signal(signal.SIGHUP)
        eventually(lambda: list(streams.pipeline.statuses().values()) == ["in progress"] * 2)

        streams.properties(streams.names[0], formerStreamLeasesMillis="300", **kept)
        process.send_signal(signal.SIGHUP)
        eventually(lambda: not streams.leases(1))
        assert list(streams.leases(0).values()) == ["w"] * SHARDS
    streams.pipeline.apply()
    assert applied(streams) == [(uow, at) for uow in ("unit 0", "unit 1") for at in range(3)]


def test_units_do_not_wait_for_a_plain_stream_and_what_its_children_emit_goes_nowhere(streams: Streams) -> None:
    """Holds while the children of the plain stream fail, and when they work: their checkpoints are KCL's."""
    second = f"stream.{streams.names[1]}"
    plain = {
        "logLeaseMillis": "1000", "shardSyncIntervalMillis": "500", "uowEnd": "watermark", "uowGraceMillis": "0",
        f"{second}.unitsOfWork": "false",
    }  # fmt: skip
    streams.put(1, [emit(timed("plain"))])
    for shard in range(SHARDS):
        streams.put(0, [emit(timed("unit"))], shard)
    with streams.pipeline.daemon(streams.properties(**plain, **{f"{second}.executableName": "false"})):
        eventually(lambda: streams.pipeline.statuses() == {"unit": "in progress"})
    with streams.pipeline.daemon(streams.properties(**plain)):
        eventually(lambda: max(streams.checkpoints(1)).isdigit())
        assert streams.pipeline.statuses() == {"unit": "in progress"}
    streams.pipeline.apply()
    assert len(streams.pipeline.database.rows("SELECT 1 FROM audit WHERE what = 'unit'")) == SHARDS


def test_settings_of_one_stream_differ_and_a_stream_added_at_latest_begins_then(streams: Streams) -> None:
    streams.put(0, [emit(audit("old 0", 0), {"uow": "old 0", "end": True, "count": 1})])
    streams.put(1, [emit(audit("old 1", 0), {"uow": "old 1", "end": True, "count": 1})])
    put_at = time.time()
    # Kinesis tells its time in whole seconds, and reading begins a second before.
    eventually(lambda: time.time() > put_at + 3)
    second = f"stream.{streams.names[1]}"
    properties = streams.properties(**{"logLeaseMillis": "1000", f"{second}.initialPositionInStream": "LATEST"})
    with streams.pipeline.daemon(properties):
        eventually(lambda: [*streams.leases(0).values(), *streams.leases(1).values()] == ["w"] * 2 * SHARDS)
        eventually(lambda: list(streams.pipeline.statuses()) == ["old 0"])
        streams.put(1, [emit(audit("new 1", 0), {"uow": "new 1", "end": True, "count": 1})])
        eventually(lambda: sorted(streams.pipeline.statuses()) == ["new 1", "old 0"])
