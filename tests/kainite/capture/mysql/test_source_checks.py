"""A server whose binlog lacks something is refused at the start, with what mends it."""

from __future__ import annotations

import pytest

from kainite.base.errors import SourceError
from kainite.capture.mysql.place import BinlogPlace
from kainite.capture.mysql.source_catalogue import MysqlSourceCatalogue
from kainite.capture.mysql.source_checks import check_filters, check_place, check_settings, check_source, check_tables
from kainite.capture.mysql.source_tables import TableNow
from support.mariadb_source import execute

GOOD = {"log_bin": "ON", "binlog_format": "ROW", "binlog_row_image": "FULL", "binlog_row_metadata": "FULL"}


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("log_bin", "OFF", "log_bin is OFF"),
        ("binlog_format", "MIXED", "SET GLOBAL binlog_format = 'ROW'"),
        ("binlog_row_image", "MINIMAL", "SET GLOBAL binlog_row_image"),
        ("binlog_row_metadata", "NO_LOG", "must be FULL"),
        ("binlog_row_value_options", "PARTIAL_JSON", "must be empty"),
        ("binlog_transaction_compression", "ON", "SET GLOBAL binlog_transaction_compression = OFF"),
    ],
)
def test_a_setting_that_loses_changes_is_refused(name: str, value: str, message: str) -> None:
    check_settings(GOOD)
    with pytest.raises(SourceError, match=message):
        check_settings(GOOD | {name: value})


def test_an_old_server_is_refused() -> None:
    with pytest.raises(SourceError, match=r"MariaDB 10\.5 or MySQL 8\.0"):
        check_settings({"log_bin": "ON", "binlog_format": "ROW", "binlog_row_image": "FULL"})


def test_filters_that_leave_the_database_out_are_refused() -> None:
    check_filters("shop", "", "")
    check_filters("shop", "other,shop", "third")
    for only, without in (("other", ""), ("", "shop")):
        with pytest.raises(SourceError, match="binlog_do_db"):
            check_filters("shop", only, without)


def test_a_place_that_the_server_lacks_is_refused() -> None:
    check_place(BinlogPlace("binlog.000002", 400), {"binlog.000002": 400})
    with pytest.raises(SourceError, match=r"its first is binlog.000002.*purged"):
        check_place(BinlogPlace("binlog.000001", 4), {"binlog.000002": 400})
    with pytest.raises(SourceError, match="that file has 400 bytes"):
        check_place(BinlogPlace("binlog.000002", 401), {"binlog.000002": 400})


def test_all_tables_that_are_not_carried_are_named() -> None:
    bad = TableNow("MyISAM", False, False, True)
    with pytest.raises(SourceError, match=r"table a: .*; table b: .*--table"):
        check_tables({"b": bad, "a": bad})


def test_the_tables_that_are_read_must_be_there(database: str) -> None:
    catalogue = MysqlSourceCatalogue(database)
    name = database.split("/")[3].split("?")[0]
    with pytest.raises(SourceError, match="has no table: no change would come"):
        check_source(catalogue, name, ())
    execute(database, "CREATE TABLE t (id int PRIMARY KEY)")
    check_source(catalogue, name, ("t",))
    with pytest.raises(SourceError, match="has no table u in"):
        check_source(catalogue, name, ("t", "u"))
    catalogue.close()
