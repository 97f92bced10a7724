"""Assembles messages into transactions, and turns transactions into records."""

from __future__ import annotations

import pytest

from kainite.base.errors import SourceError
from kainite.capture.postgresql.pgoutput import (
    Begin,
    Commit,
    Delete,
    Insert,
    Message,
    Relation,
    RelationColumn,
    Truncate,
    TypeName,
)
from kainite.capture.postgresql.transactions import Assembler, Change, Transaction

ITEM = Relation(7, "shop", "item", "d", (RelationColumn("id", 23, True), RelationColumn("name", 25, False)))
NOTE = Relation(8, "shop", "note", "d", (RelationColumn("text", 25, False),))


def feed(*messages: Message) -> list[Transaction]:
    assembler = Assembler()
    return [t for t in map(assembler.feed, messages) if t is not None]


def test_a_commit_hands_the_transaction_out_and_relations_are_remembered() -> None:
    first, second = feed(
        Begin(10, 5, 1),
        TypeName(1, "a", "b"),
        ITEM,
        Insert(7, ("1", "x")),
        Commit(10, 11, 5),
        Begin(20, 6, 2),
        Delete(7, key=("1", None)),
        Commit(20, 21, 6),
    )
    assert first == Transaction(1, 10, 11, 5, (Change(ITEM, Insert(7, ("1", "x"))),))
    assert second.changes == (Change(ITEM, Delete(7, key=("1", None))),)


@pytest.mark.parametrize(
    ("messages", "complaint"),
    [
        ([Begin(10, 5, 1), Begin(20, 6, 2)], "transaction 2 begins inside 1"),
        ([Commit(10, 11, 5)], "without its begin"),
        ([Begin(10, 5, 1), Commit(20, 21, 5)], "without its begin"),
        ([Begin(10, 5, 1), Insert(7, ("1", "x"))], "before its relation"),
        ([ITEM, Insert(7, ("1", "x"))], "outside a transaction"),
        ([ITEM, Begin(10, 5, 1), Truncate((7, 8))], "change of table 8 outside a transaction, or before its relation"),
    ],
)
def test_messages_out_of_place_are_refused(messages: list[Message], complaint: str) -> None:
    with pytest.raises(SourceError, match=complaint):
        feed(*messages)


def test_a_truncate_is_a_change_of_each_of_its_tables() -> None:
    (only,) = feed(ITEM, NOTE, Begin(10, 5, 1), Truncate((7, 8)), Commit(10, 11, 5))
    assert [(change.relation.name, change.row) for change in only.changes] == [
        ("item", Truncate((7, 8))),
        ("note", Truncate((7, 8))),
    ]
