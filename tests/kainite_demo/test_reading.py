"""A database of either kind is read in snapshots, with the moments at which units were applied."""

from __future__ import annotations

from contextlib import closing

import psycopg
import pytest

from kainite.base.errors import DemoError
from kainite.targets.mariadb.connection import connect
from kainite_demo.latency import AppliedTimes
from kainite_demo.reading import count_of, is_mariadb, reading


def change(url: str, *statements: str) -> None:
    if is_mariadb(url):
        with closing(connect(url)) as connection:
            for sql in statements:
                connection.query(sql)
    else:
        with psycopg.connect(url) as connection:
            connection.execute(";".join(statements).encode())


def test_rows_of_either_kind_are_counted_and_read(mariadb: str, postgres: str) -> None:
    for url in (mariadb, postgres):
        change(url, "CREATE TABLE item (id int PRIMARY KEY)", "INSERT INTO item VALUES (1), (2)")
        assert count_of(url, "item") == 2
        with reading(url) as opened:
            assert opened.execute("SELECT id FROM item ORDER BY id") == [(1,), (2,)]
            assert opened.applied(0) == []


def test_when_a_unit_was_applied_is_read_from_its_acknowledgement(mariadb: str) -> None:
    times = AppliedTimes()
    with reading(mariadb) as opened:
        times.look(opened)
        change(
            mariadb,
            "CREATE TABLE kainite_applied (uow varchar(10), applied_at timestamp(6) DEFAULT NOW(6))",
            "INSERT INTO kainite_applied (uow) VALUES ('a')",
        )
        times.look(opened)
    assert set(times.at_us) == {"a"}


@pytest.mark.parametrize("url", ["mariadb://root@127.0.0.1:1/x", "postgresql://root@127.0.0.1:1/x"])
def test_a_database_that_cannot_be_read_is_told(url: str) -> None:
    with pytest.raises(DemoError, match="cannot be read"), reading(url):
        pass
