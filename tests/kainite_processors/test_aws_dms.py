"""Records of AWS DMS's Kinesis target, through the real processor.

The records are those that the project commons-codec recorded of a PostgreSQL task with transaction details, control
details, null columns and before images of keys (its ``test_aws_dms.py``): names and values as they are there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kainite.uow.catalogue.file import write_catalogue
from kainite.uow.catalogue.tables import Catalogue, Column, Table, TypeFamily
from kainite.uow.delta import UnitEnd, parse_delta
from kainite.uow.signing import Signing
from support.admitted_deltas import admitted
from support.processor_child import LIMIT, Child

JANE = {"age": 31, "attributes": '{"baz": "qux"}', "id": 46, "name": "Jane"}
CREATE_TABLE = {
    "control": {"table-def": {"columns": {"id": {"nullable": False, "type": "INT32"}}, "primary-key": ["id"]}},
    "metadata": {
        "operation": "create-table", "partition-key-type": "task-id", "partition-key-value": "serv-res-id-17221953588",
        "record-type": "control", "schema-name": "public", "table-name": "foo", "timestamp": "2024-07-29T00:30:47.266Z",
    },
}  # fmt: skip
LOAD: dict[str, Any] = {
    "data": {"age": 30, "attributes": '{"foo": "bar"}', "id": 42, "name": "John"},
    "metadata": {
        "operation": "load", "partition-key-type": "primary-key", "partition-key-value": "public.foo.42",
        "record-type": "data", "schema-name": "public", "table-name": "foo", "timestamp": "2024-07-29T00:57:35.691762Z",
    },
}  # fmt: skip


def change(
    operation: str,
    data: Any,
    transaction: int,
    record: Any = 1,
    *,
    previous: tuple[int, int] | None = None,
    images: Mapping[str, Any] | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Returns a data record; ``previous`` is the transaction before it and its last record's number."""
    described: dict[str, Any] = {
        "commit-timestamp": "2024-07-29T00:58:44.886717Z", "operation": operation, "partition-key-type": "schema-table",
        "record-type": "data", "schema-name": "public", "stream-position": "00000002/7C007328.2.00000002/7C007328",
        "table-name": "foo", "timestamp": "2024-07-29T00:58:44.895275Z",
        "transaction-id": transaction, "transaction-record-id": record,
    }  # fmt: skip
    if previous:
        described["prev-transaction-id"], described["prev-transaction-record-id"] = previous
    return {"data": data, "metadata": {**described, **(metadata or {})}, **(images or {})}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("dms") / "tables.json"
    path.write_text('{"public.foo": {"key": ["id"]}, "public.log": {"key": []}}')
    return path


@pytest.fixture(scope="module")
def child(tables: Path) -> Iterator[Child]:
    child = Child("aws_dms", "--tables", str(tables))
    child.initialize()
    yield child
    child.close()


def test_a_transaction_becomes_a_unit_that_ends_when_the_next_one_begins(child: Child) -> None:
    """Maps recorded changes: an insert, an update, an update of the key and a delete, each in its own transaction."""
    emitted = child.records(
        CREATE_TABLE,
        change("insert", JANE, 1139),
        change("update", {**JANE, "id": 42, "age": 33}, 1140, previous=(1139, 1), images={"before-image": {}}),
        change("update", {**JANE, "id": 45}, 1141, previous=(1140, 1), images={"before-image": {"id": 46}}),
        change("delete", {"age": None, "attributes": None, "id": 45, "name": None}, 1144, previous=(1141, 1)),
    )
    rest = {"attributes": '{"baz": "qux"}', "name": "Jane"}
    foo = {"table": "public.foo", "ordinal": 0}
    assert emitted == [
        {"uow": "1139", **foo, "op": "insert", "key": {"id": 46}, "row": JANE},
        {"uow": "1139", "end": True, "count": 1},
        {"uow": "1140", **foo, "op": "update", "key": {"id": 42}, "row": {"age": 33, **rest}},
        {"uow": "1140", "end": True, "count": 1},
        {"uow": "1141", **foo, "op": "update", "key": {"id": 46}, "row": {"id": 45, "age": 31, **rest},
         "before": {"id": 46}},
        {"uow": "1141", "end": True, "count": 1},
        {"uow": "1144", **foo, "op": "delete", "key": {"id": 45}, "before": {"id": 45}},
    ]  # fmt: skip


def test_records_of_one_transaction_are_numbered_and_each_may_name_the_one_before(child: Child) -> None:
    emitted = child.records(
        change("insert", {"id": 1}, 8, 1, previous=(7, 3)),
        change("insert", {"id": 2}, 8, 2, previous=(7, 3)),
        change("insert", {"id": 3}, 8, 3, previous=(8, 2)),
    )
    assert [item["ordinal"] for item in emitted if "table" in item] == [0, 1, 2]
    assert [item for item in emitted if "end" in item] == [{"uow": "7", "end": True, "count": 3}] * 2


def test_a_record_put_by_hand_ends_a_transaction_that_dms_left_without_a_successor(child: Child) -> None:
    by_hand = {"record-type": "control", "prev-transaction-id": 1144, "prev-transaction-record-id": 2}
    assert child.records({"metadata": by_hand}) == [{"uow": "1144", "end": True, "count": 2}]


def test_a_full_load_is_a_unit_for_each_row_and_the_same_again_when_delivered_again(child: Child) -> None:
    keyless = {"data": {"what": "x"}, "metadata": {**LOAD["metadata"], "table-name": "log"}}
    delta, end, insert, _ = emitted = child.records(LOAD, keyless)
    assert (delta["op"], delta["key"], delta["row"]) == ("upsert", {"id": 42}, LOAD["data"])
    assert end == {"uow": delta["uow"], "end": True, "count": 1}
    assert insert.keys() == {"uow", "table", "op", "row"}
    assert insert["op"] == "insert"
    assert child.records(LOAD, keyless) == emitted


def test_old_values_come_from_the_field_that_the_task_names(tables: Path) -> None:
    child = Child("aws_dms", "--tables", str(tables), "--before-image", "BI_IMAGE", "--prefix", "crm-")
    child.initialize()
    (delta,) = child.records(
        change("update", {"id": 1, "age": 3}, 5, images={"BI_IMAGE": {"id": 1, "age": 2, "name": None}})
    )
    assert (delta["uow"], delta["row"], delta["before"]) == ("crm-5", {"age": 3}, {"id": 1, "age": 2})
    child.close()


def test_keys_come_from_the_targets_catalogue_too(tmp_path: Path) -> None:
    columns = {"id": Column("id", "integer", TypeFamily.INTEGER)}
    path = tmp_path / "catalogue.json"
    write_catalogue(Catalogue({"foo": Table("foo", "public", columns, ("id",))}, "public"), path)
    child = Child("aws_dms", "--catalogue", str(path))
    child.initialize()
    assert child.records(change("delete", {"id": 1}, 5))[0]["key"] == {"id": 1}
    child.close()


@pytest.mark.parametrize("text", ["null", '"x"', '{ "baz": 1.2345678901234567890, "baz": 2 }'])
def test_the_text_of_a_json_column_stays_as_it_is(child: Child, text: str) -> None:
    (delta,) = child.records(change("insert", {**JANE, "attributes": text}, 1139))
    assert delta["row"] == {**JANE, "attributes": text}


def test_a_table_without_a_schema_has_its_bare_name(tables: Path, tmp_path: Path) -> None:
    path = tmp_path / "tables.json"
    path.write_text('{"foo": {"key": ["id"], "table": "bar"}}')
    child = Child("aws_dms", "--tables", str(path))
    child.initialize()
    (delta,) = child.records(change("insert", {"id": 1}, 5, metadata={"schema-name": ""}))
    assert delta["table"] == "bar"
    child.close()


def test_numbers_keep_their_digits(child: Child) -> None:
    body = json.dumps(change("insert", {"id": 1, "v": 0}, 5)).replace('"v": 0', '"v": 12345678901234567.891')
    (delta,) = child.records(body.encode() + b"\n")
    assert delta["row"]["v"] == "12345678901234567.891"


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (change("insert", {"id": 1}, 5, metadata={"transaction-record-id": None}), "IncludeTransactionDetails=true"),
    ],
)
def test_what_the_set_up_leaves_out_ends_it_with_what_to_do(tables: Path, record: Any, message: str) -> None:
    child = Child("aws_dms", "--tables", str(tables))
    child.initialize()
    with pytest.raises(EOFError, match=message):
        child.records(record)
    assert child.process.wait(LIMIT) == 1


def test_changes_of_a_table_that_no_file_knows_are_applied_as_if_it_had_been_known(
    child: Child, tmp_path: Path
) -> None:
    # The target gets the table later; until then the units are misfits, and the shard goes on.
    bar: Any = {"metadata": {"table-name": "bar"}}
    records = [
        LOAD | {"metadata": {**LOAD["metadata"], "table-name": "bar"}},
        change("insert", JANE, 5, **bar),
        change("update", {**JANE, "id": 45}, 5, 2, images={"before-image": {"id": 46}}, **bar),
        change("update", {**JANE, "age": 33}, 5, 3, **bar),
        change("delete", {"age": None, "id": 45, "name": None}, 5, 4, **bar),
    ]
    names = {"age": "integer", "attributes": "jsonb", "id": "integer", "name": "text"}
    columns = {name: Column(name, kind, TypeFamily.OPAQUE) for name, kind in names.items()}
    lacking, having = (
        Catalogue(tables, "public") for tables in ({}, {"bar": Table("bar", "public", columns, ("id",))})
    )
    known = tmp_path / "tables.json"
    known.write_text('{"public.bar": {"key": ["id"]}}')
    knowing = Child("aws_dms", "--tables", str(known))
    knowing.initialize()
    expected = Signing(having).judge_all(map(parse_delta, _deltas(knowing.records(*records))))
    knowing.close()
    misfits = Signing(lacking).judge_all(map(parse_delta, _deltas(child.records(*records))))
    assert {cause for _, cause in misfits.misfits} == {"table 'public.bar' is not in the target's catalogue"}
    released = Signing(having).judge_all(map(parse_delta, map(orjson.loads, misfits.items)))
    assert (released.items, released.misfits) == (expected.items, [])
    assert released.written == expected.written


def _deltas(emitted: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [item for item in emitted if "end" not in item]


@pytest.mark.parametrize(
    "record",
    [
        change("truncate", {}, 5, previous=(4, 2)),
        change("insert", None, 5, previous=(4, 2)),
        change("insert", {"id": 1}, 5, "one", previous=(4, 2)),
    ],
)
def test_a_change_that_cannot_be_carried_fails_its_own_unit_and_ends_the_one_before(child: Child, record: Any) -> None:
    ended, failed = admitted(child.records(record))
    assert (ended.uow, ended.ends, ended.rejects) == ("4", (UnitEnd(2),), ())
    assert (failed.uow, failed.ends) == ("5", ())
    assert failed.rejects[0].cause.startswith("a change of foo that cannot be carried: ")


@pytest.mark.parametrize("body", [b"no json", b"", b"7", {"uow": "x"}, {"metadata": {"record-type": "data"}}])
def test_what_is_no_record_of_dms_becomes_a_failed_unit_of_its_own(child: Child, body: Any) -> None:
    (fragment,) = admitted(child.records(body))
    assert (fragment.uow, fragment.ends) == ("shardId-0:0.0", (UnitEnd(0),))
    assert "no record of AWS DMS" in fragment.rejects[0].line


SIZES = st.lists(st.integers(1, 4), min_size=2, max_size=8)


@settings(max_examples=40)
@given(sizes=SIZES, data=st.data())
def test_every_transaction_but_the_last_is_complete_in_whatever_order_its_records_come(
    child: Child, sizes: list[int], data: st.DataObject
) -> None:
    records = [
        change("insert", {"id": number}, unit, number, previous=(unit - 1, sizes[unit - 1]) if unit else None)
        for unit, size in enumerate(sizes)
        for number in range(1, size + 1)
    ]
    came = data.draw(st.permutations(records + data.draw(st.lists(st.sampled_from(records), max_size=5))))
    fragments = {part.uow: part for part in admitted(child.records(*came))}
    for unit, size in enumerate(sizes[:-1]):
        part = fragments[str(unit)]
        assert set(part.ends) == {UnitEnd(size)}
        assert set(part.identities) == set(range(size))
    assert not fragments[str(len(sizes) - 1)].ends
