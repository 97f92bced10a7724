"""Rows of events, with and without compression, and of images that lack columns."""

from __future__ import annotations

import pytest

from kainite.base.errors import SourceError
from kainite.capture.mysql.events import Event, Kind
from kainite.capture.mysql.rows import MISSING, RowOperation, changed_rows, operation_of
from kainite.capture.mysql.table_map import MappedColumn, Type
from kainite.capture.mysql.transactions import Rows
from kainite.capture.mysql.values import reader_of
from support.binlog import changed, steps, text

COLUMNS = [MappedColumn(Type.TINY, name=name) for name in "abc"]
READERS = [reader_of(column, text) for column in COLUMNS]
HEAD = bytes(8) + b"\3"


def event(kind: Kind, body: bytes) -> Event:
    return Event(kind, 0, 1, 0, 0, False, False, body)


def test_rows_have_their_values_before_and_after() -> None:
    rows = [row for step in steps() if isinstance(step, Rows) for row in changed(step)]
    operations = [row.operation.value for row in rows]
    assert operations == ["insert", "update", "insert", "insert", "delete", "insert", "insert", "insert"]
    insert, update = rows[:2]
    assert insert.after is not None
    assert insert.after[:6] == ("1", "2024", "18446744073709551615", "0.1", "1e+22", "hé")
    assert insert.after[12:17] == (
        "-123456789.125", "2024-02-29", "2024-02-29 23:59:59.987", "2024-02-29 23:59:59.987654+00", "-838:59:58.50",
    )  # fmt: skip
    assert update.before == insert.after
    assert update.after is not None
    assert (update.after[1], update.after[5], update.after[12]) == ("0", None, "0.500")
    assert rows[5].after is not None
    assert rows[5].after[6] == "z" * 200, "compressed"


def test_an_image_may_lack_columns() -> None:
    body = HEAD + b"\1\6" + b"\0\5" + b"\2\7"
    (row,) = changed_rows(event(Kind.UPDATE_ROWS_1, body), READERS)
    assert (row.before, row.after) == (("5", MISSING, MISSING), (MISSING, "7", None))
    assert operation_of(event(Kind.DELETE_ROWS_2, b"")) is RowOperation.DELETE


@pytest.mark.parametrize("body", [HEAD + b"\7\0\1", bytes(8) + b"\2\3\0", HEAD + b"\0\0", HEAD + b"\7"[:0]])
def test_rows_that_do_not_fit_are_refused(body: bytes) -> None:
    with pytest.raises(SourceError):
        list(changed_rows(event(Kind.WRITE_ROWS_1, body), READERS))
