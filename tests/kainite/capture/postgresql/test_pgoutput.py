"""Decodes pgoutput to the byte: recordings of PostgreSQL 18, and bytes that it would never send."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.base.errors import SourceError
from kainite.capture.postgresql.pgoutput import (
    MAX_CHANGE,
    UNCHANGED,
    BeginMessage,
    CommitMessage,
    DeleteMessage,
    InsertMessage,
    LogicalMessage,
    LostChange,
    Origin,
    Relation,
    RelationColumn,
    TruncateMessage,
    TypeName,
    UpdateMessage,
    decode,
)
from kainite.capture.postgresql.replication_frames import Data, decode_frame

GOLDEN = Path(__file__).parent / "golden" / "pgoutput_v1.hex"
FRAMES = [bytes.fromhex(line) for line in GOLDEN.read_text().splitlines() if not line.startswith("#")]
PAYLOADS = [frame.payload for frame in map(decode_frame, FRAMES) if isinstance(frame, Data)]
MESSAGES = [decode(payload) for payload in PAYLOADS]


def test_a_transaction_is_framed_by_begin_and_commit() -> None:
    assert MESSAGES[0] == BeginMessage(final_lsn=0x172C828, commit_us=1_795_255_365_867_544, xid=759)
    assert MESSAGES[4] == CommitMessage(commit_lsn=0x172C828, end_lsn=0x172C858, commit_us=1_795_255_365_867_544)


def test_a_relation_names_its_columns_types_and_key() -> None:
    assert MESSAGES[1] == TypeName(16385, "public", "mood")
    relation = MESSAGES[2]
    assert isinstance(relation, Relation)
    assert (relation.oid, relation.schema, relation.name, relation.replica_identity) == (16389, "public", "item", "d")
    assert relation.columns[0] == RelationColumn("id", 20, is_key=True)
    assert [c.name for c in relation.columns] == ["id", "name", "price", "sold", "feel", "big"]
    assert [c.is_key for c in relation.columns] == [True] + [False] * 5


def test_values_come_as_text_null_or_unchanged() -> None:
    inserts = [m for m in MESSAGES if isinstance(m, InsertMessage)]
    updates = [m for m in MESSAGES if isinstance(m, UpdateMessage)]
    assert inserts[0].new == ("1", "Käse", "1.50", "t", "glad", "x" * 3000)
    assert inserts[-1].new == (None, "")
    assert updates[0] == UpdateMessage(16389, ("1", None, "2.00", "t", "glad", UNCHANGED))


def test_a_changed_key_and_an_old_row_come_with_their_update_or_delete() -> None:
    nothing = (None,) * 5
    assert [m for m in MESSAGES if isinstance(m, UpdateMessage | DeleteMessage)][1:] == [
        UpdateMessage(16389, ("9", None, "2.00", "t", "glad", UNCHANGED), key=("1", *nothing)),
        UpdateMessage(16402, ("1", "b"), old=("1", "a")),
        DeleteMessage(16402, old=("1", "b")),
        DeleteMessage(16389, key=("9", *nothing)),
    ]


def test_origins_and_truncates_are_read() -> None:
    assert Origin(0xAB, "elsewhere") in MESSAGES
    assert TruncateMessage((16389, 16397)) in MESSAGES


@pytest.mark.parametrize("payload", sorted(set(PAYLOADS)), ids=lambda p: p[:1].decode())
def test_a_message_cut_short_anywhere_or_with_a_tail_is_refused(payload: bytes) -> None:
    for end in range(min(len(payload), 200)):
        with pytest.raises(SourceError, match="pgoutput"):
            decode(payload[:end])
    with pytest.raises(SourceError, match="1 bytes too many"):
        decode(payload + b"\0")


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"S\0\0\0\1", "unknown message kind 'S'"),
        (b"I\0\0\0\1X", "'X' where one of 'N' belongs"),
        (b"U\0\0\0\1X", "'X' where one of 'N' belongs"),
        (b"D\0\0\0\1N\0\0", "'N' where one of 'KO' belongs"),
        (b"I\0\0\0\1N\0\1b\0\0\0\0", "'b' where one of 't' belongs"),
        (b"R\0\0\0\1\xff\0t\0d\0\0", "not UTF-8"),
        (b"I\0\0\0\1N\0\1t\xff\xff\xff\xff", "cut short"),
        (b"Y\0\0\0\1public", "string without an end"),
    ],
)
def test_the_complaint_says_what_is_wrong(data: bytes, complaint: str) -> None:
    with pytest.raises(SourceError, match=complaint):
        decode(data)


@pytest.mark.parametrize(("kind", "operation"), [("IN", "insert"), ("UN", "update"), ("DK", "delete")])
def test_a_row_with_a_text_that_is_not_utf_8_is_lost_with_its_reason(kind: str, operation: str) -> None:
    lost = decode(kind[:1].encode() + b"\0\0\0\7" + kind[1:].encode() + b"\0\1t\0\0\0\1\xff")
    assert isinstance(lost, LostChange)
    assert (lost.relation, lost.operation) == (7, operation)
    assert "a text is not UTF-8" in lost.cause


def test_a_row_of_more_than_64_mib_is_lost_and_one_less_is_read() -> None:
    text = MAX_CHANGE - 13
    insert = b"I\0\0\0\7N\0\1t" + text.to_bytes(4, "big") + b"x" * text
    assert isinstance(decode(insert), InsertMessage)
    lost = decode(insert + b"x")
    assert isinstance(lost, LostChange)
    assert (lost.relation, lost.operation) == (7, "insert")
    assert "64 MiB" in lost.cause


@given(st.binary(max_size=300))
def test_garbage_is_read_or_refused_but_never_anything_else(data: bytes) -> None:
    for reader in (decode, decode_frame):
        with suppress(SourceError):
            reader(data)


@given(st.sampled_from(PAYLOADS), st.data())
def test_a_damaged_message_is_read_or_refused_but_never_anything_else(payload: bytes, data: st.DataObject) -> None:
    damaged = bytearray(payload[:400])
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    with suppress(SourceError):
        decode(bytes(damaged))


def test_logical_messages_are_read_without_their_content() -> None:
    content = b"M\x01" + (8 * b"\0") + b"kainite.heartbeat\0" + (3).to_bytes(4, "big") + b"\xff\0x"

    assert decode(content) == LogicalMessage(True, "kainite.heartbeat")
    assert decode(b"M\0" + content[2:]) == LogicalMessage(False, "kainite.heartbeat")
    with pytest.raises(SourceError, match="cut short"):
        decode(content[:-1])


def test_a_logical_message_of_another_program_is_read_whatever_its_prefix_is() -> None:
    # A database with the encoding SQL_ASCII sends any bytes. A message that is in no transaction cannot be passed over.
    content = (8 * b"\0") + b"caf\xe9\0" + bytes(4)

    for flags, transactional in ((b"\0", False), (b"\x01", True)):
        assert decode(b"M" + flags + content) == LogicalMessage(transactional, "caf\N{REPLACEMENT CHARACTER}")
