"""A source is opened at an offset, or refused with a reason."""

from __future__ import annotations

import pytest

from kainite.base.errors import SourceError
from kainite.capture.mysql.offset import BinlogOffset
from kainite.capture.mysql.source import open_source
from kainite.capture.mysql.transactions import Rows
from support.mariadb_source import execute, here, rows
from support.mysql_server import IS_MYSQL


def test_a_source_says_who_it_is_and_reads_one_transaction_again(database: str) -> None:
    execute(database, "CREATE TABLE t (id int PRIMARY KEY)")
    start = BinlogOffset.from_json(here(database))
    execute(database, "INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (2)")
    source = open_source(database, start, ())
    own = rows(database, "SELECT @@server_uuid")[0][0] if IS_MYSQL else "7"
    assert (source.server, source.identity.database) == (own, source.database)
    assert source.identity.begun > 0
    assert start.place is not None
    with source.another(start.place) as inside:
        found = list(inside)
    assert [isinstance(one, Rows) for one in found] == ([False, True] if IS_MYSQL else [True]), "MySQL logs the BEGIN"
    source.close()


@pytest.mark.parametrize(
    ("url", "message"),
    [("mariadb://root@db", "names no database"), ("mariadb://root@db/shop?what=1", "has the parameter what")],
)
def test_an_address_that_is_none_is_refused(url: str, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        open_source(url, BinlogOffset(None, 0, "0-1-1"), ())
