"""Turns transactions into records of the stream."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from kainite.base.errors import SourceError
from kainite.capture.postgresql.pgoutput import (
    UNCHANGED,
    DeleteMessage,
    InsertMessage,
    Relation,
    RelationColumn,
    UpdateMessage,
)
from kainite.capture.postgresql.records import records_of
from kainite.capture.postgresql.transactions import SourceChange, SourceTransaction

ITEM = Relation(7, "shop", "item", "d", (RelationColumn("id", 23, True), RelationColumn("name", 25, False)))
NOTE = Relation(8, "shop", "note", "d", (RelationColumn("text", 25, False),))


def transaction(*changes: SourceChange) -> SourceTransaction:
    return SourceTransaction(xid=754, commit_lsn=0x17184C0, end_lsn=0x17184F0, commit_us=1, changes=changes)


def bodies(unit: SourceTransaction) -> list[dict[str, Any]]:
    return [orjson.loads(record) for record in records_of(unit, 17)]


def test_each_change_says_where_it_belongs_and_the_end_how_many_there_are() -> None:
    insert, end = bodies(transaction(SourceChange(ITEM, InsertMessage(7, ("1", None)))))
    assert insert == {
        "uow": "pg-754-0/17184C0",
        "number": 17,
        "ordinal": 0,
        "count": 1,
        "relation": "shop.item",
        "operation": "insert",
        "types": {"id": 23, "name": 25},
        "key": {"id": "1"},
        "new": {"id": "1", "name": None},
    }
    assert end == {"uow": "pg-754-0/17184C0", "number": 17, "end": True, "count": 1, "time": 1000}


def test_an_update_names_the_old_key_when_the_key_changed_and_omits_what_was_not_sent() -> None:
    moved, kept, gone, _ = bodies(
        transaction(
            SourceChange(ITEM, UpdateMessage(7, ("9", UNCHANGED), key=("1", None))),
            SourceChange(ITEM, UpdateMessage(7, ("9", "y"))),
            SourceChange(ITEM, DeleteMessage(7, key=("9", None))),
        )
    )
    assert (moved["key"], moved["new"]) == ({"id": "1"}, {"id": "9"})
    assert (kept["key"], kept["new"]) == ({"id": "9"}, {"id": "9", "name": "y"})
    assert (gone["key"], gone["new"], gone["types"]) == ({"id": "9"}, {}, {"id": 23})


def test_a_table_without_a_key_has_none() -> None:
    insert, _ = bodies(transaction(SourceChange(NOTE, InsertMessage(8, ("hello",)))))
    assert (insert["key"], insert["new"]) == ({}, {"text": "hello"})


@pytest.mark.parametrize("identity", ["f", "i"])
def test_a_replica_identity_that_is_not_the_primary_key_is_refused(identity: str) -> None:
    relation = Relation(7, "shop", "item", identity, ITEM.columns)
    with pytest.raises(SourceError, match="REPLICA IDENTITY DEFAULT"):
        bodies(transaction(SourceChange(relation, InsertMessage(7, ("1", "x")))))


def test_values_that_do_not_fit_their_table_are_refused() -> None:
    with pytest.raises(SourceError, match="1 values for 2 columns of item"):
        bodies(transaction(SourceChange(ITEM, InsertMessage(7, ("1",)))))


@pytest.mark.parametrize(
    ("row", "operation"),
    [
        (InsertMessage(7, ("1", "x")), "insert"),
        (UpdateMessage(7, ("1", "y")), "update"),
        (DeleteMessage(7, key=("1", None)), "delete"),
    ],
)
def test_a_record_names_its_operation(row: InsertMessage | UpdateMessage | DeleteMessage, operation: str) -> None:
    change, _ = bodies(transaction(SourceChange(ITEM, row)))

    assert change["operation"] == operation
