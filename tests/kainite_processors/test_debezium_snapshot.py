"""Debezium's own snapshot as the first load: through ``kainite run``, the log and an apply job into PostgreSQL.

A snapshot is broken off, and made anew from a later point, as Debezium does; changes follow. The target is the source
then, but for what the pages say: a row that was deleted between the two snapshots stays.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kainite.store.dynamodb import DynamoDBStore
from kainite.uow.catalogue.file import write_catalogue
from kainite.uow.catalogue.reflection import reflect
from support.names import unique
from support.pipeline import Pipeline
from support.processor_child import command_of
from support.stores import Database
from support.waiting import eventually

pytestmark = pytest.mark.timeout(200)

SECOND = 1_704_355_505
"""When the first transaction committed, Unix seconds."""


@pytest.fixture
def pipeline(kinesis: Any, dynamodb: Any, moto_endpoint: str, postgres: str, tmp_path: Path) -> Pipeline:
    name = unique("dbz")
    database = Database(postgres)
    database.run("CREATE TABLE item (id integer PRIMARY KEY, v text NOT NULL)")
    write_catalogue(reflect(postgres), tmp_path / "catalogue.json")
    return Pipeline(kinesis, DynamoDBStore(dynamodb, f"{name}-log"), name, moto_endpoint, database, tmp_path)


def event(op: str, number: int, before: Any, after: Any, order: int | None = None) -> bytes:
    """Returns a change of the transaction with a number; with ``order`` it carries Debezium's transaction metadata."""
    source = {"db": "shop", "schema": "public", "table": "item", "txId": number, "lsn": number, "snapshot": "true"}
    transaction = {"id": f"{number}:{number}", "total_order": order, "data_collection_order": order}
    times = {"ts_ms": (SECOND + number) * 1000}
    body = {"before": before, "after": after, "source": {**source, **times}, "op": op, **times}
    return json.dumps({**body, "transaction": transaction if order else None}).encode()


def row(number: int, v: str) -> dict[str, Any]:
    return {"id": number, "v": v}


def end(number: int, count: int) -> bytes:
    collections = [{"data_collection": "public.item", "event_count": count}]
    told = {"status": "END", "id": f"{number}:{number}", "event_count": count, "data_collections": collections}
    return json.dumps({**told, "ts_ms": (SECOND + number) * 1000}).encode()


BROKEN_OFF = [event("r", 1, None, row(1, "old")), event("r", 1, None, row(2, "old")), event("r", 1, None, row(3, "x"))]
ANEW = [event("r", 5, None, row(1, "new")), event("r", 5, None, row(2, "old"))]


UNITS = len(BROKEN_OFF) + len(ANEW) + 2


def changes(*, metadata: bool) -> list[bytes]:
    """Returns two transactions that committed after the snapshot."""
    first, second = (1, 2) if metadata else (None, None)
    return [
        event("u", 6, row(1, "new"), row(1, "newer"), first),
        event("c", 6, None, row(4, "four"), second),
        *([end(6, 2)] if metadata else []),
        event("d", 7, row(2, "old"), None, first),
        *([end(7, 1)] if metadata else []),
    ]


@pytest.mark.parametrize("metadata", [True, False])
def test_a_snapshot_and_the_changes_behind_it_make_the_target_what_the_source_is(
    pipeline: Pipeline, metadata: bool
) -> None:
    command = [*command_of("debezium"), "--catalogue", str(pipeline.folder / "catalogue.json")]
    by_source = {"uowEnd": "watermark", "uowOrder": "arrival", "uowGraceMillis": "1000"}
    options = {} if metadata else by_source
    words = " ".join(command if metadata else [*command, "--source-transactions"])
    pipeline.put([*BROKEN_OFF, *ANEW, *changes(metadata=metadata)])  # one shard, as the page says

    with pipeline.daemon(pipeline.properties(executableName=words, shardSyncIntervalMillis="500", **options)):
        eventually(lambda: list(pipeline.statuses().values()) == ["in progress"] * UNITS, limit=60.0)
        pipeline.apply()

    left_behind = (3, "x")
    assert pipeline.database.rows("SELECT id, v FROM item ORDER BY id") == [(1, "newer"), left_behind, (4, "four")]
