"""A row of megabytes from the extractor's records through a stream, ``kainite run`` and an apply job to the target."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import psutil
import pytest

from kainite.capture.row_pieces import in_records
from kainite.store.dynamodb import DynamoDBStore
from support.names import unique
from support.pipeline import Pipeline
from support.processor_child import command_of
from support.stores import Database
from support.waiting import eventually

BYTES = int(os.environ.get("KAINITE_LARGE_ROW", "3000000"))


@pytest.fixture
def pipeline(kinesis: Any, dynamodb: Any, moto_endpoint: str, tmp_path: Path) -> Pipeline:
    name = unique("large")
    (tmp_path / "target.db").touch()
    database = Database(f"sqlite:///{tmp_path / 'target.db'}")
    database.run("CREATE TABLE document (id integer PRIMARY KEY, body text);")
    return Pipeline(kinesis, DynamoDBStore(dynamodb, f"{name}-log"), name, moto_endpoint, database, tmp_path)


def unit(number: int, *bodies: str) -> Iterator[bytes]:
    """Yields the records of a transaction that inserts rows with these texts."""
    name = {"uow": f"pg-{number}-0/{number:X}", "number": number}
    for ordinal, body in enumerate(bodies):
        row = str(10 * number + ordinal)
        place = {**name, "ordinal": ordinal, "relation": "document", "operation": "insert"}
        values = {"types": {"id": 23, "body": 25}, "key": {"id": row}, "new": {"id": row, "body": body}}
        yield from in_records(name, place, values, time.time_ns)
    yield orjson.dumps({**name, "end": True, "count": len(bodies)})


@pytest.mark.timeout(300)
def test_a_large_row_arrives_whole_though_its_record_processor_is_killed_among_its_pieces(pipeline: Pipeline) -> None:
    body = os.urandom(BYTES // 2).hex()  # no compression makes it small
    command = [*command_of("postgresql_changes"), "--stream", pipeline.name]
    command += ["--region", "us-east-1", "--endpoint", pipeline.endpoint]
    path = pipeline.properties(executableName=" ".join(command), uowOrder="dense", failoverTimeMillis="20000")
    *pieces, main, small, end = unit(2, body, "x")
    assert len(pieces) > 2
    pipeline.put([*unit(1, "first"), *pieces, small])
    with pipeline.daemon(path) as daemon:
        eventually(lambda: row_of(pipeline, 2) == ("collecting", 1), limit=100.0)
        for child in psutil.Process(daemon.pid).children(recursive=True):
            child.kill()
        pipeline.put([main, end, *unit(3, "last")])
        eventually(lambda: row_of(pipeline, 3) == ("in progress", 1), limit=200.0)
    assert row_of(pipeline, 2) == ("in progress", 2)
    pipeline.apply()
    rows = pipeline.database.rows("SELECT id, body FROM document ORDER BY id")
    assert rows == [(10, "first"), (20, body), (21, "x"), (30, "last")]


def row_of(pipeline: Pipeline, number: int) -> tuple[str, int] | None:
    """Returns a unit's status, and how many deltas of it have come."""
    row = pipeline.rows().get(f"pg-{number}-0/{number:X}")
    return None if row is None else (str(row.status), row.trans_out)
