"""Units of work whose records lie over many shards, while the stream is resharded, throttles, and the daemon is killed.

Each unit inserts a row of its own, updates a row that all of them update, and adds a row to a table without a key. So a
unit that is lost, applied twice, or applied out of the source's order shows in the target.
"""

from __future__ import annotations

import random
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config

from kainite.base.checkpoint import SHARD_END
from kainite.leases.table.lease_table import LeaseTable
from kainite.store.dynamodb import DynamoDBStore
from support.names import unique
from support.pipeline import LIMIT, SHARDS, Pipeline, emit
from support.stores import SHOP, Database
from support.waiting import eventually

UNITS = 24
SLOW = 90.0
"""Seconds for LocalStack's slow operations."""

PATIENT = Config(retries={"total_max_attempts": 12, "mode": "standard"}, read_timeout=60)
QUICK_SHARDS = {"shardSyncIntervalMillis": "1000", "parentShardPollIntervalMillis": "500"}
SHORT_LEASES = {"logLeaseMillis": "3000"}


def pipeline_at(endpoint: str, folder: Path) -> Pipeline:
    name = unique("localstack")
    path = folder / "target.db"
    path.touch()
    database = Database(f"sqlite:///{path}")
    database.run(f"{SHOP}; INSERT INTO region VALUES (0, 'none')")
    session = boto3.Session(region_name="us-east-1")
    kinesis = session.client("kinesis", endpoint_url=endpoint, config=PATIENT)
    store = DynamoDBStore(session.client("dynamodb", endpoint_url=endpoint, config=PATIENT), f"{name}-log")
    pipeline = Pipeline(kinesis, store, name, endpoint, database, folder)
    kinesis.get_waiter("stream_exists").wait(StreamName=name, WaiterConfig={"Delay": 1, "MaxAttempts": 60})
    return pipeline


def unit(number: int) -> list[bytes]:
    """Returns the lines of a unit, which may come through any shard in any order."""
    uow = f"U-{number}"
    deltas: list[dict[str, Any]] = [
        {"table": "region", "op": "insert", "key": {"id": number}, "row": {"id": number, "name": "own"}},
        {"table": "region", "op": "update", "key": {"id": 0}, "row": {"name": f"by {number}"}},
        {"table": "audit", "op": "insert", "row": {"what": uow, "at": number}},
    ]
    ends = {"uow": uow, "end": True, "count": len(deltas), "number": number}
    return [*(emit({"uow": uow, "ordinal": place, **delta}) for place, delta in enumerate(deltas)), emit(ends)]


def shuffled_lines(seed: int) -> list[bytes]:
    """Returns all units' lines, some of them twice."""
    chance = random.Random(seed)
    lines = [line for number in range(1, UNITS + 1) for line in unit(number)]
    lines += chance.sample(lines, len(lines) // 4)
    chance.shuffle(lines)
    return lines


def put(pipeline: Pipeline, lines: Sequence[bytes]) -> None:
    """Spreads lines over the shards that the stream has by now."""
    for place, line in enumerate(lines):
        pipeline.put([line], shard=place % SHARDS)


def finish(pipeline: Pipeline) -> None:
    """Waits until all units are in the log in the source's order, and applies them to the target."""
    eventually(lambda: list(pipeline.statuses().values()) == ["in progress"] * UNITS, SLOW)
    assert [row.number for row in pipeline.rows().values()] == list(range(1, UNITS + 1))
    pipeline.apply()
    eventually(lambda: set(pipeline.statuses().values()) == {"committed"}, SLOW)


def check_target(pipeline: Pipeline) -> None:
    rows = pipeline.database.rows
    assert rows("SELECT id FROM region WHERE name = 'own' ORDER BY id") == [(n,) for n in range(1, UNITS + 1)]
    assert rows("SELECT name FROM region WHERE id = 0") == [(f"by {UNITS}",)]
    assert sorted(at for (at,) in rows("SELECT at FROM audit")) == list(range(1, UNITS + 1))


def open_shards(pipeline: Pipeline) -> list[Any]:
    shards = pipeline.kinesis.list_shards(StreamName=pipeline.name)["Shards"]
    still_open = [s for s in shards if "EndingSequenceNumber" not in s["SequenceNumberRange"]]
    return sorted(still_open, key=lambda s: int(s["HashKeyRange"]["StartingHashKey"]))


def split_first(pipeline: Pipeline) -> None:
    shard = open_shards(pipeline)[0]
    keys = shard["HashKeyRange"]
    middle = (int(keys["StartingHashKey"]) + int(keys["EndingHashKey"])) // 2 + 1
    pipeline.kinesis.split_shard(
        StreamName=pipeline.name, ShardToSplit=shard["ShardId"], NewStartingHashKey=str(middle)
    )
    eventually(lambda: len(open_shards(pipeline)) == SHARDS + 1)


def merge_last(pipeline: Pipeline) -> None:
    """Merges the last two shards: a child of the split, and one of the first shards."""
    first, second = open_shards(pipeline)[-2:]
    pipeline.kinesis.merge_shards(
        StreamName=pipeline.name, ShardToMerge=first["ShardId"], AdjacentShardToMerge=second["ShardId"]
    )
    eventually(lambda: len(open_shards(pipeline)) == SHARDS)


@pytest.mark.parametrize("killed", [False, True])
def test_units_in_flight_while_shards_are_split_and_merged(endpoint: str, tmp_path: Path, *, killed: bool) -> None:
    pipeline = pipeline_at(endpoint, tmp_path)
    lines = shuffled_lines(3)
    third = len(lines) // 3
    properties = pipeline.properties(uowOrder="dense", **QUICK_SHARDS, **SHORT_LEASES)

    with pipeline.daemon(properties) as process:
        put(pipeline, lines[:third])
        eventually(lambda: pipeline.store.read_head("0") is not None, SLOW)
        split_first(pipeline)
        put(pipeline, lines[third : 2 * third])
        if killed:
            process.send_signal(signal.SIGKILL)
            process.wait(LIMIT)
        merge_last(pipeline)
        put(pipeline, lines[2 * third :])
        if not killed:
            finish_and_leave_old_shards(pipeline)
    if killed:
        with pipeline.daemon(properties):
            finish_and_leave_old_shards(pipeline)

    check_target(pipeline)


def finish_and_leave_old_shards(pipeline: Pipeline) -> None:
    finish(pipeline)
    dynamodb = boto3.client("dynamodb", endpoint_url=pipeline.endpoint, region_name="us-east-1", config=PATIENT)
    leases = LeaseTable(dynamodb, pipeline.name)
    open_ids = {shard["ShardId"] for shard in open_shards(pipeline)}
    eventually(lambda: {lease.key for lease in leases.scan() if lease.checkpoint != SHARD_END} == open_ids, SLOW)


def test_units_through_throttling_and_a_kill(throttling_endpoint: str, tmp_path: Path) -> None:
    """Carries units through a LocalStack that throttles DynamoDB and puts, but no reads of the stream."""
    pipeline = pipeline_at(throttling_endpoint, tmp_path)
    lines = shuffled_lines(5)
    half = len(lines) // 2
    properties = pipeline.properties("never", uowOrder="dense", **SHORT_LEASES)

    with pipeline.daemon(properties) as process:
        put(pipeline, lines[:half])
        eventually(lambda: pipeline.store.read_head("0") is not None, SLOW)
        process.send_signal(signal.SIGKILL)
        process.wait(LIMIT)
    with pipeline.daemon(properties):
        put(pipeline, lines[half:])
        finish(pipeline)

    check_target(pipeline)


def test_units_by_fan_out(endpoint: str, tmp_path: Path) -> None:
    pipeline = pipeline_at(endpoint, tmp_path)
    put(pipeline, shuffled_lines(7))

    with pipeline.daemon(pipeline.properties(uowOrder="dense", retrievalMode="FANOUT")):
        finish(pipeline)

    check_target(pipeline)
