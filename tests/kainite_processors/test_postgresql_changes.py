"""The processor as a real child process, driven line by line as a daemon does."""

from __future__ import annotations

import time
from typing import Any

import pytest

from kainite.capture.row_pieces import in_records
from kainite.uow.delta import parse_delta, parse_end
from support.names import unique
from support.postgresql_changes_child import UNIT, change, child
from support.processor_child import Child

__all__ = ["child"]


def test_changes_become_deltas_and_ends_become_ends(child: Child) -> None:
    types = {"id": 23, "name": 25}
    insert, update, delete, end = child.records(
        change("insert", {"id": "1"}, {"id": "1", "name": "Käse"}, types),
        change("update", {"id": "1"}, {"id": "1", "name": None}, types),
        change("delete", {"id": "1"}, {}, {"id": 23}),
        {**UNIT, "end": True, "time": 17},
    )
    common = {"uow": "pg-7-0/1", "table": "public.t", "key": {"id": 1}, "ordinal": 0}
    assert insert == {**common, "op": "insert", "row": {"id": 1, "name": "Käse"}}
    assert update == {**common, "op": "update", "row": {"name": None}}
    assert delete == {**common, "op": "delete"}
    assert end == {"uow": "pg-7-0/1", "end": True, "count": 1, "number": 3, "time": 17}
    assert [parse_delta(delta).op for delta in (insert, update, delete)] == ["insert", "update", "delete"]
    assert parse_end(end).number == 3


@pytest.mark.parametrize(
    ("oid", "text", "value"),
    [
        (16, "t", True),
        (16, "f", False),
        (20, "-9223372036854775808", -9223372036854775808),
        (21, "7", 7),
        (23, None, None),
        (114, '{ "a": [1, null], "a": 2 }', '{ "a": [1, null], "a": 2 }'),
        (3802, '"x"', '"x"'),
        (3802, "null", "null"),
        (3802, "123456789012345678901.5", "123456789012345678901.5"),
        (1700, "1.10", "1.10"),
        (701, "NaN", "NaN"),
        (1184, "2026-11-21 09:30:00.123456+00", "2026-11-21 09:30:00.123456+00"),
        (25, "17", "17"),
        (16385, "glad", "glad"),
    ],
)
def test_values_are_converted_where_json_keeps_them_whole(child: Child, oid: int, text: str | None, value: Any) -> None:
    (delta,) = child.records(change("insert", {}, {"v": text}, {"v": oid}))
    assert delta["row"] == {"v": value}
    assert type(delta["row"]["v"]) is type(value)


def test_an_old_row_becomes_the_deltas_before(child: Child) -> None:
    types = {"id": 23, "name": 25}
    old = {"id": "1", "name": "x"}
    update, delete = child.records(
        {**change("update", {"id": "1"}, {"id": "2", "name": "x"}, types), "old": old},
        {**change("delete", {"id": "1"}, {}, types), "old": old},
    )
    assert (update["key"], update["row"], update["before"]) == (
        {"id": 1},
        {"id": 2, "name": "x"},
        {"id": 1, "name": "x"},
    )
    assert (delete["key"], delete["before"]) == ({"id": 1}, {"id": 1, "name": "x"})
    assert [parse_delta(delta).op for delta in (update, delete)] == ["update", "delete"]


def test_a_change_that_the_extractor_could_not_carry_fails_its_unit_with_the_reason(child: Child) -> None:
    record = {
        **UNIT,
        "ordinal": 0,
        "relation": "public.t",
        "operation": "truncate",
        "refused": "TRUNCATE names no rows",
    }
    (failed,) = child.records(record)
    assert failed["uow"] == "pg-7-0/1"
    cause = "a change (truncate) of public.t that cannot be carried: TRUNCATE names no rows"
    assert failed["refused"]["cause"] == cause


def test_a_changed_key_is_in_the_row_and_an_update_of_nothing_keeps_its_row(child: Child) -> None:
    types = {"a": 23, "b": 23}
    moved, same = child.records(
        change("update", {"a": "1", "b": "2"}, {"a": "1", "b": "3"}, types),
        change("update", {"a": "1", "b": "2"}, {"a": "1", "b": "2"}, types),
    )
    assert (moved["key"], moved["row"]) == ({"a": 1, "b": 2}, {"b": 3})
    assert (same["key"], same["row"]) == ({"a": 1, "b": 2}, {"a": 1, "b": 2})


NAME = {"uow": "pg-7-0/1", "number": 3}
PLACE = {**NAME, "ordinal": 5, "relation": "public.t", "operation": "insert"}
LARGE = {"types": {"id": 23, "v": 25}, "key": {"id": "1"}, "new": {"id": "1", "v": "ä" * 600_000}}
DELTA = {
    "uow": "pg-7-0/1",
    "table": "public.t",
    "op": "insert",
    "ordinal": 5,
    "key": {"id": 1},
    "row": {"id": 1, "v": "ä" * 600_000},
}


def test_a_row_in_pieces_is_joined_over_batches(child: Child) -> None:
    *pieces, main = in_records(NAME, PLACE, LARGE, time.time_ns)
    assert child.records(*pieces[:1]) == []
    assert child.records(*pieces[1:]) == []
    assert child.records(main) == [DELTA]


def test_a_fresh_process_reads_the_pieces_from_the_stream_whatever_shard_they_are_on(
    kinesis: Any, moto_endpoint: str
) -> None:
    name = unique("pieces")
    kinesis.create_stream(StreamName=name, ShardCount=2)
    *pieces, main = in_records(NAME, PLACE, LARGE, time.time_ns)
    for number, piece in enumerate(pieces):
        kinesis.put_record(StreamName=name, Data=piece, PartitionKey=str(number))
    fresh = Child("postgresql_changes", "--stream", name, "--region", "us-east-1", "--endpoint", moto_endpoint)
    fresh.initialize()
    assert fresh.records(*pieces[-1:], main) == [DELTA]
    fresh.close()


def test_a_row_with_a_missing_piece_gives_no_delta_and_says_so(child: Child) -> None:
    *pieces, main = in_records(NAME, PLACE, LARGE, time.time_ns)
    small = change("insert", {}, {"v": "x"}, {"v": 25})
    (kept,) = child.records(*pieces[1:], main, small)
    assert kept["row"] == {"v": "x"}
    assert child.process.stderr is not None
    said = child.process.stderr.readline().decode()
    assert said.startswith("pg-7-0/1, insert of public.t: the change is left out, so its unit stays incomplete")
    assert "name the stream with --stream" in said


def test_a_transaction_that_was_passed_over_fails_its_unit_with_the_reason(child: Child) -> None:
    (failed,) = child.records({**NAME, "refused": "the transaction was passed over (--skip-transaction)"})
    assert failed["uow"] == "pg-7-0/1"
    assert failed["refused"]["cause"] == "the transaction was passed over (--skip-transaction)"
