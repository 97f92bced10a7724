"""Changes as records of the stream: keys by each replica identity, and what no record can carry."""

from __future__ import annotations

from typing import Any

import pytest

from kainite.base.errors import SourceError
from kainite.capture.postgresql.pgoutput import (
    UNCHANGED,
    DeleteMessage,
    InsertMessage,
    LostChange,
    Relation,
    RelationColumn,
    TruncateMessage,
    UpdateMessage,
)
from kainite.capture.postgresql.records import SourceKey, change_record
from kainite.capture.postgresql.transactions import SourceChange

ITEM = Relation(7, "shop", "item", "d", (RelationColumn("id", 23, True), RelationColumn("name", 25, False)))
NOTE = Relation(8, "shop", "note", "d", (RelationColumn("text", 25, False),))


UNIT = {"uow": "pg-754-0/17184C0", "number": 17}


def bodies(
    *changes: SourceChange, primary_key: dict[int, set[str]] | None = None, whole: SourceKey | None = None
) -> list[dict[str, Any]]:
    """Returns the changes' records, by their places; ``whole`` is the key of all tables, where it is given."""
    keys = {oid: SourceKey(frozenset(columns)) for oid, columns in (primary_key or {}).items()}
    return [
        {**place, **row}
        for place, row in (
            change_record(UNIT, n, change, lambda oid: whole or keys.get(oid, SourceKey()))
            for n, change in enumerate(changes)
        )
    ]


def test_each_change_says_where_it_belongs() -> None:
    _, insert = bodies(SourceChange(NOTE, InsertMessage(8, ("x",))), SourceChange(ITEM, InsertMessage(7, ("1", None))))
    assert insert == {
        "uow": "pg-754-0/17184C0",
        "number": 17,
        "ordinal": 1,
        "relation": "shop.item",
        "operation": "insert",
        "types": {"id": 23, "name": 25},
        "key": {"id": "1"},
        "new": {"id": "1", "name": None},
    }


def test_an_update_names_the_old_key_when_the_key_changed_and_omits_what_was_not_sent() -> None:
    moved, kept, gone = bodies(
        SourceChange(ITEM, UpdateMessage(7, ("9", UNCHANGED), key=("1", None))),
        SourceChange(ITEM, UpdateMessage(7, ("9", "y"))),
        SourceChange(ITEM, DeleteMessage(7, key=("9", None))),
    )
    assert (moved["key"], moved["new"]) == ({"id": "1"}, {"id": "9"})
    assert (kept["key"], kept["new"]) == ({"id": "9"}, {"id": "9", "name": "y"})
    assert (gone["key"], gone["new"], gone["types"]) == ({"id": "9"}, {}, {"id": 23})


def test_a_table_without_a_key_has_none() -> None:
    (insert,) = bodies(SourceChange(NOTE, InsertMessage(8, ("hello",))))
    assert (insert["key"], insert["new"]) == ({}, {"text": "hello"})


def with_identity(identity: str, *flagged: str) -> Relation:
    columns = tuple(RelationColumn(c.name, c.type_oid, c.name in flagged) for c in ITEM.columns)
    return Relation(7, "shop", "item", identity, columns)


def test_a_full_identity_takes_the_key_from_the_old_row() -> None:
    full = with_identity("f", "id", "name")
    moved, gone = bodies(
        SourceChange(full, UpdateMessage(7, ("9", "y"), old=("1", "x"))),
        SourceChange(full, DeleteMessage(7, old=("9", "y"))),
        primary_key={7: {"id"}},
    )
    assert (moved["key"], moved["new"], moved["old"]) == (
        {"id": "1"},
        {"id": "9", "name": "y"},
        {"id": "1", "name": "x"},
    )
    assert (gone["key"], gone["old"], gone["types"]) == ({"id": "9"}, {"id": "9", "name": "y"}, {"id": 23, "name": 25})


def test_an_index_identity_serves_where_it_contains_the_primary_key() -> None:
    index = with_identity("i", "id", "name")
    moved, kept = bodies(
        SourceChange(index, UpdateMessage(7, ("9", "y"), key=("1", "x"))),
        SourceChange(index, UpdateMessage(7, ("9", UNCHANGED))),
        primary_key={7: {"id"}},
    )
    assert (moved["key"], "old" in moved) == ({"id": "1"}, False)
    assert kept["key"] == {"id": "9"}


@pytest.mark.parametrize(
    ("relation", "keys", "cause"),
    [
        (with_identity("i", "name"), {"id"}, "USING INDEX does not tell the primary key (id)"),
        (with_identity("f", "id", "name"), set(), "the table has no primary key (REPLICA IDENTITY FULL)"),
    ],
    ids=["an index beside the key", "full without a key"],
)
@pytest.mark.parametrize("row", [UpdateMessage(7, ("9", "y"), old=("1", "x")), DeleteMessage(7, old=("1", "x"))])
def test_a_change_that_does_not_tell_its_key_is_refused_and_the_rest_goes_on(
    relation: Relation, keys: set[str], cause: str, row: UpdateMessage | DeleteMessage
) -> None:
    refused, insert = bodies(
        SourceChange(relation, row), SourceChange(relation, InsertMessage(7, ("1", "x"))), primary_key={7: keys}
    )
    assert cause in refused["refused"]
    assert (refused["ordinal"], "new" in refused) == (0, False)
    assert insert["new"] == {"id": "1", "name": "x"}


@pytest.mark.parametrize("identity", ["f", "i"])
def test_an_insert_from_before_the_key_had_another_column_is_refused(identity: str) -> None:
    (refused,) = bodies(
        SourceChange(with_identity(identity, "id", "name"), InsertMessage(7, ("1", "x"))),
        primary_key={7: {"id", "region"}},
    )
    assert refused["refused"] == "the table's primary key (id, region) has been changed since: the row has no region"
    assert "key" not in refused


def test_a_null_of_a_partitioned_tables_old_row_is_no_value() -> None:
    """The partition's own identity decides what is sent, and what it does not have comes as NULL."""
    full = with_identity("f", "id", "name")
    (gone,) = bodies(
        SourceChange(full, DeleteMessage(7, old=("9", None))), whole=SourceKey(frozenset({"id"}), partitioned=True)
    )
    assert (gone["key"], gone["old"]) == ({"id": "9"}, {"id": "9"})


@pytest.mark.parametrize("relation", [ITEM, with_identity("f", "id", "name")])
@pytest.mark.parametrize("row", [UpdateMessage(7, ("9", "y")), DeleteMessage(7, old=(None, "x"))])
def test_a_partition_that_does_not_tell_the_key_is_named(
    relation: Relation, row: UpdateMessage | DeleteMessage
) -> None:
    key = SourceKey(frozenset({"id"}), partitioned=True, silent="public.item_1")
    refused, insert = bodies(
        SourceChange(relation, row), SourceChange(relation, InsertMessage(7, ("1", "x"))), whole=key
    )
    assert refused["refused"] == (
        "REPLICA IDENTITY USING INDEX of the partition public.item_1 does not tell the primary key (id):"
        " ALTER TABLE public.item_1 REPLICA IDENTITY DEFAULT helps later changes"
    )
    assert insert["new"] == {"id": "1", "name": "x"}


def test_a_row_that_was_lost_is_refused_with_its_reason() -> None:
    (refused,) = bodies(SourceChange(ITEM, LostChange(7, "update", "too large")))
    assert (refused["operation"], refused["refused"]) == ("update", "too large")


def test_a_truncate_is_refused_and_names_its_table() -> None:
    (truncate,) = bodies(SourceChange(ITEM, TruncateMessage((7,))))
    assert (truncate["operation"], truncate["relation"]) == ("truncate", "shop.item")
    assert truncate["refused"] == "TRUNCATE names no rows"


def test_values_that_do_not_fit_their_table_are_refused() -> None:
    with pytest.raises(SourceError, match="1 values for 2 columns of item"):
        bodies(SourceChange(ITEM, InsertMessage(7, ("1",))))
