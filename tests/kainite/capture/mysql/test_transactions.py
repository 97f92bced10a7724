"""Events become transactions: where they begin, what they change, how they end."""

from __future__ import annotations

import pytest

from kainite.base.errors import SourceError
from kainite.capture.mysql.events import Event, Kind
from kainite.capture.mysql.place import BinlogPlace
from kainite.capture.mysql.statements import LoggedStatement, Means
from kainite.capture.mysql.transactions import Begun, BinlogAssembler, Rows, TransactionEnded, UnreadableRows
from support.binlog import first, steps

HERE = BinlogPlace("binlog.000001", 4)


def event(kind: int, body: bytes = b"", *, ignorable: bool = False) -> Event:
    return Event(kind, 5, 7, 0, 0, False, ignorable, body)


def query(text: str) -> Event:
    return event(Kind.QUERY, bytes(8) + b"\4\0\0\0\0shop\0" + text.encode())


def fed(*events: Event) -> list[object]:
    assembler = BinlogAssembler()
    return [step for one in events for step in assembler.feed(one, HERE)]


def test_each_transaction_begins_and_ends() -> None:
    found = [step for step in steps() if not isinstance(step, Rows | LoggedStatement)]
    assert [step.gtid for step in found if isinstance(step, Begun)] == [f"0-7-{number}" for number in range(1, 11)]
    ends = [step.how for step in found if isinstance(step, TransactionEnded)]
    assert ends[:6] == [Means.COMMIT] * 6
    assert ends[6:] == [Means.XA_END, Means.COMMIT, Means.COMMIT, Means.ROLLBACK]


def test_mysqls_transactions_are_told_by_their_statements() -> None:
    gtid = event(Kind.ANONYMOUS_GTID)
    place = str(HERE)
    assert fed(gtid, query("BEGIN"), event(Kind.XID))[::2] == [Begun(place, HERE), TransactionEnded(Means.COMMIT, 5)]
    assert fed(gtid, query("TRUNCATE t"))[2] == TransactionEnded(Means.COMMIT, 5)
    prepared = fed(gtid, query("XA START X'1',X'',1"), query("XA END X'1',X'',1"), event(Kind.XA_PREPARE, b"\0"))
    assert prepared[-1] == TransactionEnded(Means.XA_END, 5, "X'1',X'',1")


def test_a_transaction_that_the_server_died_in_is_rolled_back() -> None:
    found = fed(event(Kind.ANONYMOUS_GTID), query("BEGIN"), event(Kind.FORMAT_DESCRIPTION))
    assert found[-1] == TransactionEnded(Means.ROLLBACK, 5)


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ((event(Kind.INCIDENT),), "lost changes"),
        ((event(99),), "kind 99, which is not known"),
        ((event(Kind.XID),), "ends without its beginning"),
        ((event(Kind.ANONYMOUS_GTID), query("BEGIN"), event(Kind.ANONYMOUS_GTID)), "inside another"),
        ((first(Kind.WRITE_ROWS_1),), "before their table"),
    ],
)
def test_what_is_not_readable_is_refused(events: tuple[Event, ...], message: str) -> None:
    with pytest.raises(SourceError, match=message):
        fed(*events)


def test_a_transaction_that_is_compressed_ends_and_says_that_it_was_not_read() -> None:
    begun, unreadable, ended = fed(event(Kind.ANONYMOUS_GTID), event(Kind.TRANSACTION_PAYLOAD))
    assert isinstance(begun, Begun)
    assert isinstance(unreadable, UnreadableRows)
    assert unreadable.table is None, "it may have rows of any table"
    assert "binlog_transaction_compression" in unreadable.why
    assert ended == TransactionEnded(Means.COMMIT, 5)


def test_rows_of_a_partial_update_say_of_which_table_they_are() -> None:
    described, partial = event(Kind.TABLE_MAP, bytes(8) + b"rest"), event(Kind.PARTIAL_UPDATE_ROWS, bytes(8))
    *_, unreadable = fed(event(Kind.ANONYMOUS_GTID), query("BEGIN"), described, partial)
    assert isinstance(unreadable, UnreadableRows)
    assert unreadable.table == described.body
    assert "binlog_row_value_options" in unreadable.why


def test_unknown_events_that_may_be_passed_over_are() -> None:
    assert fed(event(99, ignorable=True)) == []


def test_a_tagged_gtid_of_mysql_is_called_by_its_place() -> None:
    """Shows: MySQL 8.4 spells it in a form of its own, which is passed over; the transaction ends as any other."""
    begun, *_, ended = fed(event(Kind.GTID_TAGGED, b"\2whatever"), query("BEGIN"), event(Kind.XID, bytes(8)))
    assert begun == Begun(str(HERE), HERE)
    assert isinstance(ended, TransactionEnded)
    assert ended.how is Means.COMMIT
