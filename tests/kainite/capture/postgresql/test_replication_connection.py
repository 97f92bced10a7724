"""Replication connections: ordinary SQL on them, names, and errors in one line."""

from __future__ import annotations

import psycopg
import pytest

from kainite.base.errors import SourceError
from kainite.capture.postgresql.replication import SourceSlot
from kainite.capture.postgresql.replication_connection import as_source_error, connect, execute, one_line, plain_name


def test_sql_and_replication_commands_go_over_one_connection(source: SourceSlot) -> None:
    connection = connect(source.url)
    try:
        assert execute(connection, "SELECT current_setting('TimeZone')").get_value(0, 0) == b"UTC"
        assert execute(connection, "SET lock_timeout = '1s'").ntuples == 0
        assert execute(connection, "IDENTIFY_SYSTEM").ntuples == 1
        with pytest.raises(SourceError, match='replication: ERROR: relation "none" does not exist'):
            execute(connection, "SELECT FROM none")
    finally:
        connection.finish()


@pytest.mark.parametrize("url", ["postgresql://[", "postgresql:///x?host=/nonexistent"])
def test_a_source_that_cannot_be_reached_is_told(url: str) -> None:
    with pytest.raises(SourceError, match="connect"):
        connect(url)


def test_names_and_messages_are_plain() -> None:
    assert plain_name("shop_1") == "shop_1"
    with pytest.raises(SourceError, match="lower-case"):
        plain_name("Shop'")
    assert one_line(b"ERROR:  a\n  b \xff\n") == "ERROR: a b \ufffd"
    with pytest.raises(SourceError, match="replication: gone"), as_source_error():
        raise psycopg.OperationalError("gone\n")
