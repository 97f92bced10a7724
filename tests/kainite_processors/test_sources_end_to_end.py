"""Debezium's, AWS DMS's and plain records through a stream of two shards, ``kainite run`` and an apply job.

Transactions are interleaved and spread over the shards, ends come before changes, the source sends some records
twice, and processors and daemon are killed in the middle: each unit stands in the log once and whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import psutil
import pytest

from kainite.store.dynamodb import DynamoDBStore
from support.debezium_sink import KinesisSink, RefusingKinesis, Sending
from support.names import unique
from support.pipeline import SHARDS, Pipeline, emit
from support.processor_child import command_of
from support.stores import Database
from support.waiting import eventually

TABLES = """
    CREATE TABLE orders (id integer PRIMARY KEY, note text, total decimal(10, 2), placed date);
    CREATE TABLE order_line (
        order_id integer REFERENCES orders, line integer, qty integer, PRIMARY KEY (order_id, line));
"""
NAMES = {
    "public.orders": {"table": "orders", "key": ["id"]},
    "public.order_line": {"table": "order_line", "key": ["order_id", "line"]},
}


@dataclass(frozen=True)
class Put:
    """A record of the source: on which shard, with what partition key."""

    shard: int
    key: str
    body: Any

    @property
    def data(self) -> bytes:
        return json.dumps(self.body).encode() if self.body is not None else b""


@pytest.fixture
def pipeline(kinesis: Any, dynamodb: Any, moto_endpoint: str, tmp_path: Path) -> Pipeline:
    name = unique("source")
    (tmp_path / "target.db").touch()
    (tmp_path / "tables.json").write_text(json.dumps(NAMES))
    database = Database(f"sqlite:///{tmp_path / 'target.db'}")
    database.run(TABLES)
    return Pipeline(kinesis, DynamoDBStore(dynamodb, f"{name}-log"), name, moto_endpoint, database, tmp_path)


def properties(pipeline: Pipeline, processor: str, *options: str, **more: str) -> Path:
    command = [*command_of(processor), "--tables", str(pipeline.folder / "tables.json"), *options]
    return pipeline.properties(executableName=" ".join(command), **more)


def put(pipeline: Pipeline, records: Iterable[Put]) -> None:
    for record in records:
        hashed = str(2**128 // SHARDS * record.shard)
        pipeline.kinesis.put_record(
            StreamName=pipeline.name, Data=record.data or b"\n", PartitionKey=record.key, ExplicitHashKey=hashed
        )


def soon(condition: Callable[[], object]) -> None:
    """Waits for a daemon and its children, with a long limit, because other tests run beside this one."""
    eventually(condition, limit=100.0)


def shown(pipeline: Pipeline) -> dict[str, tuple[str, int | None, int]]:
    """Returns status, Trans ID In and Trans ID Out of each unit."""
    return {name: (str(row.status), row.trans_in, row.trans_out) for name, row in pipeline.rows().items()}


def collected(pipeline: Pipeline, *uows: str) -> bool:
    units = shown(pipeline)
    return all(uow in units and units[uow][0] != "collecting" for uow in uows)


def target(pipeline: Pipeline) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    orders = pipeline.database.rows("SELECT id, note, CAST(total AS text), placed FROM orders ORDER BY id")
    return orders, pipeline.database.rows("SELECT order_id, line, qty FROM order_line ORDER BY order_id, line")


# Debezium: column schemas of the two tables, as its JSON converter describes them.
ORDERS = [
    {"type": "int32", "optional": False, "field": "id"},
    {"type": "string", "optional": True, "field": "note"},
    {"type": "bytes", "optional": True, "name": "org.apache.kafka.connect.data.Decimal", "version": 1,
     "parameters": {"scale": "2", "connect.decimal.precision": "10"}, "field": "total"},
    {"type": "int32", "optional": True, "name": "io.debezium.time.Date", "version": 1, "field": "placed"},
]  # fmt: skip
ORDER_LINE = [{"type": "int32", "optional": False, "field": field} for field in ("order_id", "line", "qty")]


def event(shard: int, op: str, table: str, before: Any, after: Any, transaction: int, order: int) -> Put:
    columns, key = (ORDERS, ["id"]) if table == "orders" else (ORDER_LINE, ["order_id", "line"])
    images = [{"type": "struct", "fields": columns, "optional": True, "field": name} for name in ("before", "after")]
    block = {"id": f"{transaction}:{3962948040 + order}", "total_order": order, "data_collection_order": order}
    source = {
        "version": "3.0.0.Final", "connector": "postgresql", "name": "shop", "db": "shop", "schema": "public",
        "table": table, "txId": transaction, "snapshot": "false" if transaction else "true",
    }  # fmt: skip
    payload = {
        "before": before, "after": after, "op": op, "ts_ms": 1704355506000, "source": source,
        "transaction": block if transaction else None,
    }  # fmt: skip
    row = after or before or {}
    partition_key = json.dumps({name: row[name] for name in key if name in row}, separators=(",", ":"))
    return Put(shard, partition_key, {"schema": {"type": "struct", "fields": images}, "payload": payload})


def boundary(shard: int, status: str, transaction: int, count: int | None = None) -> Put:
    body = {"status": status, "id": f"{transaction}:9", "event_count": count, "data_collections": None, "ts_ms": 1}
    return Put(shard, f'{{"id":"{transaction}:9"}}', {"schema": None, "payload": body})


def line(order: int, number: int, qty: int) -> dict[str, int]:
    return {"order_id": order, "line": number, "qty": qty}


FIRST = {"id": 1, "note": "old", "total": "BMk=", "placed": 19279}
SECOND = {"id": 2, "note": None, "total": "ZA==", "placed": None}
LARGE = {**SECOND, "note": "__debezium_unavailable_value", "total": "AMg="}


@pytest.mark.timeout(300)
def test_debezium_over_two_shards_with_the_daemon_killed(pipeline: Pipeline) -> None:
    snapshot = event(0, "r", "orders", None, FIRST, 0, 0)
    ten = [
        boundary(1, "BEGIN", 10),
        event(1, "c", "orders", None, SECOND, 10, 1),
        event(0, "c", "order_line", None, line(2, 1, 5), 10, 2),
        boundary(1, "END", 10, 3),
    ]
    eleven = [event(0, "u", "orders", None, LARGE | {"id": 1}, 11, 1), boundary(1, "END", 11, 1)]
    early = [snapshot, *ten[:2], eleven[0], ten[3], eleven[1], ten[2]]
    late = [
        event(0, "c", "order_line", None, line(2, 2, 6), 10, 3),
        eleven[0],  # the source sends again what it does not know to be there
        ten[1],
        eleven[1],
        event(1, "t", "order_line", None, None, 12, 1),
        boundary(0, "END", 12, 1),
        event(0, "d", "order_line", line(2, 1, 0), None, 13, 1),
        Put(0, '{"order_id":2,"line":1}', None),
        boundary(1, "END", 13, 1),
    ]
    path = properties(pipeline, "debezium")
    put(pipeline, early)
    with pipeline.daemon(path):
        soon(lambda: shown(pipeline).get("10") == ("collecting", 3, 2) and collected(pipeline, "11"))
    put(pipeline, late)
    with pipeline.daemon(path):
        soon(lambda: collected(pipeline, "10", "11", "12", "13"))
    units = shown(pipeline)
    (alone,) = units.keys() - {"10", "11", "12", "13"}
    assert alone.startswith("shardId-000000000000:")
    assert units["10"] == ("in progress", 3, 3)
    assert units["12"][0] == "failed"
    assert "operation 't' has no delta" in str(pipeline.rows()["12"].offending)
    pipeline.apply()
    assert target(pipeline) == ([(1, "old", "2", None), (2, None, "1", None)], [(2, 2, 6)])


@dataclass(frozen=True)
class Sent:
    """An event as the engine hands it to the sink."""

    put: Put
    stream: str

    def key(self) -> str:
        return self.put.key

    def value(self) -> str:
        return self.put.data.decode()

    def destination(self) -> str:
        return self.stream


class Refusals(Random):
    """Refuses the records of each request that a test names."""

    def __init__(self, *requests: str) -> None:
        super().__init__()
        self._marks = "".join(requests)

    def random(self) -> float:
        mark, self._marks = self._marks[:1], self._marks[1:]
        return 0.0 if mark == "x" else 1.0


@pytest.mark.timeout(300)
def test_what_a_release_of_debezium_server_loses_fails_its_unit(pipeline: Pipeline) -> None:
    """Shows it for 3.0.1 to 3.1.0 (DBZ-8193, DBZ-8893): what is refused twice is lost, another record comes twice."""
    ten = [event(0, "c", "orders", None, FIRST, 10, 1), boundary(0, "END", 10, 1)]
    lines = [event(0, "c", "order_line", None, line(1, number, 5), 11, number) for number in (1, 2, 3)]
    twelve = [event(0, "c", "orders", None, SECOND, 12, 1), boundary(0, "END", 12, 1)]
    records = [*ten, *lines, boundary(0, "END", 11, 3), *twelve]
    kinesis = RefusingKinesis(pipeline.kinesis, 0.5, Refusals(".x.x....", ".x", "."))
    lost = KinesisSink(kinesis, Sending.LOSING).handle([Sent(record, pipeline.name) for record in records])
    assert lost == [{"PartitionKey": lines[1].key, "Data": lines[1].data}]
    with pipeline.daemon(properties(pipeline, "debezium", uowTimeoutMillis="3000")):
        soon(lambda: collected(pipeline, "10", "11", "12"))
    assert shown(pipeline)["11"] == ("failed", 3, 2)
    assert "2 of 3 deltas came" in str(pipeline.rows()["11"].cause)
    pipeline.apply()
    assert target(pipeline) == ([(1, "old", "12.25", "2022-10-14"), (2, None, "1", None)], [])


WATERMARK = {"uowEnd": "watermark", "uowOrder": "time", "uowGraceMillis": "500"}


def without_metadata(put: Put, transaction: int, lsn: int) -> Put:
    """Returns an event as Debezium for PostgreSQL sends it without transaction metadata."""
    payload = put.body["payload"]
    block = {"txId": transaction, "lsn": lsn, "ts_us": 1704355505506000 + transaction}
    source = {**payload["source"], **block}
    return Put(put.shard, put.key, {**put.body, "payload": {**payload, "transaction": None, "source": source}})


@pytest.mark.timeout(300)
def test_debezium_without_transaction_metadata_ends_by_the_watermark(pipeline: Pipeline) -> None:
    ten = [
        without_metadata(event(1, "c", "orders", None, SECOND, 10, 1), 10, 500),
        without_metadata(event(0, "c", "order_line", None, line(2, 1, 5), 10, 2), 10, 510),
        without_metadata(event(1, "u", "orders", None, {**SECOND, "note": "a"}, 10, 3), 10, 520),
    ]
    # The later transaction comes first, through the other shard.
    eleven = [without_metadata(event(0, "u", "orders", None, {**SECOND, "note": "b"}, 11, 1), 11, 530)]
    put(pipeline, [ten[0], *eleven, ten[1], ten[2], *eleven, *ten])
    with pipeline.daemon(properties(pipeline, "debezium", "--source-transactions", **WATERMARK)):
        soon(lambda: collected(pipeline, "10", "11"))
    assert shown(pipeline) == {"10": ("in progress", 3, 3), "11": ("in progress", 1, 1)}
    pipeline.apply()
    assert target(pipeline) == ([(2, "b", "1", None)], [(2, 1, 5)])


@pytest.mark.timeout(300)
def test_a_plain_stream_without_ends_ends_by_the_watermark(pipeline: Pipeline) -> None:
    def delta(uow: str, time: int, table: str, row: dict[str, Any], *key: str) -> bytes:
        keyed = {name: row[name] for name in key}
        return emit({"uow": uow, "time": time, "table": table, "op": "upsert", "key": keyed, "row": row})

    first = [delta("T-1", 1000, "orders", {"id": 1, "note": "old"}, "id")]
    lines = [delta("T-1", 1000, "order_line", line(1, 1, 5), "order_id", "line")]
    second = [delta("T-2", 2000, "orders", {"id": 1, "note": "new"}, "id")]
    pipeline.put([*second, *first, *second], shard=0)
    pipeline.put(lines * 2, shard=1)
    with pipeline.daemon(pipeline.properties(**WATERMARK)):
        soon(lambda: collected(pipeline, "T-1", "T-2"))
    assert shown(pipeline) == {"T-1": ("in progress", 2, 2), "T-2": ("in progress", 1, 1)}
    pipeline.apply()
    assert target(pipeline) == ([(1, "new", None, None)], [(1, 1, 5)])


def record(shard: int, operation: str, table: str, data: Any, place: tuple[int, int], *before: int) -> Put:
    """Returns a record of DMS with its transaction and number, and those of the record before it."""
    metadata = {
        "timestamp": "2024-07-29T00:58:44.895275Z", "record-type": "data", "operation": operation,
        "partition-key-type": "schema-table", "schema-name": "public", "table-name": table,
        "transaction-id": place[0], "transaction-record-id": place[1],
        "commit-timestamp": "2024-07-29T00:58:44.886717Z", "stream-position": "00000002/7C007328.2.00000002/7C007328",
    }  # fmt: skip
    if before:
        metadata["prev-transaction-id"], metadata["prev-transaction-record-id"] = before
    return Put(shard, f"public.{table}", {"data": data, "metadata": metadata})


@pytest.mark.timeout(300)
def test_dms_over_two_shards_with_the_processors_killed(pipeline: Pipeline) -> None:
    order = {"id": 1, "note": "new", "total": 12.25, "placed": "2022-10-14"}
    load = record(0, "load", "orders", {**order, "id": 9}, (0, 0))
    control = Put(
        1, "task", {"metadata": {"record-type": "control", "operation": "create-table", "table-name": "orders"}}
    )
    twenty = [
        record(0, "insert", "orders", order, (20, 1)),
        record(1, "insert", "order_line", line(1, 1, 5), (20, 2)),
        record(1, "insert", "order_line", line(1, 2, 6), (20, 3)),
    ]
    next_one = record(0, "update", "orders", {**order, "note": None}, (21, 1), 20, 3)
    last = record(1, "delete", "order_line", {"order_id": 1, "line": 1, "qty": None}, (22, 1), 21, 1)
    path = properties(pipeline, "aws_dms")
    put(pipeline, [control, load, twenty[0], next_one, twenty[1]])
    with pipeline.daemon(path) as daemon:
        soon(lambda: shown(pipeline).get("20") == ("collecting", 3, 2))
        for child in psutil.Process(daemon.pid).children(recursive=True):
            child.kill()
        put(pipeline, [twenty[0], twenty[2], last, next_one])
        soon(lambda: shown(pipeline).get("22") == ("collecting", None, 1))
        soon(lambda: collected(pipeline, "20", "21"))
    units = shown(pipeline)
    assert (units["20"], units["21"]) == (("in progress", 3, 3), ("in progress", 1, 1))
    assert len(units) == 4
    pipeline.apply()
    assert target(pipeline)[0] == [(1, None, "12.25", "2022-10-14"), (9, "new", "12.25", "2022-10-14")]
    assert target(pipeline)[1] == [(1, 1, 5), (1, 2, 6)], "the last transaction ends when the next one begins"
