"""Rows of the tables that are read become changes; others are counted or passed over."""

from __future__ import annotations

import pytest

from kainite.capture.mysql.source_catalogue import MysqlSourceCatalogue
from kainite.capture.mysql.table_reading import HEARTBEATS, TableReading
from kainite.capture.mysql.transactions import Rows
from support.binlog import steps

ROWS = [step for step in steps() if isinstance(step, Rows)]


@pytest.mark.mariadb
def test_other_databases_have_no_changes_and_other_tables_no_records(database: str) -> None:
    catalogue = MysqlSourceCatalogue(database)
    elsewhere = TableReading(catalogue, "elsewhere", ())
    assert [change for rows in ROWS for change in elsewhere.changes(rows)] == []
    other = TableReading(catalogue, "shop", ("other",))
    assert list(other.changes(ROWS[0])) == [None]
    assert not other.is_read(HEARTBEATS)
    reading = TableReading(catalogue, "shop", ())
    counts = [len(list(reading.changes(rows))) for rows in ROWS]
    assert counts == [1] * len(ROWS)
    reading.forget()
    (change,) = reading.changes(ROWS[0])
    assert change is not None
    assert "gone from the source" in change({"uow": "u"}, 0)[1]["refused"], "the catalogue has no such table"
    catalogue.close()
