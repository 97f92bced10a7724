"""Assembles messages into transactions."""

from __future__ import annotations

import pytest

from kainite.base.errors import SourceError
from kainite.capture.postgresql.pgoutput import (
    BeginMessage,
    CommitMessage,
    DeleteMessage,
    InsertMessage,
    Message,
    Relation,
    RelationColumn,
    TruncateMessage,
    TypeName,
)
from kainite.capture.postgresql.transactions import Assembler, SourceChange, SourceTransaction

ITEM = Relation(7, "shop", "item", "d", (RelationColumn("id", 23, True), RelationColumn("name", 25, False)))
NOTE = Relation(8, "shop", "note", "d", (RelationColumn("text", 25, False),))


def feed(*messages: Message) -> list[SourceTransaction]:
    assembler = Assembler()
    return [t for t in map(assembler.feed, messages) if t is not None]


def test_a_commit_hands_the_transaction_out_and_relations_are_remembered() -> None:
    first, second = feed(
        BeginMessage(10, 5, 1),
        TypeName(1, "a", "b"),
        ITEM,
        InsertMessage(7, ("1", "x")),
        CommitMessage(10, 11, 5),
        BeginMessage(20, 6, 2),
        DeleteMessage(7, key=("1", None)),
        CommitMessage(20, 21, 6),
    )
    assert first == SourceTransaction(1, 10, 11, 5, (SourceChange(ITEM, InsertMessage(7, ("1", "x"))),))
    assert second.changes == (SourceChange(ITEM, DeleteMessage(7, key=("1", None))),)


@pytest.mark.parametrize(
    ("messages", "complaint"),
    [
        ([BeginMessage(10, 5, 1), BeginMessage(20, 6, 2)], "transaction 2 begins inside 1"),
        ([CommitMessage(10, 11, 5)], "without its begin"),
        ([BeginMessage(10, 5, 1), CommitMessage(20, 21, 5)], "without its begin"),
        ([BeginMessage(10, 5, 1), InsertMessage(7, ("1", "x"))], "before its relation"),
        ([ITEM, InsertMessage(7, ("1", "x"))], "outside a transaction"),
        (
            [ITEM, BeginMessage(10, 5, 1), TruncateMessage((7, 8))],
            "change of table 8 outside a transaction, or before its relation",
        ),
    ],
)
def test_messages_out_of_place_are_refused(messages: list[Message], complaint: str) -> None:
    with pytest.raises(SourceError, match=complaint):
        feed(*messages)


def test_a_truncate_is_a_change_of_each_of_its_tables() -> None:
    (only,) = feed(ITEM, NOTE, BeginMessage(10, 5, 1), TruncateMessage((7, 8)), CommitMessage(10, 11, 5))
    assert [(change.relation.name, change.row) for change in only.changes] == [
        ("item", TruncateMessage((7, 8))),
        ("note", TruncateMessage((7, 8))),
    ]
