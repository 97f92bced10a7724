"""Assembles messages into transactions."""

from __future__ import annotations

import pytest

from kainite.base.errors import SourceError
from kainite.capture.postgresql.pgoutput import (
    BeginMessage,
    CommitMessage,
    DeleteMessage,
    InsertMessage,
    LostChange,
    Message,
    Relation,
    RelationColumn,
    TruncateMessage,
    TypeName,
)
from kainite.capture.postgresql.transactions import Assembler, SourceChange, SourceTransaction, commit_lsn_of

ITEM = Relation(7, "shop", "item", "d", (RelationColumn("id", 23, True), RelationColumn("name", 25, False)))
NOTE = Relation(8, "shop", "note", "d", (RelationColumn("text", 25, False),))


def feed(*messages: Message) -> list[tuple[SourceTransaction | None, SourceChange]]:
    """Returns the changes, each with the transaction that is being read when it comes."""
    assembler = Assembler()
    return [(assembler.transaction, change) for message in messages for change in assembler.feed(message)]


def test_each_change_comes_at_once_in_its_transaction_and_relations_are_remembered() -> None:
    lost = LostChange(7, "update", "too large")
    changes = feed(
        BeginMessage(10, 5, 1),
        TypeName(1, "a", "b"),
        ITEM,
        InsertMessage(7, ("1", "x")),
        lost,
        CommitMessage(10, 11, 5),
        BeginMessage(20, 6, 2),
        DeleteMessage(7, key=("1", None)),
    )
    first, second = SourceTransaction(1, 10, 5), SourceTransaction(2, 20, 6)
    assert changes == [
        (first, SourceChange(ITEM, InsertMessage(7, ("1", "x")))),
        (first, SourceChange(ITEM, lost)),
        (second, SourceChange(ITEM, DeleteMessage(7, key=("1", None)))),
    ]


def test_between_a_commit_and_a_begin_there_is_no_transaction() -> None:
    assembler = Assembler()
    for message in (BeginMessage(10, 5, 1), CommitMessage(10, 11, 5)):
        assembler.feed(message)
    assert assembler.transaction is None


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
    changes = feed(ITEM, NOTE, BeginMessage(10, 5, 1), TruncateMessage((7, 8)))
    assert [(change.relation.name, change.row) for _, change in changes] == [
        ("item", TruncateMessage((7, 8))),
        ("note", TruncateMessage((7, 8))),
    ]


def test_a_units_name_tells_its_place_in_the_wal() -> None:
    """Checks that a repair stands where a transaction would that committed at its point."""
    assert commit_lsn_of(SourceTransaction(754, 0x2_017184C0, 0).uow) == 0x2_017184C0
    assert commit_lsn_of("repair-20261123T143015Z-4f2a-2/17184C0") == 0x2_017184C0
    others = ("T-17", "missing:4", "repair-4f2a-2/17184C0", "pg-754-2/17184C0-fixed", "my-pg-754-2/17184C0")
    assert [commit_lsn_of(name) for name in others] == [None] * len(others)
