"""Foreign keys of MariaDB that are dropped and made again, on a server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pymysql
import pytest

from kainite.replicate import mariadb_ledger, mariadb_table_ledger
from kainite.replicate.mariadb_foreign_keys import foreign_keys_of, make_again, take_off
from kainite.replicate.mariadb_foreign_keys_lock import foreign_keys_alone
from kainite.replicate.mariadb_target_session import mariadb_session
from kainite.replicate.tables import TableName
from kainite.targets.mariadb.connection import connect
from kainite.targets.mariadb.rows import rows_of
from support.mariadb_server import run_script

LOG = "log/0"
TABLES = """
    CREATE TABLE item (a int, b int, PRIMARY KEY (a, b));
    CREATE TABLE line (id int PRIMARY KEY, x int, y int, boss int,
                       CONSTRAINT of_item FOREIGN KEY (y, x) REFERENCES item (a, b)
                       ON DELETE CASCADE ON UPDATE SET NULL,
                       CONSTRAINT of_boss FOREIGN KEY (boss) REFERENCES line (id));
    INSERT INTO item VALUES (1, 2);
    INSERT INTO line VALUES (1, 2, 1, NULL), (2, NULL, 7, 1)"""
_MADE = "SHOW CREATE TABLE line"


@pytest.fixture
def target(mariadb: str) -> Iterator[pymysql.connections.Connection]:
    run_script(mariadb, TABLES)
    with mariadb_session(mariadb) as connection:
        for statement in (*mariadb_ledger.CREATE, *mariadb_table_ledger.CREATE):
            connection.query(statement)
        yield connection


def place(target: pymysql.connections.Connection, name: str) -> TableName:
    return str(rows_of(target, "SELECT DATABASE()")[0][0]), name


def set_state(target: pymysql.connections.Connection, name: str, state: str) -> None:
    with target.cursor() as cursor:
        cursor.execute(mariadb_table_ledger.SET_LOADING, (LOG, *place(target, name)))
        cursor.execute("UPDATE kainite_load_table SET state = %s WHERE table_name = %s", (state, name))


def noted(target: pymysql.connections.Connection) -> list[tuple[str, bool]]:
    return rows_of(target, "SELECT constraint_name, cause IS NOT NULL FROM kainite_load_foreign_key ORDER BY 1")


def test_foreign_keys_come_back_as_they_were_when_both_tables_are_live(target: pymysql.connections.Connection) -> None:
    before = rows_of(target, _MADE)
    item = place(target, "item")
    assert take_off(target, LOG, item) == [f"{item[0]}.line of_item"]
    assert take_off(target, LOG, item) == []  # started again behind a crash: the note is there
    assert [one.name for one in foreign_keys_of(target, place(target, "line"))] == ["of_boss"]
    set_state(target, "item", "loading")
    assert make_again(target, LOG) == []
    assert noted(target) == [("of_item", 0)]
    set_state(target, "item", "live")
    assert make_again(target, LOG) == []
    assert noted(target) == []
    assert sorted(rows_of(target, _MADE)[0][1].splitlines()) == sorted(before[0][1].splitlines())
    [(checked,)] = rows_of(target, "SELECT @@session.foreign_key_checks")
    assert checked == 1


def test_rows_without_their_parent_are_named_and_keep_the_note(target: pymysql.connections.Connection) -> None:
    assert len(take_off(target, LOG, place(target, "line"))) == 2
    target.query("INSERT INTO line VALUES (3, 8, 9, NULL), (4, 2, 1, 77)")
    refused = make_again(target, LOG)
    assert len(refused) == 2
    assert "no row of" in refused[0]
    assert "for `boss` in (77)" in refused[0]
    assert "for `y`, `x` in (9, 8)" in refused[1]
    assert noted(target) == [("of_boss", 1), ("of_item", 1)]
    with pytest.raises(pymysql.IntegrityError):  # it is there, and lets no other one in
        target.query("INSERT INTO line VALUES (5, NULL, NULL, 78)")
    target.query("DELETE FROM line WHERE id IN (3, 4)")
    assert make_again(target, LOG) == []
    assert noted(target) == []


def test_a_parent_that_is_gone_is_told_and_no_foreign_key_to_it_is_made(target: pymysql.connections.Connection) -> None:
    take_off(target, LOG, place(target, "item"))
    target.query("DROP TABLE item")
    [refused] = make_again(target, LOG)
    assert "doesn't exist" in refused
    target.query("INSERT INTO line VALUES (3, 8, 9, NULL)")


def test_a_load_that_takes_a_foreign_key_off_meanwhile_keeps_its_note(
    target: pymysql.connections.Connection, mariadb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Begins another load between the making and the end of the look at the rows."""
    item = place(target, "item")
    take_off(target, LOG, item)
    from kainite.replicate import mariadb_foreign_keys as module

    kept = module.NotedForeignKey.orphans

    def orphans(self: module.NotedForeignKey, connection: pymysql.connections.Connection) -> str:
        with closing(connect(mariadb)) as other, foreign_keys_alone(other, LOG):
            take_off(other, LOG, item)
            set_state(other, "item", "loading")
        return kept(self, connection)

    monkeypatch.setattr(module.NotedForeignKey, "orphans", orphans)
    assert make_again(target, LOG) == []
    assert noted(target) == [("of_item", 0)]
    assert foreign_keys_of(target, item) == []
