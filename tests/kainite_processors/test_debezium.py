"""Debezium's events as Debezium Server writes them to Kinesis, through the real processor.

The events are those of Debezium's documentation (PostgreSQL and MySQL connectors, "Data change events",
"Transaction metadata", "Data type mappings") and of what others recorded of the real thing: transaction ids with
positions that differ in one transaction (RisingWave's parser tests, Debezium 2.4), and a transactional logical
message among the counts of END (``LogicalDecodingMessageMonitor``).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kainite.uow.delta import UnitEnd, parse_delta
from support.admitted_deltas import admitted
from support.processor_child import LIMIT, Child

SOURCE = {
    "version": "2.4.2.Final", "connector": "postgresql", "name": "shop", "ts_ms": 1704355505506, "snapshot": "false",
    "db": "shop", "sequence": '["3963198512","3963199336"]', "schema": "public", "table": "orders", "txId": 35352,
    "lsn": 3963199336, "xmin": None,
}  # fmt: skip
UNAVAILABLE = "__debezium_unavailable_value"


def change(op: str, before: Any, after: Any, order: int | None = 1, **source: Any) -> dict[str, Any]:
    """Returns the value of a change event, without its schema."""
    transaction = {"id": f"35352:{3962948040 + (order or 0)}", "total_order": order, "data_collection_order": order}
    return {
        "before": before, "after": after, "source": {**SOURCE, **source}, "op": op, "ts_ms": 1704355506000,
        "transaction": transaction if order else None,
    }  # fmt: skip


def boundary(status: str, transaction: str, count: int | None = None, **tables: int) -> dict[str, Any]:
    collections = [{"data_collection": name, "event_count": some} for name, some in tables.items()]
    return {
        "status": status, "id": transaction, "event_count": count, "data_collections": collections or None,
        "ts_ms": 1704269323180,
    }  # fmt: skip


@pytest.fixture(scope="module")
def child() -> Iterator[Child]:
    child = Child("debezium")
    child.initialize()
    yield child
    child.close()


def test_a_transaction_becomes_a_unit(child: Child) -> None:
    """Shows that events of one PostgreSQL transaction have different ids and belong to one unit."""
    emitted = child.keyed(
        ('{"id":"35352:3962948040"}', boundary("BEGIN", "35352:3962948040")),
        ('{"id":7}', change("c", None, {"id": 7, "note": "Käse", "total": "12.50"}, 1)),
        ('{"order_id":7,"line":1}', change("c", None, {"order_id": 7, "line": 1, "qty": 2}, 2, table="order_line")),
        ('{"id":7}', change("u", {"id": 7, "note": "Käse"}, {"id": 7, "note": None, "total": "12.50"}, 3)),
        ('{"id":6}', change("d", {"id": 6, "note": None, "total": None}, None, 4)),
        ('{"id":6}', b""),
        ('{"id":"35352:3962950064"}', boundary("END", "35352:3962950064", 4, orders=3, order_line=1)),
    )
    assert emitted == [
        {"uow": "35352", "ordinal": 0, "table": "public.orders", "op": "insert", "key": {"id": 7},
         "row": {"id": 7, "note": "Käse", "total": "12.50"}},
        {"uow": "35352", "ordinal": 1, "table": "public.order_line", "op": "insert", "key": {"order_id": 7, "line": 1},
         "row": {"order_id": 7, "line": 1, "qty": 2}},
        {"uow": "35352", "ordinal": 2, "table": "public.orders", "op": "update", "key": {"id": 7},
         "row": {"note": None, "total": "12.50"}, "before": {"id": 7, "note": "Käse"}},
        {"uow": "35352", "ordinal": 3, "table": "public.orders", "op": "delete", "key": {"id": 6}, "before": {"id": 6}},
        {"uow": "35352", "end": True, "count": 4},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("transaction", "uow"),
    [
        ("571:53195832", "571"),
        ("571", "571"),
        ("0e4d5dcd-a33b-11ed-a4a6-0242ac110002:92", "0e4d5dcd-a33b-11ed-a4a6-0242ac110002:92"),
        ("file=mysql-bin.000003,pos=4711", "file=mysql-bin.000003,pos=4711"),
        ("0-1-23", "0-1-23"),
        ("00000025:00000d08:0025", "00000025:00000d08:0025"),
        ("5.6.641", "5.6.641"),
    ],
)
def test_each_databases_transactions_keep_their_names(child: Child, transaction: str, uow: str) -> None:
    event = change("c", None, {"id": 1}) | {
        "transaction": {"id": transaction, "total_order": "1", "data_collection_order": "1"}
    }
    delta, end = child.keyed(('{"id":1}', event), ("e", boundary("END", transaction, 1, orders=1)))
    assert (delta["uow"], delta["ordinal"]) == (uow, 0)
    assert end == {"uow": uow, "end": True, "count": 1}


# What Debezium means to write, and what 3.6 writes: another name for each message.
LOGICAL_MESSAGES = [
    ["LOGICAL_DECODING_MESSAGE"],
    [
        f"io.debezium.connector.postgresql.LogicalDecodingMessageMonitor$LogicalDecodingMessageId@{n}"
        for n in ("7b", "8")
    ],
]


@pytest.mark.parametrize("names", LOGICAL_MESSAGES)
def test_logical_messages_are_counted_by_debezium_and_not_here(child: Child, names: list[str]) -> None:
    message = change("m", None, None, 2) | {"message": {"prefix": "p", "content": "eA=="}}
    emitted = child.keyed(
        ('{"id":1}', change("c", None, {"id": 1}, 1)),
        ('{"prefix":"p"}', message),
        ("e", boundary("END", "35352:9", 1 + len(names), orders=1, **dict.fromkeys(names, 1))),
    )
    assert [item.get("count") for item in emitted] == [None, 1]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" \n",
        {"schema": None, "payload": None},
        {"ts_ms": 1704269323180},
        {"source": {}, "ts_ms": 1, "databaseName": "shop", "ddl": "ALTER TABLE t ADD x int", "tableChanges": []},
        boundary("BEGIN", "5:1"),
        boundary("END", "5:2", 0),
        boundary("END", "5:2", 1, LOGICAL_DECODING_MESSAGE=1),
    ],
)
def test_what_changes_no_row_emits_nothing(child: Child, body: Any) -> None:
    assert child.records(body) == []


def test_rows_of_a_snapshot_are_units_of_their_own_and_the_same_again_when_delivered_again(child: Child) -> None:
    records = [
        ('{"id":1}', change("r", None, {"id": 1, "note": None}, None, snapshot="first")),
        ("default", change("r", None, {"what": "x"}, None, snapshot="last", table="audit")),
    ]
    one, end, keyless, _ = emitted = child.keyed(*records)
    assert (one["op"], one["key"], one["row"]) == ("upsert", {"id": 1}, {"id": 1, "note": None})
    assert end == {"uow": one["uow"], "end": True, "count": 1}
    assert keyless.keys() == {"uow", "table", "op", "row"}
    assert keyless["op"] == "insert"
    assert one["uow"] == "shardId-0:0.0"
    assert keyless["uow"] != one["uow"]
    assert child.keyed(*records) == emitted


def with_schema(row: dict[str, Any], **types: dict[str, Any]) -> dict[str, Any]:
    columns = [{"optional": True, "field": name, **schema} for name, schema in types.items()]
    images = [{"type": "struct", "fields": columns, "field": name} for name in ("before", "after")]
    schema = {"type": "struct", "fields": [*images, {"type": "string", "field": "op"}], "name": "shop.Envelope"}
    return {"schema": schema, "payload": change("c", None, row)}


def logical(type_: str, name: str, **parameters: str) -> dict[str, Any]:
    return {"type": type_, "name": name, "version": 1, "parameters": parameters}


CONNECT, TIME = "org.apache.kafka.connect.data.", "io.debezium.time."


def test_key_columns_are_converted_like_the_rows(child: Child) -> None:
    key = {"schema": {"type": "struct", "fields": []}, "payload": {"day": 19279}}
    (delta,) = child.keyed((json.dumps(key), with_schema({"day": 19279}, day=logical("int32", TIME + "Date"))))
    assert (delta["key"], delta["row"]) == ({"day": "2022-10-14"}, {"day": "2022-10-14"})


def test_numbers_keep_their_digits(child: Child) -> None:
    body = json.dumps(change("c", None, {"id": 1, "v": 0})).replace('"v": 0', '"v": 12345678901234567.891')
    (delta,) = child.keyed(('{"id":1}', body.encode()))
    assert delta["row"]["v"] == "12345678901234567.891"


@pytest.mark.parametrize(
    "placeholder",
    [
        UNAVAILABLE,
        base64.b64encode(UNAVAILABLE.encode()).decode(),
        [UNAVAILABLE],
        list(UNAVAILABLE.encode()),
        {UNAVAILABLE: UNAVAILABLE},
    ],
)
def test_a_large_value_that_an_update_left_alone_is_not_written(child: Child, placeholder: Any) -> None:
    event = change("u", None, {"id": 1, "big": placeholder, "note": "n"})
    (delta,) = child.keyed(('{"id":1}', event))
    assert (delta["key"], delta["row"], "before" in delta) == ({"id": 1}, {"note": "n"}, False)


def test_a_mysql_table_has_its_database_before_its_name(child: Child) -> None:
    event = change("c", None, {"id": 1}) | {"source": {"connector": "mysql", "db": "inventory", "table": "customers"}}
    assert child.keyed(('{"id":1}', event))[0]["table"] == "inventory.customers"


def test_tables_may_have_other_names_and_keys_in_the_target(tmp_path: Path) -> None:
    tables = tmp_path / "tables.json"
    tables.write_text('{"public.orders": {"table": "sales.orders", "key": ["no"]}, "public.log": {"table": "log"}}')
    child = Child("debezium", "--tables", str(tables), "--prefix", "shop-")
    child.initialize()
    deltas = child.keyed(
        ("default", change("u", None, {"id": 1, "no": 5, "note": "n"})),
        ("default", change("u", {"id": 1, "no": 4}, {"id": 1, "no": 5})),
        ('{"id":1}', change("c", None, {"id": 1}, table="log")),
    )
    assert [(delta["uow"], delta["table"], delta["key"]) for delta in deltas] == [
        ("shop-35352", "sales.orders", {"no": 5}),
        ("shop-35352", "sales.orders", {"no": 4}),
        ("shop-35352", "log", {"id": 1}),
    ]
    child.close()


def test_the_text_of_a_json_column_stays_as_it_is_where_events_come_without_schemas(child: Child) -> None:
    before, after = {"id": 1, "doc": "[1]"}, {"id": 1, "doc": '{ "a": 1.2345678901234567890 }', "note": "[2]"}
    (delta,) = child.keyed(('{"id":1}', change("u", before, after)))
    assert (delta["row"], delta["before"]) == ({"doc": after["doc"], "note": "[2]"}, before)


@pytest.mark.parametrize(
    ("event", "cause"),
    [
        (change("t", None, None, 3), "operation 't' has no delta"),
        (with_schema({"d": 2**40}, d=logical("int32", TIME + "Date")), "OverflowError"),
        (with_schema({"d": "%"}, d={"type": "bytes"}), "Error"),
        (
            with_schema({"d": 2813645678000}, d=logical("int64", TIME + "MicroDuration")),
            "interval.handling.mode=string",
        ),
        (change("c", None, {"id": 1}) | {"source": None}, "AttributeError"),
    ],
)
def test_a_change_that_cannot_be_carried_fails_its_own_unit(child: Child, event: Any, cause: str) -> None:
    (fragment,) = admitted(child.records(event))
    assert fragment.uow == "35352"
    assert not fragment.ends
    assert cause in fragment.rejects[0].line


@pytest.mark.parametrize("body", [b"no json", b"\xff", b"7", b"[]", {"uow": "x"}, {"op": "c"}, {"status": "END"}])
def test_what_is_no_event_becomes_a_failed_unit_of_its_own(child: Child, body: Any) -> None:
    (fragment,) = admitted(child.records(body))
    assert fragment.uow == "shardId-0:0.0"
    assert fragment.ends == (UnitEnd(0),)
    assert "no Debezium event" in fragment.rejects[0].line


def test_a_change_without_a_transaction_ends_it_with_what_to_do() -> None:
    child = Child("debezium")
    child.initialize()
    with pytest.raises(EOFError, match=r"set provide\.transaction\.metadata=true"):
        child.records(change("c", None, {"id": 1}, None))
    assert child.process.wait(LIMIT) == 1


def test_a_change_without_a_transaction_may_be_a_unit_of_its_own() -> None:
    child = Child("debezium", "--lone-changes")
    child.initialize()
    delta, end = child.keyed(('{"id":1}', change("d", {"id": 1}, None, None)))
    assert (delta["uow"], delta["op"], delta["key"]) == (end["uow"], "delete", {"id": 1})
    child.close()


def test_files_that_cannot_be_used_are_said_in_one_line(tmp_path: Path) -> None:
    child = Child("debezium", "--tables", str(tmp_path / "none.json"))
    assert child.process.communicate(timeout=LIMIT)[1].startswith(b"Error: table file ")
    assert child.process.returncode == 1


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "x"]), inner, max_size=3),
    max_leaves=6,
)
EVENTS = st.fixed_dictionaries(
    {},
    optional={
        "op": st.sampled_from(["c", "u", "d", "r", "t", "m"]) | JSON,
        "before": JSON,
        "after": JSON,
        "source": st.just(SOURCE) | JSON,
        "transaction": st.fixed_dictionaries({"id": st.just("1:2") | JSON, "total_order": JSON}),
        "status": JSON,
        "payload": JSON,
        "schema": JSON,
    },
)


@pytest.fixture(scope="module")
def tolerant() -> Iterator[Child]:
    child = Child("debezium", "--lone-changes")
    child.initialize()
    yield child
    child.close()


@settings(max_examples=150)
@given(events=st.lists(EVENTS | JSON, min_size=1, max_size=10), key=st.sampled_from(["default", '{"id":1}', "[1]"]))
def test_whatever_comes_is_a_delta_an_end_or_rejected_and_never_the_end_of_the_process(
    tolerant: Child, events: list[Any], key: str
) -> None:
    emitted = tolerant.keyed(*((key, event) for event in events))
    fragments = admitted(emitted)
    assert len(emitted) == sum(part.count + len(part.ends) + len(part.rejects) for part in fragments)
    refused = sum("refused" in item for item in emitted)
    assert sum(len(part.rejects) for part in fragments) >= refused


@settings(max_examples=60)
@given(number=st.decimals(allow_nan=False, allow_infinity=False), micros=st.integers(-(10**16), 10**17))
def test_decimals_and_times_come_out_as_they_went_in(tolerant: Child, number: Decimal, micros: int) -> None:
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    unscaled = int("".join(map(str, digits))) * (-1 if sign else 1)
    java = unscaled.to_bytes((unscaled.bit_length() // 8) + 1, "big", signed=True)
    event = with_schema(
        {"d": base64.b64encode(java).decode(), "t": micros},
        d=logical("bytes", CONNECT + "Decimal", scale=str(-exponent)),
        t=logical("int64", TIME + "MicroTimestamp"),
    )
    (delta,) = tolerant.keyed(("default", event))
    row = parse_delta(delta).row
    assert Decimal(row["d"]) == number
    assert datetime.fromisoformat(row["t"]) == datetime(1970, 1, 1) + timedelta(microseconds=micros)


@pytest.fixture(scope="module")
def by_source() -> Iterator[Child]:
    child = Child("debezium", "--source-transactions", "--prefix", "shop-")
    child.initialize()
    yield child
    child.close()


def test_without_metadata_the_source_block_names_the_transaction_and_its_time(by_source: Child) -> None:
    """Shows PostgreSQL's changes: places in its log are ordinals, but for inserts, of which a COPY has many at one."""
    emitted = by_source.keyed(
        ('{"id":7}', change("c", None, {"id": 7, "note": "a"}, None)),
        ('{"id":8}', change("c", None, {"id": 8, "note": "a"}, None)),
        ('{"id":7}', change("u", None, {"id": 7, "note": "b"}, None, lsn=3963199400, ts_us=1704355505506123)),
        ('{"id":7}', change("d", {"id": 7}, None, None, lsn=3963199500, ts_ns=1704355505506123456)),
    )
    assert {item["uow"] for item in emitted} == {"shop-35352"}
    assert [item["op"] for item in emitted] == ["insert", "insert", "update", "delete"]
    assert [item.get("ordinal") for item in emitted] == [None, None, 3963199400, 3963199500]
    assert [item["time"] for item in emitted] == [
        1704355505506000000, 1704355505506000000, 1704355505506123000, 1704355505506123456,
    ]  # fmt: skip
    assert [len(part.identities) for part in admitted(emitted)] == [4]


@pytest.mark.parametrize(
    ("gtid", "uow"),
    [
        ("0e4d5dcd-a33b-11ed-a4a6-0242ac110002:92", "0e4d5dcd-a33b-11ed-a4a6-0242ac110002:00000000000000000092"),
        ("0-1-23", "0-1-00000000000000000023"),
    ],
)
def test_without_metadata_mysqls_transactions_have_names_in_the_order_of_their_commits(
    by_source: Child, gtid: str, uow: str
) -> None:
    mysql = {"txId": None, "lsn": None, "gtid": gtid, "file": "mysql-bin.000003", "pos": 484, "ts_ms": 1704355505000}
    first = change("u", None, {"id": 1, "x": 1}, None, **mysql, row=0)
    second = change("u", None, {"id": 2, "x": 1}, None, **mysql, row=1)
    emitted = by_source.keyed(('{"id":1}', first), ('{"id":2}', second))
    assert [item["uow"] for item in emitted] == [f"shop-{uow}"] * 2
    assert [item["ordinal"] for item in emitted] == [484 << 20, (484 << 20) + 1]


def test_without_metadata_a_row_of_a_snapshot_is_still_a_unit_of_its_own(by_source: Child) -> None:
    delta, end = by_source.keyed(('{"id":1}', change("r", None, {"id": 1}, None, snapshot="true")))
    assert (delta["op"], end) == ("upsert", {"uow": delta["uow"], "end": True, "count": 1})


def test_a_source_block_without_a_transaction_ends_the_processor() -> None:
    child = Child("debezium", "--source-transactions")
    child.initialize()
    with pytest.raises(EOFError, match="neither PostgreSQL's txId and lsn nor a GTID"):
        child.keyed(('{"id":1}', change("c", None, {"id": 1}, None, lsn=None)))
