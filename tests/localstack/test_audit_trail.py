"""A running daemon moves resolved units from the log into a bucket of LocalStack's S3."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import boto3
import orjson
import pytest

from kainite.base.compression import decompressed
from kainite.store.dynamodb import DynamoDBStore
from support.names import unique
from support.pipeline import Pipeline, emit
from support.stores import SHOP, Database
from support.waiting import eventually

UNITS = 12
DAEMON = str(Path(__file__).parents[1] / "end_to_end" / "daemon_with_snapshots.py")
SLOW = 90.0


@pytest.fixture
def s3(endpoint: str) -> Any:
    return boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1")


@pytest.fixture
def pipeline(endpoint: str, kinesis: Any, dynamodb: Any, tmp_path: Path) -> Pipeline:
    name = unique("audit")
    path = tmp_path / "target.db"
    path.touch()
    database = Database(f"sqlite:///{path}")
    database.run(SHOP)
    made = Pipeline(kinesis, DynamoDBStore(dynamodb, f"{name}-log"), name, endpoint, database, tmp_path)
    kinesis.get_waiter("stream_exists").wait(StreamName=name, WaiterConfig={"Delay": 1, "MaxAttempts": 60})
    return made


def put(pipeline: Pipeline, uow: str, at: int) -> None:
    """Puts a unit of one row on the stream."""
    delta = {"uow": uow, "ordinal": 0, "table": "audit", "op": "insert", "row": {"what": uow, "at": at}}
    pipeline.put([emit(delta, {"uow": uow, "end": True, "count": 1})])


def audited(s3: Any, bucket: str) -> Iterator[dict[str, Any]]:
    """Yields all lines of all objects, in the order of a listing."""
    for each in s3.list_objects_v2(Bucket=bucket, Prefix="trail/0/").get("Contents", []):
        body = s3.get_object(Bucket=bucket, Key=each["Key"])["Body"].read()
        yield from map(orjson.loads, decompressed(body, 1 << 20).splitlines())


def test_resolved_units_leave_the_log_for_a_bucket(endpoint: str, s3: Any, pipeline: Pipeline) -> None:
    s3.create_bucket(Bucket=pipeline.name)
    wanted = {f"U-{number}" for number in range(UNITS)}
    for number in range(UNITS):
        put(pipeline, f"U-{number}", number)
    later = count(UNITS)

    def all_are_in_the_bucket() -> bool:
        # Snapshots come with entries, and only what lies before a snapshot leaves the log.
        put(pipeline, f"later-{next(later)}", 0)
        return wanted <= {line["uow"] for line in audited(s3, pipeline.name)}

    properties = pipeline.properties(s3Endpoint=endpoint, auditTrail=f"s3://{pipeline.name}/trail")
    with pipeline.daemon(properties, DAEMON, "10"):
        eventually(lambda: pipeline.rows().keys() >= wanted, SLOW)
        pipeline.apply()
        eventually(all_are_in_the_bucket, SLOW)

    assert {line["status"] for line in audited(s3, pipeline.name) if line["uow"] in wanted} == {"committed"}
